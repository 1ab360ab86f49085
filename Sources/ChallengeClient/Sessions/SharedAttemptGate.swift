// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets
import Synchronization

/// Names an exchange that waits for a login, on whichever worker it lives.
package struct ExchangeTicket: Sendable, Equatable, Hashable {
    /// The worker's number.
    package let worker: Int
    /// The exchange's number, unique on that worker.
    package let exchange: UInt64

    /// A ticket.
    package init(worker: Int, exchange: UInt64) {
        self.worker = worker
        self.exchange = exchange
    }
}

/// The one attempt gate of a process, which all workers and logins share, behind one short lock.
///
/// The lock is never taken on the hot path: a worker looks at `version`, and takes a fresh snapshot only when that has moved. What the gate
/// wants kept is on disk before whoever told it goes on.
package final class SharedAttemptGate: AttemptControl {
    /// How a login ended for each exchange that waited for it.
    package typealias Outcomes = [(waiter: ExchangeTicket, outcome: SessionTable<ExchangeTicket>.Outcome)]

    /// What sees the gate's changes: they come on any thread, and must not block it.
    private struct Watchers: Sendable {
        var sessions: (@Sendable () -> Void)?
        var untold: (@Sendable () -> Void)?
    }

    private let gate: Mutex<AttemptGate<ExchangeTicket>>
    private let store: any AttemptStore
    private let sharedDigests: @Sendable (LatchKey, Credential) -> [String]
    private let chance: @Sendable () -> Double
    private let now: @Sendable () -> Int64
    private let counter = Atomic<UInt64>(1)
    private let watchers = Mutex(Watchers())
    private let hasRefusals = Atomic(false)

    /// A gate that keeps its record in `store`. `sharedDigests` are those by which nodes know a value, if they share latches; `chance`
    /// makes a random number in 0..<1, by which renewals are spread; `now` tells milliseconds since 1970.
    package init(
        limits: SessionLimits = SessionLimits(), store: any AttemptStore = UnkeptAttempts(),
        sharedDigests: @escaping @Sendable (LatchKey, Credential) -> [String] = { _, _ in [] },
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }, now: @escaping @Sendable () -> Int64
    ) {
        self.chance = chance
        self.store = store
        self.sharedDigests = sharedDigests
        self.now = now
        gate = Mutex(AttemptGate(limits: limits, record: store.load()))
    }

    /// Moves with every change of the sessions that are held.
    package var version: UInt64 { counter.load(ordering: .acquiring) }

    /// Has `watcher` told of every change of the sessions from now on.
    package func watch(_ watcher: @escaping @Sendable () -> Void) { watchers.withLock { $0.sessions = watcher } }

    /// Has `watcher` told whenever there are latches that other nodes do not know; `nil`: nobody is told any more.
    package func watchUntold(_ watcher: (@Sendable () -> Void)?) { watchers.withLock { $0.untold = watcher } }

    /// Asks the gate.
    package func read<Answer>(_ body: (borrowing AttemptGate<ExchangeTicket>) -> sending Answer) -> sending Answer {
        gate.withLock { body($0) }
    }

    /// Tells the gate something, or asks what changes it. Snapshots are taken anew where the sessions changed.
    package func change<Answer>(
        _ body: (inout AttemptGate<ExchangeTicket>) -> sending Answer
    ) -> sending Answer {
        var (hasMoved, hasUntold) = (false, false)
        let answer = gate.withLock { gate in
            let (version, revision) = (gate.sessions.version, gate.shared.revision)
            let answer = body(&gate)
            hasMoved = gate.sessions.version != version
            hasUntold = gate.shared.revision != revision
            if !gate.refusals.isEmpty { hasRefusals.store(true, ordering: .relaxed) }
            return answer
        }
        if hasMoved {
            counter.wrappingAdd(1, ordering: .releasing)
            watchers.withLock { $0.sessions }?()
        }
        if hasUntold { watchers.withLock { $0.untold }?() }
        return answer
    }

    /// Has what the gate wants kept written before it returns.
    private func keep(_ change: AttemptChange?) {
        guard let change, let kept = store.keep(change, of: read { $0.record }) else { return }
        self.change { $0.merge(kept, after: change) }
    }

    private func digests(_ key: LatchKey, _ credential: Credential) -> AttemptDigests {
        AttemptDigests(own: store.digest(of: credential), shared: sharedDigests(key, credential))
    }
}

// Sessions.
extension SharedAttemptGate {
    /// The session held for `key`.
    package func held(_ key: SessionKey) -> HeldSession? { read { $0.sessions.held(key) } }

    /// How a key stands at `now` (milliseconds since 1970).
    package func standing(of key: SessionKey, now: Int64) -> SessionStanding {
        read { $0.sessions.standing(of: key, now: now) }
    }

    /// The login of `key` is over. Returns who is to be told what.
    package func finish(_ key: SessionKey, with result: Result<Session, LoginFailure>) -> Outcomes {
        let (now, chance) = (now(), chance())
        return change { $0.sessions.finish(key, with: result, now: now, chance: chance) }
    }

