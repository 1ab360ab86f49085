// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// The latches of this host and those that the fleet shares: a value that any host was told is wrong is sent by none.
///
/// The fleet's are known by a digest under its own key; a host that comes later reads them before it sends a credential (see
/// `EngineReply.granted`). What this host closes stays with what it has to tell until the engine has taken note of it.
package final class FleetLatches: LatchBook {
    private struct State: Sendable {
        /// As the engine had them last.
        var shared: [String: SharedLatch] = [:]
        /// The count of changes up to which that is so.
        var count: UInt64 = 0
        /// What was closed here, and the engine has not taken note of.
        var untold: [String: SharedLatch] = [:]
        /// The value of each credential that was last looked up here.
        var looked: [LatchKey: LookedUp] = [:]
    }

    /// A credential's value, by the fleet's digests and by this host's.
    private struct LookedUp: Sendable {
        var digests: [String]
        var version: [UInt8]
    }

    /// So many credentials are remembered as looked up.
    private static let mostLooked = 1024

    private let local: any LatchBook
    private let digests: FleetDigests
    private let now: @Sendable () -> Int64
    private let onClose: Mutex<(@Sendable () -> Void)?> = Mutex(nil)
    private let state = Mutex(State())

    /// The latches of this host, `local`, and those of the fleet; `now` tells milliseconds since 1970.
    package init(local: any LatchBook, digests: FleetDigests, now: @escaping @Sendable () -> Int64) {
        self.local = local
        self.digests = digests
        self.now = now
    }

    /// Has `body` called whenever there is something to tell the engine, on any thread; `nil`: nobody is told any more.
    func watch(_ body: (@Sendable () -> Void)?) { onClose.withLock { $0 = body } }

    /// This host's latch, or the fleet's.
    package func closedLatch(_ key: LatchKey, for credential: Credential, now: Int64) -> Latch? {
        if let latch = local.closedLatch(key, for: credential, now: now) { return latch }
        let known = state.withLock { $0.shared.isEmpty && $0.untold.isEmpty ? nil : $0 }
        guard let known else { return nil }
        let looked = digests.digests(of: credential, rejectedFor: key)
        note(looked, of: credential, for: key)
        for digest in looked {
            guard let latch = (known.untold[digest] ?? known.shared[digest])?.latch else { continue }
            if latch.opensAt.map({ $0 > now }) ?? true { return latch }
        }
        return nil
    }

    /// Closes it here, durably, and has the fleet told.
    package func close(_ key: LatchKey, for credential: Credential, _ latch: Latch) {
        local.close(key, for: credential, latch)
        let looked = digests.digests(of: credential, rejectedFor: key)
        note(looked, of: credential, for: key)
        guard let digest = looked.first else { return }
        let shared = SharedLatch(digest: digest, challenge: key.challenge, latch: latch)
        state.withLock { $0.untold[digest] = shared }
        onClose.withLock { $0 }?()
    }

    private func note(_ digests: [String], of credential: Credential, for key: LatchKey) {
        let looked = LookedUp(digests: digests, version: local.version(of: credential))
        state.withLock { state in
            if state.looked.count >= Self.mostLooked, state.looked[key] == nil { state.looked.removeAll() }
            state.looked[key] = looked
        }
    }

    /// This host's mark: what was accepted is shared with nobody.
    package func acceptance(_ key: LatchKey, of credential: Credential) -> Acceptance? {
        local.acceptance(key, of: credential)
    }

    /// Keeps a mark of this host.
    package func accept(_ key: LatchKey, _ credential: Credential, _ acceptance: Acceptance) {
        local.accept(key, credential, acceptance)
    }

    /// Takes this host's mark away.
    package func withdrawAcceptance(_ key: LatchKey, of credential: Credential) {
        local.withdrawAcceptance(key, of: credential)
    }

    /// This host's digest.
    package func version(of credential: Credential) -> [UInt8] { local.version(of: credential) }

    // MARK: The fleet's

    /// The count of changes up to which the fleet's are known.
    var count: UInt64 { state.withLock { $0.count } }

    /// What the engine is to be told.
    package var untold: [SharedLatch] { state.withLock { Array($0.untold.values) } }

    /// The engine has taken note of these.
    package func told(_ latches: [SharedLatch]) {
        state.withLock { state in
            for latch in latches where state.untold[latch.digest] == latch {
                state.untold[latch.digest] = nil
                state.shared[latch.digest] = latch
            }
        }
    }

    /// All that the engine has. Returns the challenges whose latches somebody has opened since. An engine that knows of none, and counts
    /// from the beginning, has lost them: it is told of them again.
    package func read(_ latches: [SharedLatch], count: UInt64) -> Set<String> {
        let opened = state.withLock { state -> Set<String> in
            if count == 0, state.count > 0 {
                state.untold.merge(state.shared) { own, _ in own }
                state.count = 0
                return []
            }
            guard count >= state.count else { return [] }
            let now = self.now()
            let before = Set(
                state.shared.values.filter { $0.latch.opensAt.map { $0 > now } ?? true }.map(\.challenge))
            state.shared = Dictionary(latches.map { ($0.digest, $0) }) { _, last in last }
            state.count = count
            return before.subtracting(latches.map(\.challenge)).subtracting(state.untold.values.map(\.challenge))
                .subtracting([""])
        }
        if !untold.isEmpty { onClose.withLock { $0 }?() }
        return opened
    }

    /// An operator has opened those of a challenge; returns how many there were.
    func forget(_ challenge: String) -> Int {
        state.withLock { state in
            let closed = Set(state.shared.keys).union(state.untold.keys)
            state.shared = state.shared.filter { $0.value.challenge != challenge }
            state.untold = state.untold.filter { $0.value.challenge != challenge }
            return closed.subtracting(state.shared.keys).subtracting(state.untold.keys).count
        }
    }

    // MARK: One-time passwords

    private static let stepMark = "step "

    /// When the last steps that any host has used end, by the seed's digest, in milliseconds since 1970.
    var usedSteps: [String: Int64] {
        state.withLock { state in
            var steps: [String: Int64] = [:]
            for latch in Array(state.shared.values) + state.untold.values {
                guard latch.digest.hasPrefix(Self.stepMark), let end = latch.latch.opensAt else { continue }
                let seed = String(latch.digest.dropFirst(Self.stepMark.count))
                steps[seed] = max(end, steps[seed] ?? .min)
            }
            return steps
        }
    }

    /// This host has used these steps, among them those that are known.
    func used(_ steps: [String: Int64]) {
        let now = self.now()
        let known = usedSteps
        for (seed, end) in steps where end > now && end > known[seed] ?? .min {
            let latch = SharedLatch(
                digest: Self.stepMark + seed, challenge: "",
                latch: Latch(reason: .rejected, closedAt: now, opensAt: end))
            state.withLock { $0.untold[latch.digest] = latch }
        }
        if !untold.isEmpty { onClose.withLock { $0 }?() }
    }

    /// The fleet's latches that are closed at `now` (milliseconds since 1970), by challenge; not those of values that this host's
    /// credentials do not have (any more). `isReplaced` says of a value's digest here if the credential of that name has another now.
    package func closed(
        now: Int64, isReplaced: (_ version: [UInt8], _ name: String) -> Bool = { _, _ in false }
    ) -> [(challenge: String, latch: Latch)] {
        let (latches, looked) = state.withLock { state in
            (state.shared.merging(state.untold) { _, own in own }.values, state.looked)
        }
        return latches.compactMap { shared in
            guard !shared.challenge.isEmpty, shared.latch.opensAt.map({ $0 > now }) ?? true else { return nil }
            let values = looked.filter { $0.key.challenge == shared.challenge }
            let isPresent = values.contains { key, value in
                value.digests.contains(shared.digest) && !isReplaced(value.version, key.credential)
            }
            return isPresent || values.isEmpty ? (shared.challenge, shared.latch) : nil
        }
    }
}
