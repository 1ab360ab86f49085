// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The latches that nodes share, as one of them knows them: a value that any node was told is wrong is sent by none.
///
/// They are known by digests under the nodes' own key; a node that comes later reads them before it sends a credential (see
/// `EngineReply.granted`). What is closed here stays with what there is to tell until the engine has taken note of it.
package struct SharedLatches: Sendable {
    /// A credential's value, by the nodes' digests and by this node's.
    private struct LookedUp: Sendable {
        var digests: [String]
        var own: [UInt8]
    }

    /// So many credentials are remembered as looked up.
    private static let mostLooked = 1024
    /// Steps of one-time passwords go by the same way, as latches without a challenge that open when the step is over.
    private static let stepMark = "step "

    /// As the engine had them last.
    private var known: [String: SharedLatch] = [:]
    /// The count of changes up to which that is so.
    package private(set) var count: UInt64 = 0
    /// The latches that were closed here, and that the engine has not taken note of.
    private var unreported: [String: SharedLatch] = [:]
    /// The value of each credential that was last looked up here.
    private var looked: [LatchKey: LookedUp] = [:]

    /// None.
    package init() {}

    /// Moves with everything that is new to tell.
    package private(set) var revision: UInt64 = 0

    /// The latches that the engine is to be told.
    package var untold: [SharedLatch] { Array(unreported.values) }

    /// The latch that is closed for a value.
    func latch(_ value: AttemptDigests, now: Int64) -> Latch? {
        for digest in value.shared {
            guard let latch = (unreported[digest] ?? known[digest])?.latch, latch.isClosed(at: now) else { continue }
            return latch
        }
        return nil
    }

    /// The credential of `key` has this value here.
    mutating func look(_ key: LatchKey, _ value: AttemptDigests) {
        guard !value.shared.isEmpty else { return }
        if looked.count >= Self.mostLooked, looked[key] == nil { looked.removeAll() }
        looked[key] = LookedUp(digests: value.shared, own: value.own)
    }

    /// A latch has closed here.
    mutating func close(_ key: LatchKey, _ value: AttemptDigests, _ latch: Latch) {
        look(key, value)
        guard let digest = value.shared.first else { return }
        unreported[digest] = SharedLatch(digest: digest, challenge: key.challenge, latch: latch)
        revision &+= 1
    }

    /// The engine has taken note of these.
    package mutating func told(_ latches: [SharedLatch]) {
        for latch in latches where unreported[latch.digest] == latch {
            unreported[latch.digest] = nil
            known[latch.digest] = latch
        }
    }

    /// All that the engine has. Returns the challenges whose latches somebody has opened since. An engine that knows of none, and counts
    /// from the beginning, has lost them: it is told of them again.
    package mutating func read(_ latches: [SharedLatch], count: UInt64, now: Int64) -> Set<String> {
        if count == 0, self.count > 0 {
            unreported.merge(known) { own, _ in own }
            self.count = 0
            return []
        }
        guard count >= self.count else { return [] }
        let before = Set(known.values.filter { $0.latch.isClosed(at: now) }.map(\.challenge))
        known = Dictionary(latches.map { ($0.digest, $0) }) { _, last in last }
        self.count = count
        return before.subtracting(latches.map(\.challenge)).subtracting(unreported.values.map(\.challenge))
            .subtracting([""])
    }

    /// An operator has opened those of a challenge, or, with `nil`, all; returns how many there were.
    mutating func unlatch(_ challenge: String?) -> Int {
        let closed = Set(known.keys).union(unreported.keys)
        known = known.filter { challenge != nil && $0.value.challenge != challenge }
        unreported = unreported.filter { challenge != nil && $0.value.challenge != challenge }
        return closed.subtracting(known.keys).subtracting(unreported.keys).count
    }

    /// The last steps of one-time passwords that any node has used.
    var usedCodes: UsedCodes {
        var codes = UsedCodes()
        for latch in Array(known.values) + unreported.values {
            guard latch.digest.hasPrefix(Self.stepMark), let end = latch.latch.opensAt else { continue }
            codes.use(String(latch.digest.dropFirst(Self.stepMark.count)), stepEnding: end)
        }
        return codes
    }

    /// This node has used a step.
    mutating func use(_ seed: String, stepEnding end: Int64, now: Int64) {
        let latch = Latch(reason: .rejected, closedAt: now, opensAt: end)
        unreported[Self.stepMark + seed] = SharedLatch(digest: Self.stepMark + seed, challenge: "", latch: latch)
        revision &+= 1
    }

    /// The latches that are closed at `now` (milliseconds since 1970), by challenge; not those of values that the credentials here do not
    /// have (any more). `isReplaced` says of a value's digest here if the credential of that name has another now.
    func closed(
        now: Int64, isReplaced: (_ digest: [UInt8], _ name: String) -> Bool
    ) -> [ClosedLatch] {
        known.merging(unreported) { _, own in own }.values.compactMap { shared in
            guard !shared.challenge.isEmpty, shared.latch.isClosed(at: now) else { return nil }
            let values = looked.filter { $0.key.challenge == shared.challenge }
            let isPresent = values.contains { key, value in
                value.digests.contains(shared.digest) && !isReplaced(value.own, key.credential)
            }
            return isPresent || values.isEmpty
                ? ClosedLatch(shared.latch, challenge: shared.challenge, key: nil) : nil
        }
    }
}
