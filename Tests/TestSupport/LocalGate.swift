// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets
internal import Synchronization

/// An attempt gate for logins that run without a client, and that a test can look into.
package final class LocalGate: AttemptControl {
    private let gate: Mutex<AttemptGate<Int>>
    private let store: any AttemptStore

    /// Creates a gate that keeps its record in `store`.
    package init(store: any AttemptStore = UnkeptAttempts()) {
        self.store = store
        gate = Mutex(AttemptGate(record: store.load()))
    }

    /// All latches that have closed, in that order.
    package var all: [Latch] { gate.withLock { $0.record.latches.entries.map(\.latch) } }
    /// Their keys.
    package var keys: [LatchKey] { gate.withLock { $0.record.latches.entries.map(\.key) } }

    /// Closes a latch.
    package func close(_ key: LatchKey, for credential: Credential, _ latch: Latch) async {
        await record(.rejected(latch), of: CredentialUse(key: key, credential: credential))
    }

    /// Returns the latch that is closed for a value.
    package func closedLatch(_ key: LatchKey, for credential: Credential, now: Int64) -> Latch? {
        let use = CredentialUse(key: key, credential: credential)
        guard case .latched(let latch)? = refusal(of: use, now: now)?.reason else { return nil }
        return latch
    }

    /// Keeps a mark.
    package func accept(_ key: LatchKey, _ credential: Credential, _ acceptance: Acceptance) async {
        await record(.accepted(acceptance), of: CredentialUse(key: key, credential: credential))
    }

    /// Returns the mark of a value.
    package func acceptance(_ key: LatchKey, of credential: Credential) -> Acceptance? {
        acceptance(of: CredentialUse(key: key, credential: credential))
    }

    /// Opens the latches of a challenge; returns how many there were.
    package func unlatch(challenge: String) async -> Int {
        let (opened, change) = gate.withLock { $0.unlatch(challenge, now: .max) }
        await keep(change)
        return opened.present
    }

    private func keep(_ change: AttemptChange?) async {
        if let change { await write([change]) }
    }

    private func write(_ changes: [AttemptChange]) async {
        await withCheckedContinuation { continuation in
            store.store(changes, of: gate.withLock(\.record)) { [self] kept in
                if let kept { gate.withLock { $0.merge(kept) } }
                continuation.resume()
            }
        }
    }

    private func digests(_ use: CredentialUse) -> AttemptDigests {
        AttemptDigests(own: store.digest(of: use.credential))
    }

    // MARK: As logins use it

    /// See `AttemptControl`.
    package func refusal(
        of use: CredentialUse, remaining: SecurityCheckChallenge.RemainingAttempts, keeping: Int, now: Int64
    ) -> AttemptRefusal? {
        gate.withLock { $0.refusal(use.key, digests(use), remaining: remaining, keeping: keeping, now: now) }
    }

    /// See `AttemptControl`.
    package func record(_ outcome: AttemptOutcome, of use: CredentialUse) async {
        await keep(gate.withLock { $0.record(outcome, of: use.key, digests(use)) })
    }

    /// See `AttemptControl`.
    package func pause(of use: CredentialUse, now: Int64) -> AttemptRefusal? {
        gate.withLock { $0.pause(use.key, digests(use), now: now) }
    }

    /// See `AttemptControl`.
    package func recordSubmission(of use: CredentialUse, isSent: Bool, now: Int64) async {
        await keep(gate.withLock { $0.recordSubmission(of: use.key, digests(use), isSent: isSent, now: now) })
    }

    /// See `AttemptControl`.
    package func acceptedForms(ofCredential name: String) -> [(key: LatchKey, form: AcceptedForm)] {
        gate.withLock { $0.acceptedForms(ofCredential: name) }
    }

    /// See `AttemptControl`.
    package func acceptance(of use: CredentialUse) -> Acceptance? {
        gate.withLock { $0.acceptance(use.key, digests(use)) }
    }

    /// See `AttemptControl`.
    package func use(code seed: String, stepEnding end: Int64, isUsed: Bool, now: Int64) async -> Int64? {
        await write([])
        let (until, change) = gate.withLock { gate in
            gate.use(code: seed, stepEnding: end, isUsed: isUsed, now: now)
        }
        await keep(change)
        return until
    }

    /// See `AttemptControl`.
    package func refusal(of answer: Secret, to challenge: String) -> AttemptRefusal? {
        gate.withLock { $0.refusal(of: answer, to: challenge) }
    }

    /// See `AttemptControl`.
    package func record(_ answer: Secret, to challenge: String, acceptedAt address: WebURL?) {
        gate.withLock { $0.record(answer, to: challenge, acceptedAt: address) }
    }

    /// See `AttemptControl`.
    package func address(accepting answer: Secret, to challenge: String) -> WebURL? {
        gate.withLock { $0.address(accepting: answer, to: challenge) }
    }
}
