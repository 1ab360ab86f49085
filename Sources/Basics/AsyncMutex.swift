// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Mutual exclusion of tasks: lets one of them run at a time, in the order of their calls.
///
/// A task that is cancelled releases the mutex, or its place in the queue, even if its body continues: a body that
/// hangs must not block all others.
package final class AsyncMutex: Sendable {
    private struct State {
        /// The turn that is under way.
        var present: UInt64?
        var last: UInt64 = 0
        var waiting: [(turn: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    private let state = Mutex(State())

    /// Makes a free mutex.
    package init() {}

    /// Runs `body` when it is this caller's turn; throws `cancelled` if the task is cancelled before.
    package func withLock<Value: Sendable, Failure: Error>(
        orThrow cancelled: @autoclosure () -> Failure, _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let turn = state.withLock { state in
            state.last &+= 1
            return state.last
        }
        let result: Result<Value, Failure> = await withTaskCancellationHandler {
            guard await enter(turn) else { return .failure(cancelled()) }
            defer { leave(turn) }
            do throws(Failure) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        } onCancel: {
            leave(turn)
        }
        return try result.get()
    }

    /// Number of tasks that wait for their turn.
    var queueLength: Int { state.withLock { $0.waiting.count } }

    /// Returns when the mutex is acquired; `false` if the task is cancelled.
    private func enter(_ turn: UInt64) async -> Bool {
        await withCheckedContinuation { continuation in
            let isLetIn: Bool? = state.withLock { state in
                // Checked under the lock: a task that is cancelled after this is found by `leave`.
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

    /// Releases the mutex, or ends the wait. Does nothing if this was done before.
    private func leave(_ turn: UInt64) {
        let next: (continuation: CheckedContinuation<Bool, Never>, isLetIn: Bool)? = state.withLock { state in
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
        next?.continuation.resume(returning: next?.isLetIn ?? false)
    }
}
