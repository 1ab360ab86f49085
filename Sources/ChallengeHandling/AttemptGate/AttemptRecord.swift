// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// The part of an attempt gate that outlives a process: latches, marks of acceptance, steps of one-time passwords.
public struct AttemptRecord: Sendable, Equatable {
    /// The values that were rejected.
    public var latches = LatchTable()
    /// The values that were accepted.
    public var acceptances = AcceptanceTable()
    /// The steps of one-time passwords that were used.
    public var codes = UsedCodes()

    /// An empty record.
    public init() {}

    /// Carries out one change.
    public mutating func apply(_ change: AttemptChange) {
        switch change {
        case .accept(let key, let digest, let acceptance): acceptances.accept(key, digest: digest, acceptance)
        case .close(let key, let digest, let latch):
            latches.close(key, digest: digest, latch)
            acceptances.remove(key, digest: digest)
        case .unlatch(let challenge): _ = latches.unlatch(challenge: challenge)
        case .use(let seed, let end, let now):
            codes.removeDistant(now: now)
            codes.use(seed, stepEnding: end)
        case .withdraw(let key, let digest): acceptances.remove(key, digest: digest)
        }
    }

    /// Takes over what `other` has more, of which `change` was the last. A mark that it took away does not come back.
    public mutating func merge(_ other: AttemptRecord, after change: AttemptChange? = nil) {
        latches.merge(other.latches)
        acceptances.merge(other.acceptances)
        codes.merge(other.codes)
        switch change {
        case .close(let key, let digest, _), .withdraw(let key, let digest): acceptances.remove(key, digest: digest)
        case .accept, .unlatch, .use, nil: break
        }
    }
}

/// A change of an `AttemptRecord`. Values are known by their keyed digests.
public enum AttemptChange: Sendable, Equatable {
    /// The server accepted a value.
    case accept(LatchKey, digest: [UInt8], Acceptance)
    /// A latch closes for a value, which does not count as accepted any more.
    case close(LatchKey, digest: [UInt8], Latch)
    /// The latches of a challenge open, those of earlier values, too; `nil`: those of all challenges.
    case unlatch(challenge: String?)
    /// The step of a one-time password that ends at `end` is used at `now`, both in milliseconds since 1970.
    case use(seed: String, end: Int64, now: Int64)
    /// A value does not count as accepted any more.
    case withdraw(LatchKey, digest: [UInt8])
}

/// The place of an attempt gate's record. Other processes may use the same place.
public protocol AttemptStore: Sendable {
    /// Returns what is kept. A part that cannot be read is empty.
    func load() -> AttemptRecord
    /// Carries out `change` on what is kept, with all that `record` has besides, durably before it returns. Returns the sum; `nil` if it
    /// could not be kept.
    func keep(_ change: AttemptChange, of record: AttemptRecord) -> AttemptRecord?
    /// A keyed digest of the value that `credential` has now: the same after a restart, another for another value. It tells nothing else.
    func digest(of credential: Credential) -> [UInt8]
}

/// A store that keeps nothing, for programs whose credentials live no longer than they do.
public struct UnkeptAttempts: AttemptStore {
    private let seed = UInt64.random(in: .min ... .max)

    /// A store.
    public init() {}

    /// Nothing.
    public func load() -> AttemptRecord { AttemptRecord() }

    /// Nothing: the gate's own memory is all there is.
    public func keep(_ change: AttemptChange, of record: AttemptRecord) -> AttemptRecord? { nil }

    /// A digest under this process's own key.
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
