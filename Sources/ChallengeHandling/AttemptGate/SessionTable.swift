// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Held sessions, running logins and their waiters, by session key.
///
/// One login at a time per key (CONTRIBUTING, rule 1), generations, back-off after unknown outcomes. A pure value:
/// waiters are values of the driver, returned when their login ends. Times are in ms since 1970, and random numbers are
/// passed in.
public struct SessionTable<Waiter: Sendable & Equatable>: Sendable {
    var entries = SessionEntries<Waiter>()
    private var lastGeneration: UInt64 = 0
    /// Number of exchanges that wait, for a login or for a first request.
    package internal(set) var waiterCount = 0
    /// Number of configured logins.
    private var room = 0
    let limits: SessionLimits
    /// Number that grows with every change of the held sessions.
    public internal(set) var version: UInt64 = 1
    /// Number of confirmations begun so far, of all keys. An exchange notes it when its session is refused.
    public internal(set) var confirmations: UInt64 = 0

    /// Creates an empty table.
    public init(limits: SessionLimits = SessionLimits()) {
        self.limits = limits
    }

    /// Action of an exchange that needs a session.
    public enum Answer: Sendable, Equatable {
        /// Wait, while the driver starts the login.
        case logIn
        /// Fail with the reason of the last login.
        case refuse(LoginFailure)
        /// Fail, because too many exchanges wait.
        case overloaded
        /// Try an unverified session, and report the result to `recordVerification`.
        case verify(HeldSession)
        /// Use the held session.
        case use(HeldSession)
        /// Wait for the running login.
        case wait
    }

    /// Requests the session of `key` for an exchange.
    ///
    /// `rejected` is the generation that the upstream has just refused, if any: that session is dropped, unless a newer
    /// one exists, which is then used at once. `address` is that of the request, which may have to try the session.
    public mutating func request(
        _ key: SessionKey, rejected: UInt64?, waiter: Waiter, address: String? = nil, now: Int64
    ) -> Answer {
        if entries[key] == nil { evictIdleKeys(now: now) }
        var entry = entries[key] ?? SessionEntry()
        defer { entries[key] = entry }
        if let held = entry.held {
            if held.generation != rejected, !held.isExpired(at: now) { return .use(held) }
            entry.held = nil
            // The dropped session is not sent again while the login runs.
            version &+= 1
        }
        if !entry.isLoggingIn {
            if let failure = entry.backOff.refusal(now: now) { return .refuse(failure) }
            if let unverified = entry.unverified, unverified.generation != rejected, !unverified.isExpired(at: now) {
                if entry.trials.allows(address, now: now) {
                    entry.trials.start(waiter, at: address)
                    return .verify(unverified)
                }
                if entry.trials.isEmpty, let retryAt = entry.trials.refusedUntil(address, now: now) {
                    return .refuse(.fruitlessAddress(of: key.challenge, retryAt: retryAt))
                }
            } else if entry.trials.isEmpty {
                entry.unverified = nil
            }
        }
        guard waiterCount < limits.waiters else { return .overloaded }
        waiterCount += 1
        entry.waiters.append((waiter, address))
        if entry.isLoggingIn || !entry.trials.isEmpty || isLoggingIn(siblingOf: key) { return .wait }
        entry.isLoggingIn = true
        return .logIn
    }

    /// Starts a renewal of a valid session; returns true once, to the caller that must run the login.
    public mutating func beginRenewal(_ key: SessionKey, now: Int64) -> Bool {
        guard var entry = entries[key], !entry.isLoggingIn, entry.trials.isEmpty, !isLoggingIn(siblingOf: key) else {
            return false
        }
        if entry.backOff.until > now { return false }
        entry.isLoggingIn = true
        entries[key] = entry
        return true
    }

    /// Starts another attempt of a failed login that no exchange needs.
    ///
    /// Readiness thus recovers by itself once the cause is gone. Returns true once in `pause` ms, to the caller that
    /// must run the login.
    public mutating func beginRecovery(_ key: SessionKey, now: Int64, pause: Int64? = nil) -> Bool {
        guard let entry = entries[key], entry.held?.isExpired(at: now) ?? true,
            entry.unverified?.isExpired(at: now) ?? true, let failure = entry.backOff.failure,
            failure.at.saturatingAdd(pause ?? SessionEntry<Waiter>.recoveryPause) <= now
        else {
            return false
        }
        return beginRenewal(key, now: now)
    }

