// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// When the sessions of an area end by themselves: with a request that a test names, or after their life.
package final class SessionEnd: Sendable {
    private struct State {
        var requestsLeft = 0
        var life: Int?
    }

    private let state = Mutex(State())

    /// All sessions end once so many more requests have been served.
    package func comes(afterRequests count: Int) { state.withLock { $0.requestsLeft = count } }

    /// Each session from now on lives so many seconds, which its cookie says; `nil`: until something else ends it.
    package func comes(afterSeconds seconds: Int?) { state.withLock { $0.life = seconds } }

    /// What a session's cookie says of its end.
    var attributes: String { state.withLock { $0.life }.map { "; Max-Age=\($0)" } ?? "" }

    /// When a session that begins now ends.
    var instant: ContinuousClock.Instant? {
        state.withLock { $0.life }.map { ContinuousClock.now + .seconds($0) }
    }

    /// A request is served. Whether it is the last before all sessions end.
    func isLast() -> Bool {
        state.withLock { state in
            guard state.requestsLeft > 0 else { return false }
            state.requestsLeft -= 1
            return state.requestsLeft == 0
        }
    }
}

extension ContinuousClock.Instant? {
    /// Whether it is over; never, where there is none.
    var isOver: Bool { map { ContinuousClock.now >= $0 } ?? false }
}
