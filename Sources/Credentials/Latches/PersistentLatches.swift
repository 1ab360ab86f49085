// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Crypto
internal import FoundationEssentials
internal import Secrets
internal import Synchronization

/// The latches of this daemon, kept in a state store: what is closed here is closed after a `kill -9`, too.
///
/// A value is known by HMAC-SHA256 over the credential's fields, under a key that is kept in the same store; so the
/// state tells nobody whether two credentials are alike, nor lets him try values.
package final class PersistentLatches: LatchBook {
    private static let tableName = "latches"
    private static let keyName = "latch-key"
    private static let acceptedName = "accepted-credentials"
    /// A path of the same value is written again after an hour at the earliest, in milliseconds.
    private static let rewriteAfter: Int64 = 3_600_000

    private let store: any StateStore
    private let onFailure: @Sendable (StateError) -> Void
    private let key: Secret
    private let table: Mutex<LatchTable>
    private let accepted: Mutex<(table: AcceptanceTable, kept: AcceptanceTable)>
    // One writer at a time, and no look-up waits for a disk: hence a lock of its own.
    private let saving = Mutex<Void>(())

    /// The latches kept in `store`. `onFailure` is told when one could not be kept; it is closed in memory all the same.
    package init(
        store: any StateStore, onFailure: @escaping @Sendable (StateError) -> Void = { _ in }
    ) throws(StateError) {
        self.store = store
        self.onFailure = onFailure
        if let kept = try store.load(Self.keyName) {
            key = kept
        } else {
            var fresh = Sealing.randomBytes(32)
            key = Secret(taking: &fresh)
            try store.save(key, as: Self.keyName)
        }
        table = Mutex(try Self.load(from: store))
        let marks = AcceptanceTable(parsing: try store.load(Self.acceptedName)?.revealBytes() ?? [])
        accepted = Mutex((marks, marks))
    }

    /// The latch of the value that `credential` has now; a changed value has none.
    package func closedLatch(_ key: LatchKey, for credential: Credential, now: Int64) -> Latch? {
        let digest = digest(of: credential)
        return table.withLock { $0.closedLatch(key, digest: digest, now: now) }
    }

    /// Closes the latch of this value, in the state directory as well.
    package func close(_ key: LatchKey, for credential: Credential, _ latch: Latch) {
        let digest = digest(of: credential)
        change { $0.close(key, digest: digest, latch) }
        withdraw(key, digest: digest)
    }

    /// The mark of the value that `credential` has now.
    package func acceptance(_ key: LatchKey, of credential: Credential) -> Acceptance? {
        let digest = digest(of: credential)
        return accepted.withLock { $0.table.acceptance(key, digest: digest) }
    }

    /// Keeps a mark in memory, and in the state directory once for each value; its path there is an hour old at the most, or the last.
    package func accept(_ key: LatchKey, _ credential: Credential, _ acceptance: Acceptance) {
        let digest = digest(of: credential)
        let isNews = accepted.withLock { accepted in
            accepted.table.accept(key, digest: digest, acceptance)
            guard let kept = accepted.kept.acceptance(key, digest: digest) else { return true }
            let path = accepted.table.acceptance(key, digest: digest)?.path
            return kept.path != path && acceptance.at - kept.at >= Self.rewriteAfter
        }
        if isNews { changeAccepted { $0.accept(key, digest: digest, acceptance) } }
    }

    /// Takes the mark of this value away, in the state directory as well.
    package func withdrawAcceptance(_ key: LatchKey, of credential: Credential) {
        withdraw(key, digest: digest(of: credential))
    }

    private func withdraw(_ key: LatchKey, digest: [UInt8]) {
        guard accepted.withLock({ $0.table.acceptance(key, digest: digest) }) != nil else { return }
        changeAccepted { $0.remove(key, digest: digest) }
    }

    /// As `change` does for latches.
    private func changeAccepted(_ body: (inout AcceptanceTable) -> Void) {
        accepted.withLock { body(&$0.table) }
        saving.withLock { _ in
            do throws(StateError) {
                var kept = AcceptanceTable(parsing: try store.load(Self.acceptedName)?.revealBytes() ?? [])
                body(&kept)
                let merged = accepted.withLock { accepted in
                    accepted.table.merge(kept)
                    return accepted.table
                }
                try store.save(Secret(merged.serialized()), as: Self.acceptedName)
                accepted.withLock { $0.kept = merged }
            } catch {
                onFailure(error)
            }
        }
    }

    /// The keyed digest by which a latch knows this value.
    package func version(of credential: Credential) -> [UInt8] { digest(of: credential) }

    /// A digest of a text under the same key, for nobody else to make or to try texts with.
    package func digest(of text: String) -> [UInt8] {
        CryptoDigests().authenticationCode(.sha256, key: key, of: Array("countersign text 1\0".utf8) + text.utf8)
    }

    /// Opens all latches of the challenge of that name, for an operator; returns how many there were.
    @discardableResult
    package func unlatch(challenge: String) -> Int {
        var opened = 0
        change { opened = max(opened, $0.unlatch(challenge: challenge)) }
        return opened
    }

    /// All latches that are closed at `now` (milliseconds since 1970), also those of earlier values of a credential.
    package func all(now: Int64) -> [LatchTable.Entry] {
        table.withLock { table in
            table.removeOpened(now: now)
            return table.entries
        }
    }

    /// Changes the table in memory first, then what is kept. What another process (`countersign login`) has kept
    /// meanwhile is taken over, lest it be lost.
    private func change(_ body: (inout LatchTable) -> Void) {
        table.withLock { body(&$0) }
        saving.withLock { _ in
            do throws(StateError) {
                var kept = try Self.load(from: store)
                body(&kept)
                let merged = table.withLock { table in
                    table.merge(kept)
                    return table
                }
                try store.save(Secret(merged.serialized()), as: Self.tableName)
            } catch {
                onFailure(error)
            }
        }
    }

    private static func load(from store: any StateStore) throws(StateError) -> LatchTable {
        guard let kept = try store.load(tableName) else { return LatchTable() }
        guard let table = LatchTable(parsing: kept.revealBytes()) else {
            throw StateError(
                reason: "the state \"\(tableName)\" is of another version; remove it to open all latches")
        }
        return table
    }

    /// The keyed digest of all fields.
    package func digest(of credential: Credential) -> [UInt8] {
        key.withBytes { key in
            unsafe key.withUnsafeBytes { key in
                var code = HMAC<SHA256>(key: unsafe SymmetricKey(data: key))
                credential.canonical.withBytes { bytes in
                    unsafe bytes.withUnsafeBytes { bytes in unsafe code.update(data: bytes) }
                }
                return Array(code.finalize())
            }
        }
    }
}
