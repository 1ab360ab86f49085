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

    /// Carries out a change.
    package func keep(_ change: AttemptChange, of record: AttemptRecord) -> AttemptRecord? {
        self.record.withLock { kept in
            kept.apply(change)
            var sum = record
            sum.merge(kept, after: change)
            kept = sum
            return sum
        }
    }

    /// A digest under this store's own key.
    package func digest(of credential: Credential) -> [UInt8] { digests.digest(of: credential) }
}
