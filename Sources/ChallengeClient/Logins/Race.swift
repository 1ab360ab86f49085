// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Of several who may end a wait the first does, whether the wait has begun by then or not.
final class Race<Outcome: Sendable>: Sendable {
    private typealias Waiting = CheckedContinuation<Outcome, Never>

    private enum State: Sendable {
        case unbegun
        case begun(Waiting)
        case ended(Outcome)
        case over
    }

    private let state = Mutex(State.unbegun)

    /// Begins the wait, which is over at once where it has been ended before. To be called once.
    func begin(_ continuation: CheckedContinuation<Outcome, Never>) {
        let outcome = state.withLock { state -> Outcome? in
            guard case .ended(let outcome) = state else {
                state = .begun(continuation)
                return nil
            }
            state = .over
            return outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
    }

    /// Ends the wait; does nothing where it is ended.
    func end(_ outcome: Outcome) {
        let waiting = state.withLock { state -> Waiting? in
            switch state {
            case .begun(let continuation):
                state = .over
                return continuation
            case .unbegun: state = .ended(outcome)
            case .ended, .over: break
            }
            return nil
        }
        waiting?.resume(returning: outcome)
    }
}