    /// Starts a login that no exchange needs, so that a session is held in advance; returns true once.
    ///
    /// Also starts a login for a session close to its expiry. Failed logins are left to `beginRecovery`.
    public mutating func beginProactiveLogin(_ key: SessionKey, now: Int64) -> Bool {
        switch state(of: key, now: now) {
        case .failing, .loggingIn: return false
        case .held(let held): if now < held.renewAt ?? .max { return false }
        case .cold: break
        }
        if entries[key] == nil { entries[key] = SessionEntry() }
        return beginRenewal(key, now: now)
    }

    /// Removes a waiter after its deadline, or after its caller has gone.
    public mutating func removeWaiter(_ waiter: Waiter, of key: SessionKey) {
        guard let index = entries[key]?.waiters.firstIndex(where: { $0.waiter == waiter }) else { return }
        entries[key]?.waiters.remove(at: index)
        waiterCount -= 1
    }

    /// Result of a login for a waiter.
    public enum Outcome: Sendable, Equatable {
        /// Ask again: another login of the same client has ended, not this key's.
        case askAgain
        /// The login failed, for all waiters.
        case failed(LoginFailure)
        /// Try an unverified session, and report the result to `recordVerification`; the other waiters continue to wait.
        case verify(SessionKey, HeldSession)
        /// The session in doubt is kept, and the challenge is the response. `confirmation` is the number of the
        /// confirmation in which it worked, `nil` if it was not confirmed.
        ///
        /// A confirmation whose number an exchange had noted already began before the refusal, and says nothing about
        /// it.
        case kept(HeldSession, confirmation: UInt64?)
        /// The login succeeded.
        case established(HeldSession)
    }

    /// Ends the login of `key`, and returns the waiters to notify; `chance` is a random number in 0..<1.
    ///
    /// `isAccepted`: the server is known to accept what the session sends, so that no exchange has to try it.
    public mutating func finish(
        _ key: SessionKey, with result: Result<Session, LoginFailure>, isAccepted: Bool = false, now: Int64,
        chance: Double
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        version &+= 1
        var entry = entries[key] ?? SessionEntry()
        entry.isLoggingIn = false
        // The server asks for logins, also when the session has ended.
        entry.firstRequest = .unknown
        let outcome: Outcome
        switch result {
        case .success(var session):
            session.carry(entry.userAgent)
            lastGeneration += 1
            let old = entry.held.flatMap { $0.isExpired(at: now) ? nil : $0 }
            let held = HeldSession(
                session, generation: lastGeneration, establishedAt: now, isTakenOver: session.isTakenOver,
                renewals: old.map { $0.renewals + 1 } ?? 0, chance: chance)
            if !session.isVerified, !isAccepted {
                if entry.tried != session.use?.credential.fields { entry.trials.forget() }
                entry.tried = session.use?.credential.fields
                entry.held = nil
                entry.unverified = held
                entries[key] = entry
                return assignVerifier(of: key, now: now) + dequeueSiblingWaiters(of: key)
            }
            entry.held = held
            // Without a challenge, the value was not sent: the pause after the next failure still doubles.
            if !session.isEmpty { entry.backOff = BackOff() }
            entry.latch = nil
            outcome = .established(held)
        case .failure(let failure):
            entry.backOff.record(failure, limits, now: now, chance: chance)
            entry.latch = failure.latch
            outcome = .failed(failure)
        }
        entries[key] = entry
        return dequeueWaiters(of: key, with: outcome) + dequeueSiblingWaiters(of: key)
    }

    /// Ends the login of `key` without a result, because another node logs in; all waiters ask again.
    package mutating func abandon(_ key: SessionKey) -> [(waiter: Waiter, outcome: Outcome)] {
        entries[key]?.isLoggingIn = false
        return dequeueWaiters(of: key, with: .askAgain) + dequeueSiblingWaiters(of: key)
    }

