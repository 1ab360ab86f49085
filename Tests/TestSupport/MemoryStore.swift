// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets
internal import Synchronization

/// A state store in memory that can be made to fail, and that a test can look into.
package final class MemoryStore: StateStore {
    private struct State {
        var values: [String: Secret] = [:]
        var saveFailure: StateError?
        var loadFailure: StateError?
        var unreadable: Set<String> = []
    }

    private let state = Mutex(State())
    private let failure: StateError?

    /// Creates an empty store; with `failure`, every call fails with that error.
    package init(failure: StateError? = nil) { self.failure = failure }

    /// The failure of every save for now.
    package var saveFailure: StateError? {
        get { state.withLock { $0.saveFailure } }
        set { state.withLock { $0.saveFailure = newValue } }
    }

    /// The failure of every load for now.
    package var loadFailure: StateError? {
        get { state.withLock { $0.loadFailure } }
        set { state.withLock { $0.loadFailure = newValue } }
    }

    /// Names that cannot be read for now.
    package var unreadable: Set<String> {
        get { state.withLock { $0.unreadable } }
        set { state.withLock { $0.unreadable = newValue } }
    }

    /// All that is kept.
    package var values: [String: Secret] { state.withLock { $0.values } }

    /// The names under which something is kept, in order.
    package var names: [String] { values.keys.sorted() }

    /// Returns the value kept under `name`.
    package func load(_ name: String) throws(StateError) -> Secret? {
        if let failure = failure ?? loadFailure { throw failure }
        if unreadable.contains(name) { throw StateError(reason: "cannot read \(name)") }
        return values[name]
    }

    /// Keeps `value` under `name`.
    package func save(_ value: Secret, as name: String) throws(StateError) {
        if let failure = failure ?? saveFailure { throw failure }
        state.withLock { $0.values[name] = value }
    }

    /// Forgets `name`.
    package func remove(_ name: String) throws(StateError) {
        if let failure { throw failure }
        state.withLock { $0.values[name] = nil }
    }
}

/// A store of attempts in memory, for gates that come one after the other.
package final class MemoryAttempts: AttemptStore {
    private let record = Mutex(AttemptRecord())
    private let digests = UnkeptAttempts()

    /// Creates an empty store.
    package init() {}

    /// Returns the whole record.
    package func load() -> AttemptRecord { record.withLock { $0 } }

    /// Carries out changes, within the call.
    package func store(
        _ changes: [AttemptChange], of record: AttemptRecord, done: @escaping @Sendable (AttemptRecord?) -> Void
    ) {
        let sum = self.record.withLock { kept in
            for change in changes { kept.apply(change) }
            var sum = record
            sum.merge(kept, then: changes)
            if !changes.isEmpty { kept = sum }
            return sum
        }
        done(sum)
    }

    /// Returns a digest under this store's own key.
    package func digest(of credential: Credential) -> [UInt8] { digests.digest(of: credential) }
}
