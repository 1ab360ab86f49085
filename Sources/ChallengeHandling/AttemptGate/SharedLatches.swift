// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Latches and used one-time passwords that the nodes share, as known to this node.
///
/// Latches are identified by digests with the common key of the nodes. A node that joins later reads them before it sends a
/// credential (see `StoreReply.granted`). Additions of this node stay unreported until the session store has confirmed them.
package struct SharedLatches: Sendable {
    /// Maximum number of credentials with a recorded value.
    private static let maxValues = 1024

    /// Latches as last read from the session store.
    private var known: [String: SharedLatch] = [:]
    private var knownCodes = UsedCodes()
    /// Number of changes covered by the last read.
    package private(set) var count: UInt64 = 0
    /// Latches closed by this node that the session store has not confirmed.
    private var unreported: [String: SharedLatch] = [:]
    /// One-time passwords used by this node that the session store has not confirmed.
    package private(set) var unreportedCodes = UsedCodes()
    /// Value of each credential as last looked up by this node.
    private var values: [LatchKey: AttemptDigests] = [:]

    /// Creates an empty set.
    package init() {}

    /// Number that increases with each new unreported latch or one-time password.
    package private(set) var revision: UInt64 = 0

    /// Latches that the session store has not confirmed.
    package var unreportedLatches: [SharedLatch] { Array(unreported.values) }

    /// Returns the closed latch of a value.
    func latch(_ value: AttemptDigests, now: Int64) -> Latch? {
        for digest in value.shared {
            guard let latch = (unreported[digest] ?? known[digest])?.latch, latch.isClosed(at: now) else { continue }
            return latch
        }
        return nil
    }

    /// Records the current value of a credential.
    mutating func recordValue(_ value: AttemptDigests, of key: LatchKey) {
        guard !value.shared.isEmpty else { return }
        if values.count >= Self.maxValues, values[key] == nil { values.removeAll() }
        values[key] = value
    }

    /// Returns the values of this node whose latches are closed at `now` (ms since 1970).
    func latchedValues(now: Int64) -> [LatchKey: AttemptDigests] { values.filter { latch($0.value, now: now) != nil } }

    /// Closes a latch of this node.
    mutating func close(_ key: LatchKey, _ value: AttemptDigests, _ latch: Latch) {
        recordValue(value, of: key)
        guard let digest = value.shared.first else { return }
        unreported[digest] = SharedLatch(digest: digest, challenge: key.challenge, latch: latch)
        revision &+= 1
    }

    /// Removes latches from the unreported ones after the session store has confirmed them.
    package mutating func confirmLatches(_ latches: [SharedLatch]) {
        for latch in latches where unreported[latch.digest] == latch {
            unreported[latch.digest] = nil
            known[latch.digest] = latch
        }
    }

    /// Removes one-time passwords from the unreported ones after the session store has confirmed them.
    package mutating func confirmCodes(_ codes: UsedCodes) {
        knownCodes.merge(codes)
        unreportedCodes = UsedCodes(
            ends: unreportedCodes.ends.filter { seed, end in codes.ends[seed].map { end > $0 } ?? true })
    }

    /// Merges the records of the session store. Returns the challenges whose latches were opened since the last read.
    ///
    /// A store without a count has lost its data, so all known records are reported to the store again.
    package mutating func merge(_ attempts: SharedAttempts, now: Int64) -> Set<String> {
        if attempts.count == 0, count > 0 {
            unreported.merge(known) { own, _ in own }
            unreportedCodes.merge(knownCodes)
            count = 0
            return []
        }
        guard attempts.count >= count else { return [] }
        let before = Set(known.values.filter { $0.latch.isClosed(at: now) }.map(\.challenge))
        known = Dictionary(attempts.latches.map { ($0.digest, $0) }) { _, last in last }
        knownCodes = attempts.usedCodes
        count = attempts.count
        return before.subtracting(attempts.latches.map(\.challenge)).subtracting(unreported.values.map(\.challenge))
    }

    /// Opens the latches of a challenge, or all for `nil`; returns their number.
    mutating func unlatch(_ challenge: String?) -> Int {
        let closed = Set(known.keys).union(unreported.keys)
        known = known.filter { challenge != nil && $0.value.challenge != challenge }
        unreported = unreported.filter { challenge != nil && $0.value.challenge != challenge }
        return closed.subtracting(known.keys).subtracting(unreported.keys).count
    }

    /// Used steps of one-time passwords on any node.
    var usedCodes: UsedCodes {
        var codes = knownCodes
        codes.merge(unreportedCodes)
        return codes
    }

    /// Marks a step of a one-time password as used by this node.
    mutating func use(_ seed: String, stepEnding end: Int64, now: Int64) {
        unreportedCodes.removeDistant(now: now)
        unreportedCodes.use(seed, stepEnding: end)
        revision &+= 1
    }

    /// Returns the latches that are closed at `now` (ms since 1970).
    ///
    /// Leaves out latches of values that no credential of this node has any more. `isReplaced` returns true for a digest of this
    /// node if the credential of that name now has another value.
    func closed(
        now: Int64, isReplaced: (_ digest: [UInt8], _ name: String) -> Bool
    ) -> [ClosedLatch] {
        known.merging(unreported) { _, own in own }.values.compactMap { shared in
            guard shared.latch.isClosed(at: now) else { return nil }
            let values = values.filter { $0.key.challenge == shared.challenge }
            let isPresent = values.contains { key, value in
                value.shared.contains(shared.digest) && !isReplaced(value.own, key.credential)
            }
            return isPresent || values.isEmpty
                ? ClosedLatch(shared.latch, challenge: shared.challenge, key: nil) : nil
        }
    }
}

/// Latches and used one-time passwords at the session store.
package struct SharedAttempts: Sendable, Equatable {
    /// Number of changes of latches and one-time passwords.
    package var count: UInt64
    /// All closed latches.
    package var latches: [SharedLatch]
    /// Last used step of each seed.
    package var usedCodes: UsedCodes

    /// Creates records of the session store.
    package init(count: UInt64, latches: [SharedLatch] = [], usedCodes: UsedCodes = UsedCodes()) {
        self.count = count
        self.latches = latches
        self.usedCodes = usedCodes
    }
}

/// Latch as all nodes know it, identified by a digest with their common key.
package struct SharedLatch: Sendable, Equatable {
    /// Keyed digest, in hexadecimal, of the value and of what it was rejected for.
    package var digest: String
    /// Name of the challenge, for an operator's `unlatch`.
    package var challenge: String
    /// Reason and times.
    package var latch: Latch

    /// Creates a latch.
    package init(digest: String, challenge: String, latch: Latch) {
        self.digest = digest
        self.challenge = challenge
        self.latch = latch
    }
}
