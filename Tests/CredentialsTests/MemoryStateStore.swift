// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization

/// A state store that can be made to fail.
final class MemoryStateStore: StateStore {
    private struct State {
        var values: [String: Secret] = [:]
        var failure: StateError?
        var saves = 0
    }

    private let state = Mutex(State())

    func load(_ name: String) throws(StateError) -> Secret? {
        state.withLock { $0.values[name] }
    }

    func save(_ value: Secret, as name: String) throws(StateError) {
        try state.withLock { state throws(StateError) in
            if let failure = state.failure { throw failure }
            state.values[name] = value
            state.saves += 1
        }
    }

    func remove(_ name: String) throws(StateError) {
        state.withLock { _ = $0.values.removeValue(forKey: name) }
    }

    /// What every save fails with from now on.
    func fail(_ failure: StateError?) {
        state.withLock { $0.failure = failure }
    }

    var values: [String: Secret] { state.withLock(\.values) }
}