    /// Adopts a session from another process or node, established at `establishedAt`; returns true if it is now held.
    ///
    /// With `replacing`, it replaces a held session. Not adopted are expired sessions, and any while this process is
    /// logging in. `chance` is a random number in 0..<1.
    public mutating func adopt(
        _ key: SessionKey, _ session: Session, establishedAt: Int64, now: Int64, replacing: Bool = false,
        chance: Double = 0
    ) -> Bool {
        if entries[key] == nil { evictIdleKeys(now: now) }
        var entry = entries[key] ?? SessionEntry()
        let held = HeldSession(
            session, generation: lastGeneration + 1, establishedAt: min(establishedAt, now), isTakenOver: true,
            renewals: entry.held.map { $0.renewals + 1 } ?? 0, chance: chance)
        guard !held.isExpired(at: now), !entry.isLoggingIn, entry.trials.isEmpty,
            replacing || entry.held == nil && entry.unverified == nil
        else { return false }
        lastGeneration += 1
        entry.held = held
        entry.unverified = nil
        entry.backOff = BackOff()
        entries[key] = entry
        version &+= 1
        return true
    }

    /// Drops the session of that generation, which is not being verified. The pause after a failed login stays.
    package mutating func drop(_ key: SessionKey, generation: UInt64) {
        guard entries[key]?.trials.isEmpty == true, session(of: key)?.generation == generation else { return }
        entries[key]?.held = nil
        entries[key]?.unverified = nil
        version &+= 1
    }

    /// Drops the sessions that send the value of `use`, which the server has rejected: a login may still be about to fail with it.
    package mutating func dropSessions(sending use: CredentialUse) {
        func isSent(by held: HeldSession?) -> Bool {
            held?.session.use.map { $0.key == use.key && $0.credential.fields == use.credential.fields } ?? false
        }
        for key in entries.users(of: use.key) {
            guard let entry = entries[key], entry.trials.isEmpty, isSent(by: entry.held ?? entry.unverified) else {
                continue
            }
            entries[key]?.held = nil
            entries[key]?.unverified = nil
            version &+= 1
        }
    }

    /// Returns true if a session is held at `now` (ms since 1970) that a submission of the value of `use` established: no server
    /// has refused it since.
    package func holdsSession(submitting use: CredentialUse, now: Int64) -> Bool {
        entries.users(of: use.key).contains { key in
            guard let held = entries[key]?.held, !held.isExpired(at: now),
                let submitted = held.session.submission?.use
            else { return false }
            return submitted.key == use.key && submitted.credential.fields == use.credential.fields
        }
    }

    /// Returns the session of `key`, held or not verified yet.
    package func session(of key: SessionKey) -> HeldSession? { entries[key]?.held ?? entries[key]?.unverified }

    /// Returns the session held for `key`, expired or not.
    public func held(_ key: SessionKey) -> HeldSession? { entries[key]?.held }

    /// All held sessions, for a worker's snapshot and for `sessions list`.
    public var allHeld: [SessionKey: HeldSession] { entries.all.compactMapValues(\.held) }

    /// Returns the state of a key, for readiness and status.
    public func state(of key: SessionKey, now: Int64) -> SessionState {
        guard let entry = entries[key] else { return .cold }
        if let held = entry.held, !held.isExpired(at: now) { return .held(held) }
        // A refused scope is not a problem of the upstream, and is not tried again without a request.
        let failure = entry.backOff.failure.flatMap { $0.reason.concernsScope ? nil : $0.reason }
        if entry.isLoggingIn { return .loggingIn(waiters: entry.waiters.count, after: failure) }
        // The value of an unverified session is not the one that failed.
        if !entry.trials.isEmpty { return .loggingIn(waiters: entry.waiters.count) }
        if let unverified = entry.unverified, !unverified.isExpired(at: now) { return .held(unverified) }
        return failure.map { .failing($0) } ?? .cold
    }

    /// Returns the state of every key.
    public func states(now: Int64) -> [SessionKey: SessionState] {
        Dictionary(uniqueKeysWithValues: entries.all.keys.map { ($0, state(of: $0, now: now)) })
    }

