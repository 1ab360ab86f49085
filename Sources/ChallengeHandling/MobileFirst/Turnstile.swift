// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Lets one conversation through at a time, in the order in which they came.
///
/// A security check's state belongs to the client at the server, so two logins of one client at once would both be
/// challenged and both answer: a wrong PIN would be sent twice.
///
/// A task that is cancelled gives up its turn, or its place among those that wait, whatever it still does: a login that hangs for
/// ever must not keep all others from theirs.
final class Turnstile: Sendable {
    private struct State {
        /// The turn that is under way.
        var present: UInt64?
        var last: UInt64 = 0
        var waiting: [(turn: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    private let state = Mutex(State())

    /// Does `body` when it is this caller's turn. Throws a failure of `challenge` where the task is cancelled before.
    func inTurn<Value: Sendable>(
        of challenge: String, _ body: () async throws(LoginFailure) -> Value
    ) async throws(LoginFailure) -> Value {
        let turn = state.withLock { state in
            state.last &+= 1
            return state.last
        }
        let result: Result<Value, LoginFailure> = await withTaskCancellationHandler {
            guard await enter(turn) else { return .failure(.cancelled(challenge)) }
            defer { leave(turn) }
            do throws(LoginFailure) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        } onCancel: {
            leave(turn)
        }
        return try result.get()
    }

    /// Returns when it is that turn; `false`: the task is cancelled.
    private func enter(_ turn: UInt64) async -> Bool {
        await withCheckedContinuation { continuation in
            let isLetIn: Bool? = state.withLock { state in
                // Under the lock: whoever is cancelled after this is found by `leave`.
                if Task.isCancelled { return false }
                guard state.present != nil else {
                    state.present = turn
                    return true
                }
                state.waiting.append((turn, continuation))
                return nil
            }
            if let isLetIn { continuation.resume(returning: isLetIn) }
        }
    }

    /// That turn is over, or its caller waits no more. Does nothing where it was over before.
    private func leave(_ turn: UInt64) {
        let told: (continuation: CheckedContinuation<Bool, Never>, isLetIn: Bool)? = state.withLock { state in
            if state.present == turn {
                state.present = nil
                guard !state.waiting.isEmpty else { return nil }
                let next = state.waiting.removeFirst()
                state.present = next.turn
                return (next.continuation, true)
            }
            guard let index = state.waiting.firstIndex(where: { $0.turn == turn }) else { return nil }
            return (state.waiting.remove(at: index).continuation, false)
        }
        told?.continuation.resume(returning: told?.isLetIn ?? false)
    }
}

extension LoginFailure {
    /// The login was given up before its turn came.
    fileprivate static func cancelled(_ challenge: String) -> LoginFailure {
        LoginFailure(
            .timedOut, challenge: challenge, detail: "The login was given up while it waited for another to end.",
            isCancelled: true)
    }
}
