// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Part of an attempt gate that survives restarts: latches, acceptances, submissions, used steps of one-time passwords.
public struct AttemptRecord: Sendable, Equatable {
    /// Rejected values.
    public var latches = LatchTable()
    /// Accepted values.
    public var acceptances = AcceptanceTable()
    /// Submissions of values that no server has accepted.
    public var submissions = SubmissionTable()
    /// Used steps of one-time passwords.
    public var codes = UsedCodes()

    /// Creates an empty record.
    public init() {}

    /// Applies one change.
    public mutating func apply(_ change: AttemptChange) {
        switch change {
        case .accept(let key, let digest, let acceptance):
            acceptances.accept(key, digest: digest, acceptance)
            submissions.set(key, digest: digest, nil)
        case .close(let key, let digest, let latch):
            latches.close(key, digest: digest, latch)
            acceptances.remove(key, digest: digest)
            submissions.set(key, digest: digest, nil)
        case .count(let key, let digest, let count): submissions.set(key, digest: digest, count)
        case .renew(let challenge, let end): _ = submissions.forget(challenge: challenge, until: end)
        case .unlatch(let challenge, let end):
            _ = latches.unlatch(challenge: challenge, until: end)
            _ = submissions.forget(challenge: challenge, until: end)
        case .use(let seed, let end, let now):
            codes.removeDistant(now: now)
            codes.use(seed, stepEnding: end)
        case .withdraw(let key, let digest): acceptances.remove(key, digest: digest)
        }
    }

    /// Merges `other`, and applies `changes` again so that removed entries do not return.
    ///
    /// Of submissions, those of `other` count: another process may have settled them.
    public mutating func merge(_ other: AttemptRecord, then changes: [AttemptChange] = []) {
        latches.merge(other.latches)
        acceptances.merge(other.acceptances)
        codes.merge(other.codes)
        submissions = other.submissions
        for change in changes { apply(change) }
    }
}

/// Change of an `AttemptRecord`. Values are identified by their keyed digests.
public enum AttemptChange: Sendable, Equatable {
    /// The server accepted a value.
    case accept(LatchKey, digest: [UInt8], Acceptance)
    /// A latch closes for a value, which no longer counts as accepted.
    case close(LatchKey, digest: [UInt8], Latch)
    /// The submissions of a value that no server has accepted; `nil` forgets them.
    case count(LatchKey, digest: [UInt8], SubmissionTable.Count?)
    /// The submissions of a challenge, or of all for `nil`, are forgotten, up to `until` (ms since 1970).
    case renew(challenge: String?, until: Int64)
    /// All latches of a challenge open, including those of earlier values; `nil` means every challenge.
    ///
    /// Those that closed after `until` (ms since 1970) stay closed: the change may be written long after it was made, and another
    /// process may have closed them meanwhile.
    case unlatch(challenge: String?, until: Int64)
    /// The step of a one-time password that ends at `end` is used at `now`, both in ms since 1970.
    case use(seed: String, end: Int64, now: Int64)
    /// A value no longer counts as accepted.
    case withdraw(LatchKey, digest: [UInt8])
}

/// Store of an attempt gate's record, which may be shared with other processes.
public protocol AttemptStore: Sendable {
    /// Returns the stored record. Called only at start, and may block. A store whose latches cannot be read must not be made.
    func load() -> AttemptRecord
    /// Applies `changes` in order to the stored record, and merges `record`. Without changes, only reads.
    ///
    /// Called on an event loop, one call after the other, and must not block. Calls `done` once, on any thread, with the merged
    /// record once it is on disk, or with `nil` if the record could not be stored.
    func store(
        _ changes: [AttemptChange], of record: AttemptRecord, done: @escaping @Sendable (AttemptRecord?) -> Void)
    /// Returns a keyed digest of the current value of `credential`.
    ///
    /// The digest is the same after a restart, differs for another value, and reveals nothing else.
    func digest(of credential: Credential) -> [UInt8]
}

/// Store without storage, for programs whose credentials exist no longer than the process.
public struct UnkeptAttempts: AttemptStore {
    private let seed = UInt64.random(in: .min ... .max)

    /// Creates a store.
    public init() {}

    /// Returns an empty record.
    public func load() -> AttemptRecord { AttemptRecord() }

    /// Stores nothing: only the memory of the gate counts.
    public func store(
        _ changes: [AttemptChange], of record: AttemptRecord, done: @escaping @Sendable (AttemptRecord?) -> Void
    ) { done(record) }

    /// Returns a digest with a key of this process.
    public func digest(of credential: Credential) -> [UInt8] {
        (0..<2).flatMap { half -> [UInt8] in
            var hasher = Hasher()
            hasher.combine(seed)
            hasher.combine(half)
            for (name, value) in credential.fields.sorted(by: { $0.key < $1.key }) {
                hasher.combine(name)
                hasher.combine(value.revealBytes())
            }
            let number = UInt64(bitPattern: Int64(hasher.finalize()))
            return (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        }
    }
}

/// Used steps of one-time passwords, by the seed's digest: servers accept each step once (RFC 6238 §5.2).
public struct UsedCodes: Sendable, Equatable {
    /// Maximum distance of a step from now. An older step is useless, and a step further in the future means that a
    /// clock was wrong.
    private static let longest: Int64 = 2 * 3_600_000

    /// End of the last used step in ms since 1970, by the seed's digest.
    public private(set) var ends: [String: Int64] = [:]

    /// Creates an empty set.
    public init() {}

    /// Creates a set with these ends.
    public init(ends: [String: Int64]) { self.ends = ends }

    /// Returns the end of the last used step of `seed`, if a step ending at `end` must not be used.
    public func usedUntil(_ seed: String, stepEnding end: Int64) -> Int64? {
        ends[seed].flatMap { $0 >= end ? $0 : nil }
    }

    /// Marks the step of `seed` that ends at `end` as used.
    public mutating func use(_ seed: String, stepEnding end: Int64) { ends[seed] = max(end, ends[seed] ?? .min) }

    /// Merges the steps of `other`, keeping the later ones.
    public mutating func merge(_ other: UsedCodes) { ends.merge(other.ends, uniquingKeysWith: max) }

    /// Removes the steps that are far from `now`, in ms since 1970.
    public mutating func removeDistant(now: Int64) {
        let near = now.saturatingSubtract(Self.longest)...now.saturatingAdd(Self.longest)
        ends = ends.filter { near.contains($0.value) }
    }

    /// Returns the steps as bytes to store.
    public func serialized() -> [UInt8] { JSONValue.object(ends.mapValues { .integer($0) }).serialized() }

    /// Parses the bytes of used steps; `nil` for anything else: a step that was used must not count as unused.
    public init?(parsing bytes: [UInt8]) {
        guard let object = JSONValue(parsing: bytes, within: .local)?.objectValue else { return nil }
        ends = object.compactMapValues(\.integerValue)
        guard ends.count == object.count else { return nil }
    }
}
