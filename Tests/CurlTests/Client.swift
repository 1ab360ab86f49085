// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop

/// Connects a multi handle to a loop, as the daemon does.
final class Driver: ReadinessHandler, WaitHook {
    let multi: MultiHandle
    /// Called after the start of each transfer.
    var afterStart: () -> Void = {}
    private let loop: EventLoop
    private var deadline = LoopInstant.never

    init(_ loop: EventLoop, maxIdle: Int) throws {
        self.loop = loop
        multi = try MultiHandle(maxIdle: maxIdle)
        loop.add(self)
    }

    func start(_ handle: EasyHandle, _ delegate: any TransferDelegate) throws {
        try multi.add(handle, delegate: delegate)
        carryOut()
        afterStart()
    }

    func ready(_ fd: Int32, _ events: Readiness) {
        multi.socketReady(fd, readable: events.isReadable, writable: events.isWritable, error: events.isBroken)
        carryOut()
    }

    func beforeWait(now: LoopInstant) -> WaitAdvice {
        var didWork = false
        if deadline <= now {
            deadline = .never
            multi.timeout()
            didWork = true
        }
        while let completion = multi.nextCompleted() {
            completion.delegate.transferEnded(completion.handle, error: completion.error)
            didWork = true
        }
        carryOut()
        return WaitAdvice(didWork: didWork, deadline: deadline)
    }

    func carryOut() {
        while let effect = multi.nextEffect() {
            switch effect {
            case .closed(let fd): loop.forget(fd)
            case .idle: break
            case .watch(let fd, .none, isTransfer: true): loop.suspend(fd)
            case .watch(let fd, .none, isTransfer: false): loop.unwatch(fd)
            case .watch(let fd, .read, _): loop.watch(fd, for: .read, handler: self)
            case .watch(let fd, .write, _): loop.watch(fd, for: .write, handler: self)
            case .watch(let fd, .readWrite, _): loop.watch(fd, for: [.read, .write], handler: self)
            }
        }
        switch multi.takeTimer() {
        case .after(let milliseconds): deadline = loop.now.advanced(byMilliseconds: milliseconds)
        case .cancelled: deadline = .never
        case .unchanged: break
        }
    }
}

/// Result of a transfer.
struct Outcome: Sendable {
    var error: CurlError?
    var status = 0
    var head = ""
    var body: [UInt8] = []
    var attempts: [Int] = []
    var connections = 0
    var text = ""
}

/// Transfers on a thread of their own; the actor's executor is the loop.
actor Client {
    let thread: EventLoopThread
    private var made: Driver?

    init() throws {
        thread = try EventLoopThread(name: "client") { _ in }
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe thread.loop.asUnownedSerialExecutor() }

    /// Returns the driver, which keeps 64 idle connections.
    func driver() throws -> Driver {
        if let made { return made }
        let driver = try Driver(thread.loop, maxIdle: 64)
        made = driver
        return driver
    }

    /// Runs one transfer, on `handle` or a new one. `script` changes the recorder, which else discards all input.
    func fetch(
        _ url: String, script: @Sendable (Recorder, EasyHandle, Driver) throws -> Void = { _, _, _ in }
    ) async throws -> Outcome {
        let handle = try EasyHandle()
        return try await fetch(url, on: handle, script: script)
    }

    /// Runs several transfers in sequence on one handle.
    func fetch(_ url: String, times: Int) async throws -> Outcome {
        let handle = try EasyHandle()
        var outcome = Outcome()
        for _ in 0..<times { outcome = try await fetch(url, on: handle, script: { _, _, _ in }) }
        return outcome
    }

    /// Runs transfers in sequence on one handle, twice to each address, which is parsed beforehand.
    /// Returns the lengths of the bodies.
    func fetch(addresses: [String]) async throws -> [Int] {
        let handle = try EasyHandle()
        var sizes: [Int] = []
        for address in addresses {
            // The parsed address overrides the option `url`.
            _ = try await fetch("http://127.0.0.1:1/", on: handle) { _, handle, _ in try handle.setAddress(address) }
            sizes.append(try await fetch("http://127.0.0.1:1/", on: handle, script: { _, _, _ in }).body.count)
        }
        return sizes
    }

    func fetch(
        _ url: String, on handle: EasyHandle,
        script: @Sendable (Recorder, EasyHandle, Driver) throws -> Void = { _, _, _ in }
    ) async throws -> Outcome {
        let driver = try driver()
        let recorder = Recorder()
        try handle.set(.url, url)
        try handle.set(.timeout, .seconds(180))
        // With a sanitizer more than libcurl's default of two minutes may pass between two transfers.
        try handle.set(.maxIdleAge, 3600)
        try script(recorder, handle, driver)
        return try await withCheckedThrowingContinuation { done in
            recorder.onEnd = { done.resume(returning: $0) }
            do { try driver.start(handle, recorder) } catch { done.resume(throwing: error) }
        }
    }

    /// Runs `body` on the loop's thread.
    func with<Result: Sendable>(_ body: @Sendable (Driver, EventLoop) throws -> Result) throws -> Result {
        try body(driver(), thread.loop)
    }

    /// Ends the thread. The client cannot be used afterwards.
    func close() {
        if let made { thread.loop.remove(made) }
        made = nil
        thread.loop.stop()
    }
}

/// Delegate that records all input and acts as the test scripts.
final class Recorder: TransferDelegate {
    var onHeader: (Outcome) -> Bool = { _ in true }
    /// Called with the size of each piece of the body.
    var onBody: (Int) -> BodyDisposition = { _ in .consumed }
    /// Called with the free space; the promised bytes are `y` each.
    var onNeed: (Int) -> BodySupply = { _ in .end }
    var onRewind: (Int64) -> Bool = { _ in false }
    var onSend: (Int) -> Bool = { _ in true }
    var onEnd: (Outcome) -> Void = { _ in }
    private(set) var outcome = Outcome()

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool {
        outcome.head += unsafe String(decoding: headerLine, as: UTF8.self)
        return onHeader(outcome)
    }

    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition {
        let disposition = onBody(body.count)
        if case .consumed = disposition { unsafe outcome.body.append(contentsOf: body) }
        return disposition
    }

    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        let supply = onNeed(buffer.count)
        if case .bytes(let count) = supply {
            for index in 0..<min(count, buffer.count) { unsafe buffer[index] = UInt8(ascii: "y") }
        }
        return supply
    }

    func transferRewinds(to offset: Int64) -> Bool { onRewind(offset) }

    func transferWillSend(attempt: Int) -> Bool {
        outcome.attempts.append(attempt)
        return onSend(attempt)
    }

    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        outcome.error = error
        outcome.status = handle.responseCode
        outcome.connections = handle.connectionCount
        outcome.text = handle.errorText
        onEnd(outcome)
    }
}

/// Timer that fires once, at a moment that the test chooses.
final class Alarm: TimerHandler {
    private let action: () -> Void

    init(_ loop: EventLoop, after delay: Duration, _ action: @escaping () -> Void) {
        self.action = action
        _ = loop.schedule(at: loop.now + delay, self)
    }

    func timerFired(tag: UInt64) { action() }
}
