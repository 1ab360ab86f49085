// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Crypto
internal import FoundationEssentials
internal import Secrets
internal import Synchronization

/// The record of this daemon's attempt gate, kept in a state store: what is closed here is closed after a `kill -9`, too.
///
/// A value is known by HMAC-SHA256 over the credential's fields, under a key that is kept in the same store; so the
/// state tells nobody whether two credentials are alike, nor lets him try values.
package final class SealedAttemptStore: AttemptStore {
    private static let keyName = "latch-key"
    private static let latchesName = "latches"
    private static let acceptancesName = "accepted-credentials"
    private static let codesName = "totp-steps"

    private let store: any StateStore
    private let onFailure: @Sendable (StateError) -> Void
    private let key: Secret
    // One writer at a time.
    private let saving = Mutex<Void>(())

    /// A record in `store`. `onFailure` is told when a change could not be kept. Throws if the latches that are kept cannot be read: one
    /// that is not understood must not be taken for an open one.
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
        _ = try read()
    }

    /// Returns what is kept.
    package func load() -> AttemptRecord { (try? read()) ?? AttemptRecord() }

    /// Carries out `change` on what is kept, durably. What another process (`countersign login`) has kept meanwhile is taken over, lest it be
    /// lost.
    package func keep(_ change: AttemptChange, of record: AttemptRecord) -> AttemptRecord? {
        saving.withLock { _ in
            do throws(StateError) {
                let before = try read()
                var kept = before
                kept.apply(change)
                var sum = record
                sum.merge(kept, after: change)
                switch change {
                case .close, .unlatch: try save(sum.latches.serialized(), as: Self.latchesName)
                case .use: try save(sum.codes.serialized(), as: Self.codesName)
                case .accept, .withdraw: break
                }
                // After the latches. The paths of marks that others' changes do not concern can wait.
                if kept.acceptances != before.acceptances {
                    try save(sum.acceptances.serialized(), as: Self.acceptancesName)
                }
                return sum
            } catch {
                onFailure(error)
                return nil
            }
        }
    }

    private func save(_ bytes: [UInt8], as name: String) throws(StateError) { try store.save(Secret(bytes), as: name) }

    private func read() throws(StateError) -> AttemptRecord {
        var record = AttemptRecord()
        if let kept = try store.load(Self.latchesName) {
            guard let table = LatchTable(parsing: kept.revealBytes()) else {
                throw StateError(
                    reason: "the state \"\(Self.latchesName)\" is of another version; remove it to open all latches")
            }
            record.latches = table
        }
        record.acceptances = AcceptanceTable(parsing: try store.load(Self.acceptancesName)?.revealBytes() ?? [])
        record.codes = UsedCodes(parsing: try store.load(Self.codesName)?.revealBytes() ?? [])
        return record
    }

    /// A digest of a text under the same key, for nobody else to make or to try texts with.
    package func digest(of text: String) -> [UInt8] {
        CryptoDigests().authenticationCode(.sha256, key: key, of: Array("countersign text 1\0".utf8) + text.utf8)
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
