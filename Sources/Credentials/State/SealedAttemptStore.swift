// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Crypto
internal import FoundationEssentials
internal import Secrets

/// The attempt record of this daemon in sealed files, so that a closed latch survives `kill -9`.
///
/// All reads and writes run on the state thread. A caller continues at once and is notified when the record is on disk.
///
/// A value is identified by HMAC-SHA256 over the fields of its credential, with a key in the same store. The state therefore
/// neither reveals if two credentials are equal, nor allows guessing values.
package final class SealedAttemptStore: AttemptStore {
    private static let keyName = "latch-key"
    private static let latchesName = "latches"
    private static let acceptancesName = "accepted-credentials"
    private static let codesName = "totp-steps"
    private static let submissionsName = "submissions"

    private let files: any StateFiles
    private let thread: StateThread
    private let onFailure: @Sendable (StateError, [AttemptChange]) -> Void
    private let key: Secret
    /// The record as the start has read it. A second read might fail, and would leave rejected values open.
    private let recordAtStart: AttemptRecord

    /// Creates a store in `files`, which `thread` reads and writes. Blocks until the record is read.
    ///
    /// `onFailure` is called on any thread with the changes that could not be stored. Throws if a stored table cannot be read, because an
    /// unreadable latch must not count as open.
    package init(
        files: any StateFiles, thread: StateThread,
        onFailure: @escaping @Sendable (StateError, [AttemptChange]) -> Void = { _, _ in }
    ) throws(StateError) {
        self.files = files
        self.thread = thread
        self.onFailure = onFailure
        (recordAtStart, key) = try thread.wait { () throws(StateError) in
            // In one turn: another process that begins at the same time may close a latch after it has made the key.
            try files.exclusively { () throws(StateError) in
                let record = try Self.read(files)
                return (record, try Self.key(files, of: record))
            }
        }
    }

    /// Creates a store in `state`.
    package convenience init(
        in state: SealedStateStore,
        onFailure: @escaping @Sendable (StateError, [AttemptChange]) -> Void = { _, _ in }
    ) throws(StateError) {
        try self.init(files: state.files, thread: state.thread, onFailure: onFailure)
    }

    /// Returns the record as it was when this store was created.
    package func load() -> AttemptRecord { recordAtStart }

    /// Applies `changes` to the stored record, and calls `done` on the state thread once they are on disk.
    ///
    /// Changes of another process (`countersign login`) are preserved.
    package func store(
        _ changes: [AttemptChange], of record: AttemptRecord, done: @escaping @Sendable (AttemptRecord?) -> Void
    ) {
        let isQueued = thread.enqueue { [self] in
            do throws(StateError) {
                done(
                    changes.isEmpty
                        ? try write(changes, of: record)
                        : try files.exclusively { () throws(StateError) in try write(changes, of: record) })
            } catch {
                fail(changes, error, done)
            }
        }
        if !isQueued { fail(changes, StateThread.isFull, done) }
    }

    private func fail(
        _ changes: [AttemptChange], _ error: StateError, _ done: @Sendable (AttemptRecord?) -> Void
    ) {
        // A failed read does no harm: the latches in memory still count.
        if !changes.isEmpty { onFailure(error, changes) }
        done(nil)
    }

    private func write(_ changes: [AttemptChange], of record: AttemptRecord) throws(StateError) -> AttemptRecord {
        let before = try Self.read(files)
        var stored = before
        for change in changes { stored.apply(change) }
        var sum = record
        sum.merge(stored, then: changes)
        guard !changes.isEmpty else { return sum }
        // Includes changes that could not be stored before.
        if sum.latches != before.latches { try save(sum.latches.serialized(), as: Self.latchesName) }
        if sum.submissions != before.submissions {
            try save(sum.submissions.serialized(), as: Self.submissionsName)
        }
        if sum.codes != before.codes { try save(sum.codes.serialized(), as: Self.codesName) }
        // Stored after the latches. Acceptances that only another process has changed are not written.
        if stored.acceptances != before.acceptances {
            try save(sum.acceptances.serialized(), as: Self.acceptancesName)
        }
        return sum
    }

    private func save(_ bytes: [UInt8], as name: String) throws(StateError) { try files.save(Secret(bytes), as: name) }

    private static func read(_ files: any StateFiles) throws(StateError) -> AttemptRecord {
        var record = AttemptRecord()
        if let table = try table(latchesName, in: files, "to open all latches", LatchTable.init(parsing:)) {
            record.latches = table
        }
        if let table = try table(
            submissionsName, in: files, "to forget what was submitted", SubmissionTable.init(parsing:))
        {
            record.submissions = table
        }
        if let table = try table(
            acceptancesName, in: files, "to forget which values were accepted", AcceptanceTable.init(parsing:))
        {
            record.acceptances = table
        }
        if let table = try table(
            codesName, in: files, "to forget which one-time passwords were used", UsedCodes.init(parsing:))
        {
            record.codes = table
        }
        return record
    }

    /// Returns the table in the file of that name; `nil` if there is none. One that cannot be read must not count as empty.
    private static func table<Table>(
        _ name: String, in files: any StateFiles, _ effect: String, _ parse: ([UInt8]) -> Table?
    ) throws(StateError) -> Table? {
        guard let stored = try files.load(name) else { return nil }
        guard let table = parse(stored.revealBytes()) else {
            throw StateError(
                reason:
                    "the state file \(name).sealed is of another version, or damaged; restore it, or remove it \(effect)"
            )
        }
        return table
    }

    /// Returns the key of digests, and creates it in new state. Throws if only the key is missing: no latch would be of a present
    /// value any more.
    private static func key(_ files: any StateFiles, of record: AttemptRecord) throws(StateError) -> Secret {
        if let stored = try files.load(keyName) { return stored }
        guard record == AttemptRecord() else {
            throw StateError(
                reason:
                    "the state file \(keyName).sealed is missing, without which nothing tells whose the latches are; "
                    + "restore it, or remove \(latchesName).sealed, \(submissionsName).sealed, \(acceptancesName).sealed and "
                    + "\(codesName).sealed to start without them")
        }
        var fresh = Sealing.randomBytes(32)
        let key = Secret(taking: &fresh)
        try files.save(key, as: keyName)
        return key
    }

    /// Returns a digest of `text` with the secret key, which others can neither compute nor use for guessing texts.
    package func digest(of text: String) -> [UInt8] {
        CryptoDigests().authenticationCode(.sha256, key: key, of: Array("countersign text 1\0".utf8) + text.utf8)
    }

    /// Returns the keyed digest of all fields.
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
