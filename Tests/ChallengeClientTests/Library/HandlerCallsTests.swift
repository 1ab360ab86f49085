// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("Calls of a program's handlers", .timeLimit(.minutes(10)))
struct HandlerCallsTests {
    private struct Own: Error {}

    /// Runs `body` with calls that are timed by a loop, apart from it and on it.
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
            // On a loop that has stopped it would never come to its end.
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
