// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Glibc
import Synchronization

/// Handler that calls a closure.
final class Probe: ReadinessHandler, TimerHandler {
    private let onReady: (Int32, Readiness) -> Void
    private let onTimer: (UInt64) -> Void

    init(_ onReady: @escaping (Int32, Readiness) -> Void) {
        self.onReady = onReady
        onTimer = { _ in }
    }

    init(timer onTimer: @escaping (UInt64) -> Void) {
        onReady = { _, _ in }
        self.onTimer = onTimer
    }

    func ready(_ fd: Int32, _ events: Readiness) { onReady(fd, events) }
    func timerFired(tag: UInt64) { onTimer(tag) }
}

/// Hook with scripted advice, which counts its calls.
final class Script: WaitHook {
    private(set) var calls = 0
    var advice: (LoopInstant) -> WaitAdvice

    init(_ advice: @escaping (LoopInstant) -> WaitAdvice) { self.advice = advice }

    func beforeWait(now: LoopInstant) -> WaitAdvice {
        calls += 1
        return advice(now)
    }
}

/// Stops the loop and waits for its thread.
func stop(_ thread: EventLoopThread) {
    thread.loop.stop()
    thread.join()
}

/// Two connected nonblocking sockets.
func socketPair() -> (Int32, Int32) {
    var pair: [Int32] = [-1, -1]
    let result = unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair)
    precondition(result == 0)
    for fd in pair { _ = fcntl(fd, F_SETFL, O_NONBLOCK) }
    return (pair[0], pair[1])
}

/// Writes a few bytes.
func send(_ text: StaticString, to fd: Int32) {
    let count = unsafe write(fd, text.utf8Start, text.utf8CodeUnitCount)
    precondition(count == text.utf8CodeUnitCount)
}

/// Reads the available bytes and returns their number.
@discardableResult
func drain(_ fd: Int32) -> Int {
    var buffer = [UInt8](repeating: 0, count: 4096)
    return unsafe read(fd, &buffer, buffer.count)
}

/// The name of the calling thread.
func threadName() -> String {
    guard let file = unsafe fopen("/proc/thread-self/comm", "r") else { return "" }
    defer { unsafe fclose(file) }
    var buffer = [CChar](repeating: 0, count: 64)
    guard unsafe fgets(&buffer, 64, file) != nil else { return "" }
    return String(decoding: buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Runs `body` on the loop's thread and returns its result.
func on<Result: Sendable>(
    _ loop: EventLoop, _ body: @escaping @Sendable () -> Result
) async -> Result {
    await withCheckedContinuation { done in
        loop.execute { done.resume(returning: body()) }
    }
}

/// A value behind a lock that closures can share.
final class Locked<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) { mutex = Mutex(value) }

    var value: Value { mutex.withLock { $0 } }

    func change(_ body: (inout Value) -> Void) { mutex.withLock { body(&$0) } }
}
