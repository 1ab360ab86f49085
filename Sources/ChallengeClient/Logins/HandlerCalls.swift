// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
package import EventLoop
internal import Synchronization

/// Calls the program's challenge handlers, each with a time limit.
package final class HandlerCalls: HandlerCaller {
    private struct State {
        var loop: @Sendable () -> EventLoop? = { nil }
        var last: UInt64 = 0
        var running: [UInt64: @Sendable (LoginFailure) -> Void] = [:]
        var isOver = false
    }

    private let limit: Duration
    private let isApart: Bool
    private let state = Mutex(State())

    /// Creates a caller with the time limit `limit`.
    ///
    /// `isApart`: handlers run on the runtime's own threads, so that a blocking one delays no other work; otherwise on
    /// the loop.
    package init(limit: Duration, isApart: Bool) {
        self.limit = limit
        self.isApart = isApart
    }

    /// Measures time by the loop that `loop` returns.
    package func begin(on loop: @escaping @Sendable () -> EventLoop?) { state.withLock { $0.loop = loop } }

    /// Returns or throws the result of `body`, with a time limit.
    ///
    /// After the limit, or the client's shutdown, throws a `LoginFailure`; the task is cancelled then and no longer
    /// awaited. `challenge` names the handler.
    package func run<Value: Sendable>(
        _ challenge: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let oneShot = OneShot<Result<Value, any Error>>()
        let number = state.withLock { state in
            state.last += 1
            if !state.isOver { state.running[state.last] = { oneShot.finish(.failure($0)) } }
            return state.isOver ? nil : state.last
        }
        guard let number else { throw Self.shutDown(challenge) }
        defer { state.withLock { _ = $0.running.removeValue(forKey: number) } }
        let timer = CallTimer { [limit] in
            oneShot.finish(
                .failure(
                    LoginFailure(
                        .timedOut, challenge: challenge,
                        detail: "The challenge handler of \"\(challenge)\" did not answer within \(limit) "
                            + "(`timeouts.handler`).")))
        }
        guard let loop = state.withLock({ $0.loop })() else { throw Self.shutDown(challenge) }
        loop.execute { [limit] in timer.start(on: loop, after: limit) }
        let call: @Sendable () async -> Void = {
            do {
                oneShot.finish(.success(try await body()))
            } catch {
                oneShot.finish(.failure(error))
            }
        }
        let task = isApart ? Task.detached(operation: call) : Task(executorPreference: loop, operation: call)
        let result = await oneShot.wait()
        task.cancel()
        loop.execute { timer.stop(on: loop) }
        return try result.get()
    }

    /// Ends all waits for handlers after the client's shutdown.
    package func cancelAll() {
        let running = state.withLock { state in
            state.isOver = true
            return state.running.values.map(\.self)
        }
        for cancel in running { cancel(Self.shutDown("")) }
    }

    private static func shutDown(_ challenge: String) -> LoginFailure {
        LoginFailure(
            .failed, challenge: challenge, detail: "The client was shut down while it logged in.", isCancelled: true)
    }
}

/// The time limit of one call, on the loop.
private final class CallTimer: TimerHandler, Sendable {
    private let token = Mutex<(token: TimerToken?, isOver: Bool)>((nil, false))
    private let onExpiry: @Sendable () -> Void

    init(_ onExpiry: @escaping @Sendable () -> Void) { self.onExpiry = onExpiry }

    func start(on loop: EventLoop, after limit: Duration) {
        token.withLock { state in
            if !state.isOver { state.token = loop.schedule(at: loop.now + limit, self) }
        }
    }

    func stop(on loop: EventLoop) {
        token.withLock { state in
            state.isOver = true
            if let token = state.token { loop.cancel(token) }
            state.token = nil
        }
    }

    func timerFired(tag: UInt64) { onExpiry() }
}
