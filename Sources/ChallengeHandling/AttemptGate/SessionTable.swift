// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Who holds which session, who is winning one, and who waits for it: one login at a time per key (CONTRIBUTING,
/// rule 1), generations, back-off after unknown outcomes.
///
/// A pure value. Waiters are values of the driver's choice, handed back when their login is over. Times are
/// milliseconds since 1970; chance is passed in.
public struct SessionTable<Waiter: Sendable & Equatable>: Sendable {
    var entries: [SessionKey: SessionEntry<Waiter>] = [:]
    private var lastGeneration: UInt64 = 0
    var waiterCount = 0
    let limits: SessionLimits
    /// Moves with every change of what is held.
    public internal(set) var version: UInt64 = 1

    /// An empty table.
    public init(limits: SessionLimits = SessionLimits()) {
        self.limits = limits
    }

    /// What an exchange that needs a session does now.
    public enum Answer: Sendable, Equatable {
        /// The exchange waits; the driver starts the login.
        case go
        /// No login now; the reason is that of the last one.
        case no(LoginFailure)
        /// Too many wait already.
        case overloaded
        /// A session is there that nobody has used yet: the exchange tries it, and says what came of it by `judge`.
        case prove(HeldSession)
        /// A session is there.
        case use(HeldSession)
        /// The exchange waits for the login that runs.
        case wait
    }

    /// An exchange needs the session of `key`. `rejected` is the generation that the upstream has just refused, if one
    /// was used: it is dropped unless a newer one is there already, which is then used at once.
    public mutating func request(
        _ key: SessionKey, rejected: UInt64?, waiter: Waiter, now: Int64
    ) -> Answer {
        if entries[key] == nil { makeRoom(now: now) }
        var entry = entries[key] ?? SessionEntry()
        defer { entries[key] = entry }
        if let held = entry.held {
            if held.generation != rejected, !held.isExpired(at: now) { return .use(held) }
            entry.held = nil
        }
        if !entry.isWinning {
            if let failure = entry.backOff.refusal(now: now) { return .no(failure) }
            if entry.prover == nil, let trial = entry.trial {
                if trial.generation != rejected, !trial.isExpired(at: now) {
                    entry.prover = waiter
                    return .prove(trial)
                }
                entry.trial = nil
            }
        }
        guard waiterCount < limits.waiters else { return .overloaded }
        waiterCount += 1
        entry.waiters.append(waiter)
        if entry.isWinning || entry.prover != nil || isWinning(siblingOf: key) { return .wait }
        entry.isWinning = true
        return .go
    }

    /// Asks for a renewal of a session that still serves: true once, for the one who is to start the login.
    public mutating func beginRenewal(_ key: SessionKey, now: Int64) -> Bool {
        guard var entry = entries[key], !entry.isWinning, entry.prover == nil, !isWinning(siblingOf: key) else {
            return false
        }
        if entry.backOff.until > now { return false }
        entry.isWinning = true
        entries[key] = entry
        return true
    }

    /// Asks for another try of a login that has failed and that no exchange asks for, so that readiness comes back by
    /// itself once the cause is gone: true once in `pause` milliseconds, for the one who is to start it.
    public mutating func beginRecovery(_ key: SessionKey, now: Int64, pause: Int64 = 5_000) -> Bool {
        guard let entry = entries[key], entry.held == nil, entry.trial == nil, let failure = entry.backOff.failure,
            failure.at.saturatingAdd(pause) <= now
        else {
            return false
        }
        return beginRenewal(key, now: now)
    }

    /// Asks for a session that nobody waits for and that is to be there: true once, for the one who is to start the login.
    /// A session that nears its end is due as well; what has failed is `beginRecovery`'s.
    public mutating func beginKeeping(_ key: SessionKey, now: Int64) -> Bool {
        switch standing(of: key, now: now) {
        case .failing, .winning: return false
        case .held(let held): if now < held.renewAt ?? .max { return false }
        case .cold: break
        }
        if entries[key] == nil { entries[key] = SessionEntry() }
        return beginRenewal(key, now: now)
    }

    /// Takes back a waiter whose deadline passed or whose caller went away.
    public mutating func leave(_ key: SessionKey, waiter: Waiter) {
        guard let index = entries[key]?.waiters.firstIndex(of: waiter) else { return }
        entries[key]?.waiters.remove(at: index)
        waiterCount -= 1
    }