    /// Takes over a session that somebody else has won at `wonAt`; see `SessionTable.adopt`.
    package func adopt(_ key: SessionKey, _ session: Session, wonAt: Int64, replacing: Bool = false) -> Bool {
        let (now, chance) = (now(), chance())
        return change {
            $0.sessions.adopt(key, session, wonAt: wonAt, now: now, replacing: replacing, chance: chance)
        }
    }

    /// False if no resource has ever refused a session, which is told without the lock.
    var mayRefuse: Bool { hasRefusals.load(ordering: .relaxed) }

    /// A resource refused a session that was just won, or that serves elsewhere.
    func noteRefusal(_ use: RefusedUse) {
        let now = now()
        change { $0.refusals.noteRefusal(use, now: now) }
    }

    /// Returns whether a resource has lately refused the session of `place`, and so the login for it (CONTRIBUTING, rule 4).
    func isRefused(_ place: ResourceKey) -> Bool {
        let now = now()
        return change { $0.refusals.passes(place, generation: 0, now: now) }
    }
}

// Values.
extension SharedAttemptGate {
    /// Asks if the value of `use` may be sent now. Returns why not; `nil`: go.
    package func refusal(
        of use: CredentialUse, remaining: SecurityCheckChallenge.RemainingAttempts, keeping: Int, now: Int64
    ) -> AttemptRefusal? {
        let digests = digests(use.key, use.credential)
        return change { gate in
            gate.look(use.key, digests)
            return gate.refusal(use.key, digests, remaining: remaining, keeping: keeping, now: now)
        }
    }

    /// Tells what came of the value of `use`. Kept durably before it returns, if that can be.
    package func note(_ outcome: AttemptOutcome, of use: CredentialUse) {
        let digests = digests(use.key, use.credential)
        keep(change { $0.note(outcome, use.key, digests) })
    }

    /// The mark of the value of `use`; `nil` if no server is known to have accepted it.
    package func acceptance(of use: CredentialUse) -> Acceptance? {
        let digests = digests(use.key, use.credential)
        return read { $0.acceptance(use.key, digests) }
    }

    /// Keeps the mark that a request to `address` with the value of `use` was accepted. The answer to a request that was challenged
    /// without it (`challenge`) shows that best: an open address takes anything. `isSafe`: a GET or HEAD, whose path is the better one to
    /// ask again.
    func noteAccepted(
        _ use: CredentialUse, by login: Authenticator, challenge: ExaminedResponse?, address: WebURL, isSafe: Bool,
        now: Int64
    ) {
        var wasAsked = false
        if let challenge, case .challenged? = login.trigger.detector?.examine(challenge, hasSession: false) {
            wasAsked = true
        }
        let known = acceptance(of: use)
        if let known, known.wasAsked, !wasAsked { return }
        let path = isSafe || known?.path == nil ? address.path : nil
        note(.accepted(Acceptance(path: path, at: now, wasAsked: wasAsked)), of: use)
    }

    /// See `AttemptControl`. What another process has used meanwhile counts.
    package func use(code seed: String, stepEnding end: Int64, isUsed: Bool, now: Int64) -> Int64? {
        let kept = store.load()
        let (usedUntil, change) = change { gate in
            gate.merge(kept)
            return gate.use(code: seed, stepEnding: end, isUsed: isUsed, now: now)
        }
        keep(change)
        return usedUntil
    }

    /// See `AttemptControl`.
    package func refusal(of answer: Secret, to challenge: String) -> AttemptRefusal? {
        read { $0.refusal(of: answer, to: challenge) }
    }

    /// See `AttemptControl`.
    package func note(_ answer: Secret, to challenge: String, acceptedAt address: WebURL?) {
        change { $0.note(answer, to: challenge, acceptedAt: address) }
    }

    /// See `AttemptControl`.
    package func address(accepting answer: Secret, to challenge: String) -> WebURL? {
        read { $0.address(accepting: answer, to: challenge) }
    }
}

// Other nodes.
extension SharedAttemptGate {
    /// All shared latches, as the engine has them. Returns the challenges whose latches somebody has opened since.
    func read(_ latches: [SharedLatch], count: UInt64) -> Set<String> {
        let now = now()
        return change { $0.shared.read(latches, count: count, now: now) }
    }
}

// Operators.
extension SharedAttemptGate {
    /// The values that are not sent at `now` (milliseconds since 1970); not those that `ledger` knows to be replaced.
    package func closed(now: Int64, replacedIn ledger: CredentialLedger?) -> [ClosedLatch] {
        read { $0.closed(now: now) { ledger?.isReplaced($0, of: $1) ?? false } }
    }

    /// Opens all latches of a challenge, and ends the pauses after its failures; `nil`: of all. Returns how many latches there were.
    @discardableResult
    package func unlatch(_ challenge: String?) -> Int {
        let (opened, unlatching) = change { $0.unlatch(challenge) }
        keep(unlatching)
        return opened
    }
}
