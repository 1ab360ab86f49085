// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Outcome that a task waits for. The first of several callers sets it, before the wait begins or after.
package final class OneShot<Outcome: Sendable>: Sendable {
    private typealias Waiting = CheckedContinuation<Outcome, Never>

    private enum State: Sendable {
        case empty
        case awaited(Waiting)
        case set(Outcome)
        case taken
    }

    private let state = Mutex(State.empty)

    /// An outcome that is not set yet.
    package init() {}

    /// Sets the outcome; does nothing if it is set.
    package func finish(_ outcome: Outcome) {
        let waiting = state.withLock { state -> Waiting? in
            switch state {
            case .awaited(let continuation):
                state = .taken
                return continuation
            case .empty: state = .set(outcome)
            case .set, .taken: break
            }
            return nil
        }
        waiting?.resume(returning: outcome)
    }

    /// Waits for the outcome on the caller's executor. Call this once.
    package func wait(isolation: isolated (any Actor)? = #isolation) async -> Outcome {
        await withCheckedContinuation { begin($0) }
    }

    private func begin(_ continuation: Waiting) {
        let outcome = state.withLock { state -> Outcome? in
            guard case .set(let outcome) = state else {
                state = .awaited(continuation)
                return nil
            }
            state = .taken
            return outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
    }
}

/// Callback after the last of several completions, which may come from any thread.
package final class CompletionGroup: Sendable {
    private let left: Atomic<Int>
    private let done: @Sendable () -> Void

    /// Makes a group of `count` completions, at least one; the last one calls `done` on its own thread.
    package init(of count: Int, then done: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.done = done
    }

    /// Counts one completion.
    package func completeOne() {
        if left.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 { done() }
    }
}