    /// What a waiter is told when a login is over.
    public enum Outcome: Sendable, Equatable {
        /// A login of the same client is over, but not that of this key: ask again.
        case askAgain
        /// It failed; shared by all who waited.
        case failed(LoginFailure)
        /// It won a session that the waiter is to try, and to say what came of it by `judge`. The others go on waiting.
        case prove(SessionKey, HeldSession)
        /// The session in doubt stays, and the challenge is the answer. `isConfirmed`: it was seen to work.
        case kept(HeldSession, isConfirmed: Bool)
        /// It succeeded.
        case won(HeldSession)
    }

    /// The login of `key` is over. Returns who is to be told what. `chance` is a random number in 0..<1.
    public mutating func finish(
        _ key: SessionKey, with result: Result<Session, LoginFailure>, now: Int64, chance: Double
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        version &+= 1
        var entry = entries[key] ?? SessionEntry()
        entry.isWinning = false
        let outcome: Outcome
        switch result {
        case .success(let session):
            lastGeneration += 1
            let old = entry.held.flatMap { $0.isExpired(at: now) ? nil : $0 }
            let held = HeldSession(
                session, generation: lastGeneration, wonAt: now, renewals: old.map { $0.renewals + 1 } ?? 0,
                chance: chance)
            if !session.isProven {
                entry.held = nil
                entry.trial = held
                entries[key] = entry
                return tryNext(key) + wakeSiblings(of: key)
            }
            entry.held = held
            entry.backOff = BackOff()
            entry.latch = nil
            outcome = .won(held)
        case .failure(let failure):
            entry.backOff.note(failure, limits, now: now, chance: chance)
            entry.latch = failure.latch
            outcome = .failed(failure)
        }
        entries[key] = entry
        return tellAll(key, outcome) + wakeSiblings(of: key)
    }

    /// What was to lead to a session of `key` is over, and nothing has come of it: another host is at it. Whoever waits asks again.
    package mutating func abandon(_ key: SessionKey) -> [(waiter: Waiter, outcome: Outcome)] {
        entries[key]?.isWinning = false
        return tellAll(key, .askAgain) + wakeSiblings(of: key)
    }

    /// Takes over a session that somebody else has won at `wonAt` and used since: an earlier process, or, in the place of the one that
    /// is held (`replacing`), another host. Whether it is held now: not where it has ended, or where this process is about to win one
    /// itself. `chance` is a random number in 0..<1.
    public mutating func adopt(
        _ key: SessionKey, _ session: Session, wonAt: Int64, now: Int64, replacing: Bool = false, chance: Double = 0
    ) -> Bool {
        if entries[key] == nil { makeRoom(now: now) }
        var entry = entries[key] ?? SessionEntry()
        let held = HeldSession(
            session, generation: lastGeneration + 1, wonAt: min(wonAt, now), isTakenOver: true,
            renewals: entry.held.map { $0.renewals + 1 } ?? 0, chance: chance)
        guard !held.isExpired(at: now), !entry.isWinning, entry.prover == nil,
            replacing || entry.held == nil && entry.trial == nil
        else { return false }
        lastGeneration += 1
        entry.held = held
        entry.trial = nil
        entry.backOff = BackOff()
        entries[key] = entry
        version &+= 1
        return true
    }

    /// The session held for `key`, expired or not.
    public func held(_ key: SessionKey) -> HeldSession? { entries[key]?.held }

    /// All sessions held, for a worker's snapshot and for `sessions list`.
    public var allHeld: [SessionKey: HeldSession] { entries.compactMapValues(\.held) }

    /// How each key stands, for readiness and status.
    public func standing(of key: SessionKey, now: Int64) -> SessionStanding {
        guard let entry = entries[key] else { return .cold }
        if let held = entry.held, !held.isExpired(at: now) { return .held(held) }
        if entry.isWinning || entry.prover != nil { return .winning(waiters: entry.waiters.count) }
        if let trial = entry.trial, !trial.isExpired(at: now) { return .held(trial) }
        // A scope that is refused is no trouble of the upstream's, and is not tried again unasked.
        if let failure = entry.backOff.failure, !failure.reason.concernsScope { return .failing(failure.reason) }
        return .cold
    }

    /// Every key with how it stands.
    public func standings(now: Int64) -> [SessionKey: SessionStanding] {
        Dictionary(uniqueKeysWithValues: entries.keys.map { ($0, standing(of: $0, now: now)) })
    }

