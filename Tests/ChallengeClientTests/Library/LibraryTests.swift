// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import Synchronization
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("The pipe of a response's body")
struct BodyPipeTests {
    private final class Calls: Sendable {
        private let calls = Mutex<[BodyPipe.Call]>([])

        var count: Int { calls.withLock { $0.count } }
        var last: BodyPipe.Call? { calls.withLock { $0.last } }

        func add(_ call: BodyPipe.Call) { calls.withLock { $0.append(call) } }
    }

    private func pipe() -> (BodyPipe, Calls) {
        let calls = Calls()
        return (BodyPipe { calls.add($0) }, calls)
    }

    @Test("bytes put into a pipe come out, and then the end")
    func order() async throws {
        let (pipe, calls) = pipe()
        pipe.put([1, 2])
        pipe.put([3])
        pipe.finish(.success(()))
        #expect(try await pipe.next().get() == [1, 2, 3])
        #expect(try await pipe.next().get() == nil)
        #expect(calls.count == 0)
    }

    @Test("an error of a pipe comes after the bytes put in before it")
    func error() async throws {
        let (pipe, _) = pipe()
        pipe.put([1])
        pipe.finish(.failure(.shutDown))
        #expect(try await pipe.next().get() == [1])
        #expect(await pipe.next() == .failure(.shutDown))
    }

    @Test("a full pipe reports room again, once")
    func room() async throws {
        let (pipe, calls) = pipe()
        #expect(pipe.hasRoom)
        pipe.put(Array(repeating: 0, count: 70_000))
        #expect(!pipe.hasRoom)
        #expect(calls.count == 0)
        #expect(try await pipe.next().get()?.count == 70_000)
        #expect(calls.last == .room && calls.count == 1)
        #expect(pipe.hasRoom)
    }

    @Test("a reader who wants no more says so once, and reads no more")
    func breakOff() async throws {
        let (pipe, calls) = pipe()
        pipe.put([1])
        pipe.breakOff()
        pipe.breakOff()
        #expect(calls.last == .broken && calls.count == 1)
        #expect(pipe.isBroken)
        await #expect(throws: ClientError.self) { try await pipe.next().get() }
    }

    @Test("a second reader at once is refused, and the first one goes on")
    func twoReaders() async throws {
        let (pipe, _) = pipe()
        let results = await withTaskGroup(of: Result<[UInt8]?, ClientError>.self) { group in
            for _ in 0..<2 { group.addTask { await pipe.next() } }
            let first = await group.next()
            pipe.put([7])
            return [first, await group.next()]
        }
        #expect(results.contains(.success([7])))
        #expect(results.contains { if case .failure(let error)? = $0 { error.kind == .badRequest } else { false } })
    }

    @Test("no byte of a pipe is lost between a thread that fills and a task that reads")
    func concurrent() async throws {
        let (pipe, _) = pipe()
        let total = 200_000
        let filling = Task.detached {
            var sent = 0
            while sent < total {
                guard pipe.hasRoom else {
                    await Task.yield()
                    continue
                }
                pipe.put((0..<100).map { UInt8(truncatingIfNeeded: sent + $0) })
                sent += 100
            }
            pipe.finish(.success(()))
        }
        var received = 0
        var isInOrder = true
        while let piece = try await pipe.next().get() {
            for byte in piece {
                isInOrder = isInOrder && byte == UInt8(truncatingIfNeeded: received)
                received += 1
            }
        }
        await filling.value
        #expect(received == total)
        #expect(isInOrder)
    }
}

@Suite("Calls of a program's handlers", .timeLimit(.minutes(10)))
struct HandlerCallsTests {
    private struct Own: Error {}

    /// Runs `body` with calls timed by a loop: on the loop, or apart from it if `isApart`.
    private func withCalls(_ limit: Duration, isApart: Bool, _ body: (HandlerCalls) async throws -> Void) async throws {
        let thread = try EventLoopThread(name: "calls") { _ in }
        let calls = HandlerCalls(limit: limit, isApart: isApart)
        calls.begin { thread.loop }
        do {
            try await body(calls)
        } catch {
            thread.loop.stop()
            thread.join()
            throw error
        }
        thread.loop.stop()
        thread.join()
    }

    @Test("the result or the error of a handler is passed on", arguments: [true, false])
    func outcome(isApart: Bool) async throws {
        try await withCalls(.seconds(60), isApart: isApart) { calls in
            let value = try await calls.run("x") { 5 }
            #expect(value == 5)
            await #expect(throws: Own.self) { try await calls.run("x") { () -> Int in throw Own() } }
        }
    }

    @Test("a handler that does not answer is given up, whether or not it can be cancelled", arguments: [true, false])
    func late(isApart: Bool) async throws {
        try await withCalls(.milliseconds(50), isApart: isApart) { calls in
            let (stream, continuation) = AsyncStream<Int>.makeStream()
            let (end, ending) = AsyncStream<Void>.makeStream()
            await #expect(throws: LoginFailure.self) {
                try await calls.run("x") {
                    await Task { for await _ in stream {} }.value
                    ending.finish()
                    return 0
                }
            }
            continuation.finish()
            // On a stopped loop the handler would never end.
            for await _ in end {}
        }
    }

    @Test("after a shutdown no running handler is waited for, and none begins")
    func end() async throws {
        try await withCalls(.seconds(60), isApart: true) { calls in
            let (begun, beginning) = AsyncStream<Void>.makeStream()
            let running = Task {
                try await calls.run("x") {
                    beginning.yield()
                    await untilCancelled()
                    return 0
                }
            }
            for await _ in begun { break }
            calls.cancelAll()
            await #expect(throws: LoginFailure.self) { try await running.value }
            await #expect(throws: LoginFailure.self) { try await calls.run("x") { 0 } }
        }
    }

    @Test("many handler calls at once each get their own result")
    func many() async throws {
        try await withCalls(.seconds(60), isApart: true) { calls in
            let sum = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<200 { group.addTask { try await calls.run("x") { number } } }
                return try await group.reduce(0, +)
            }
            #expect(sum == 199 * 200 / 2)
        }
    }
}
