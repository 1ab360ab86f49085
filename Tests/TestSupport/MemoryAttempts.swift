// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// A store of attempts in memory, for gates that come one after the other.
package final class MemoryAttempts: AttemptStore {
    private let record = Mutex(AttemptRecord())
    private let digests = UnkeptAttempts()

    /// An empty store.
    package init() {}

    /// All that is kept.
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

    /// A digest under this store's own key.
    package func digest(of credential: Credential) -> [UInt8] { digests.digest(of: credential) }
}