    /// Drops the sessions that `which` picks, and the pauses after failed logins with them. Returns their keys.
    public mutating func drop(where which: (SessionKey) -> Bool) -> [SessionKey] {
        let chosen = entries.keys.filter(which)
        var dropped: [SessionKey] = []
        for key in chosen {
            if entries[key]?.held != nil || entries[key]?.trial != nil { dropped.append(key) }
            entries[key]?.held = nil
            // One that is being tried ends with what comes of it.
            if entries[key]?.prover == nil { entries[key]?.trial = nil }
            entries[key]?.backOff = BackOff()
        }
        version &+= 1
        return dropped
    }

    /// The latch that ended the last login of `key`: as long as it is closed for the present value, the next would end there, too.
    package func lastLatch(of key: SessionKey) -> LatchKey? { entries[key]?.latch }

    /// The latch that ended the last login of `key` is open.
    package mutating func forgetLatch(of key: SessionKey) { entries[key]?.latch = nil }

    /// The keys of the same login as `key`, whatever their scope, whose last login failed.
    package func failing(like key: SessionKey, now: Int64) -> [SessionKey] {
        entries.keys.filter { other in
            guard key.isSibling(of: other), case .failing = standing(of: other, now: now) else { return false }
            return true
        }
    }

    /// Lets logins that failed because of `challenge` be tried again at once, as its latch was opened; `nil`: all.
    public mutating func forgetFailures(of challenge: String?) {
        for (key, entry) in entries
        where challenge == nil || key.challenge == challenge || entry.backOff.failure?.reason.challenge == challenge {
            entries[key]?.backOff = BackOff()
            entries[key]?.latch = nil
        }
    }

    /// Authorizations of one client are serialised, whatever their scope (reference: the server keeps one state per
    /// client and check), so keys that differ in scope only take turns.
    func isWinning(siblingOf key: SessionKey) -> Bool {
        entries.contains { $0.key != key && $0.key.isSibling(of: key) && $0.value.isWinning }
    }

    /// Keys come from what upstreams name as scopes, so their number is bounded: those at rest give way, the cold and
    /// the ended first, then the oldest sessions.
    private mutating func makeRoom(now: Int64) {
        guard entries.count >= limits.keys else { return }
        func rank(_ entry: SessionEntry<Waiter>) -> UInt64 {
            guard let held = entry.held, !held.isExpired(at: now) else { return 0 }
            return held.generation
        }
        let atRest = entries.filter { !$0.value.isWinning && $0.value.prover == nil && $0.value.waiters.isEmpty }
        for (key, _) in atRest.sorted(by: { rank($0.value) < rank($1.value) }).prefix(max(1, limits.keys / 4)) {
            entries[key] = nil
        }
    }

    /// Tells all who wait for `key`.
    mutating func tellAll(_ key: SessionKey, _ outcome: Outcome) -> [(waiter: Waiter, outcome: Outcome)] {
        let told = entries[key]?.waiters ?? []
        entries[key]?.waiters = []
        waiterCount -= told.count
        return told.map { ($0, outcome) }
    }

    mutating func wakeSiblings(of key: SessionKey) -> [(waiter: Waiter, outcome: Outcome)] {
        var woken: [(waiter: Waiter, outcome: Outcome)] = []
        for (other, entry) in entries where other != key && other.isSibling(of: key) && !entry.waiters.isEmpty {
            woken += entry.waiters.map { ($0, .askAgain) }
            entries[other]?.waiters = []
        }
        waiterCount -= woken.count
        return woken
    }
}

/// What a table knows of one key.
struct SessionEntry<Waiter: Sendable & Equatable>: Sendable {
    var held: HeldSession?
    var isWinning = false
    var waiters: [Waiter] = []
    /// The pause after the last login, if that failed.
    var backOff = BackOff()
    /// The latch that ended the last login.
    var latch: LatchKey?
    /// A session that the server has not accepted yet.
    var trial: HeldSession?
    /// Who is trying it.
    var prover: Waiter?
    /// The session whose last confirmations had no usable answer, until when it is not asked for again, and how many they were.
    var unconfirmed: (generation: UInt64, until: Int64, count: Int)?
}

extension SessionKey {
    /// Whether the two differ in scope at most.
    package func isSibling(of other: SessionKey) -> Bool {
        origin == other.origin && challenge == other.challenge && credential == other.credential
    }
}
