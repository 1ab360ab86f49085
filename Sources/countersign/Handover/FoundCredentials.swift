// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// Credentials that are looked up at once, for a thread that waits for all of them.
final class FoundCredentials: Sendable {
    private struct State: Sendable {
        var left: Int
        var found: [String: Credential] = [:]
    }

    private let state: Mutex<State>
    private let flag = DrainFlag()

    init(waitingFor count: Int) {
        state = Mutex(State(left: count))
        if count == 0 { flag.raise() }
    }

    /// One look-up is over.
    func take(_ name: String, _ credential: Credential?) {
        let isLast = state.withLock { state in
            state.found[name] = credential
            state.left -= 1
            return state.left == 0
        }
        if isLast { flag.raise() }
    }

    /// What was found by then.
    func wait(atMost limit: Duration) -> [String: Credential] {
        _ = flag.wait(atMost: limit)
        return state.withLock { $0.found }
    }
}