    /// Drops matching sessions with their pauses after failed logins, and returns their keys.
    public mutating func drop(where which: (SessionKey) -> Bool) -> [SessionKey] {
        let chosen = entries.all.keys.filter(which)
        var dropped: [SessionKey] = []
        for key in chosen {
            if entries[key]?.held != nil || entries[key]?.unverified != nil { dropped.append(key) }
            entries[key]?.held = nil
            // A session being verified ends with its result.
            if entries[key]?.trials.isEmpty == true { entries[key]?.unverified = nil }
            entries[key]?.backOff = BackOff()
            entries[key]?.trials.forget()
        }
        version &+= 1
        return dropped
    }

    /// Returns the latch that ended the last login of `key`.
    ///
    /// The next login would end there too, as long as the latch is closed for the present value.
    package func lastLatch(of key: SessionKey) -> LatchKey? { entries[key]?.latch }

    /// Removes the latch that ended the last login of `key`.
    package mutating func forgetLatch(of key: SessionKey) { entries[key]?.latch = nil }

    /// Returns the state of a login in every scope that was requested, by key.
    package func states(ofSiblings key: SessionKey, now: Int64) -> [(key: SessionKey, state: SessionState)] {
        entries.siblings(of: key).map { ($0, state(of: $0, now: now)) }
    }

    /// Returns the keys whose last login failed, also those whose next one runs.
    package func failingKeys(now: Int64) -> [SessionKey] {
        entries.failing.filter { state(of: $0, now: now).failure != nil }
    }

    /// Sets the keys whose sessions are kept without a request, and makes room for the sessions of `logins` logins.
    package mutating func keep(_ keys: [SessionKey], of logins: Int) {
        entries.keep(keys)
        room = logins
    }

    /// Returns the kept keys for which `beginProactiveLogin` or `beginRecovery` may be due at `now`, in no order.
    package mutating func dueKeys(now: Int64) -> [SessionKey] { entries.dueKeys(now: now) }

    /// Allows logins that failed because of `challenge` at once, after its latch was opened; all for nil.
    public mutating func forgetFailures(of challenge: String?) {
        for (key, entry) in entries.all
        where challenge == nil || key.challenge == challenge || entry.backOff.failure?.reason.challenge == challenge {
            entries[key]?.backOff = BackOff()
            entries[key]?.trials.forget()
            entries[key]?.latch = nil
        }
    }

    /// Returns true if a login with another scope is running.
    ///
    /// The server keeps one state per client and check, so authorizations of one client run one after another, whatever
    /// their scope.
    func isLoggingIn(siblingOf key: SessionKey) -> Bool {
        entries.siblings(of: key).contains { $0 != key && entries[$0]?.isLoggingIn == true }
    }

    /// Removes idle keys if the table is full: cold and expired ones first, then the oldest sessions.
    ///
    /// The number of keys must be limited, because upstreams choose scopes. Each configured login has room for itself.
    mutating func evictIdleKeys(now: Int64) {
        guard entries.count >= limits.keys, entries.count - limits.keys >= room else { return }
        func rank(_ entry: SessionEntry<Waiter>) -> UInt64 {
            guard let held = entry.held, !held.isExpired(at: now) else { return 0 }
            return held.generation
        }
        let idle = entries.all.filter { !$0.value.isLoggingIn && $0.value.trials.isEmpty && $0.value.waiters.isEmpty }
        for (key, _) in idle.sorted(by: { rank($0.value) < rank($1.value) }).prefix(max(1, limits.keys / 4)) {
            entries[key] = nil
        }
    }

    /// Removes all waiters of `key`, and returns each with `outcome`.
    mutating func dequeueWaiters(of key: SessionKey, with outcome: Outcome) -> [(waiter: Waiter, outcome: Outcome)] {
        let waiters = entries[key]?.waiters ?? []
        entries[key]?.waiters = []
        waiterCount -= waiters.count
        return waiters.map { ($0.waiter, outcome) }
    }

    /// Removes the waiters of the siblings of `key`, and returns them to ask again.
    mutating func dequeueSiblingWaiters(of key: SessionKey) -> [(waiter: Waiter, outcome: Outcome)] {
        var woken: [(waiter: Waiter, outcome: Outcome)] = []
        for other in entries.siblings(of: key) where other != key {
            guard let entry = entries[other], !entry.waiters.isEmpty else { continue }
            woken += entry.waiters.map { ($0.waiter, .askAgain) }
            entries[other]?.waiters = []
        }
        waiterCount -= woken.count
        return woken
    }
}
