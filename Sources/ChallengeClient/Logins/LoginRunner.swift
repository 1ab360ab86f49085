// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import EventLoop

/// The logins of one worker: started in turn, run on its loop, reported to all waiters.
package final class LoginRunner {
    private unowned let runtime: ClientRuntime
    private let services: ClientServices
    private let loop: EventLoop

    /// Creates the runner of `runtime`, which outlives it.
    init(_ runtime: ClientRuntime) {
        self.runtime = runtime
        services = runtime.services
        loop = runtime.loop
    }

    private var gate: SharedAttemptGate { services.gate }

    // MARK: Requesting sessions

    /// Requests the session of a slot, and starts the login if this exchange leads.
    ///
    /// Unless `waits`, the exchange takes no place among the waiters, whose number is limited for callers. Unless `tries`, it does not
    /// send an unverified session. `address` is that of its request, which may have to try the session.
    func request(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, after refusal: RefusedUse? = nil, ticket: ExchangeTicket,
        address: String? = nil, waits: Bool, tries: Bool = true, of client: UpstreamClient,
        challenge: ExaminedResponse?, target: WebURL? = nil, cause: @autoclosure () -> LoginCause
    ) -> SessionTable<ExchangeTicket>.Answer {
        let slot = route.slots[slot]
        let now = services.wallClock()
        let answer = gate.change { gate in
            let answer = gate.requestSession(
                slot.key, rejected: rejected, after: refusal, waiter: ticket, address: address, now: now)
            if !waits { gate.sessions.removeWaiter(ticket, of: slot.key) }
            return answer
        }
        if answer == .logIn { start(slot, at: client.plan, challenge: challenge, target: target, cause()) }
        if case .verify(let held) = answer, waits, tries, awaitTurn(of: slot.key, held, ticket, at: client.plan) {
            return .wait
        }
        return answer
    }

    /// Requests the session of a login page before another login's server.
    ///
    /// Calls `finish` once, when the session is there or unavailable.
    func request(
        _ slot: RouteSessions.Slot, rejected: UInt64?, at plan: UpstreamPlan, challenge: ExaminedResponse?,
        cause: LoginCause,
        finish: @escaping (SessionTable<ExchangeTicket>.Outcome) -> Void
    ) {
        let ticket = runtime.nextTicket()
        let now = services.wallClock()
        switch gate.change({ $0.requestSession(slot.key, rejected: rejected, waiter: ticket, now: now) }) {
        case .use(let held): finish(.established(held))
        case .refuse(let failure): finish(.failed(failure))
        case .overloaded:
            let detail = "Too many requests wait for a login already. Raise `limits.waiters`, or try again."
            finish(.failed(LoginFailure(.failed, challenge: slot.key.challenge, detail: detail)))
        case .verify(let unverified):
            recordVerification(of: slot.key, generation: unverified.generation, .undecided, ticket: ticket)
            finish(.askAgain)
        case .wait: runtime.waiters.add(ticket, finish)
        case .logIn:
            runtime.waiters.add(ticket, finish)
            start(slot, at: plan, challenge: challenge, cause)
        }
    }

    /// Starts a login for the next exchange; the one that received the challenge does not wait.
    func logInUnawaited(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, ticket: ExchangeTicket, of client: UpstreamClient,
        challenge: ExaminedResponse?, cause: @autoclosure () -> LoginCause
    ) {
        let key = route.slots[slot].key
        let decision = request(
            route, slot: slot, rejected: rejected, ticket: ticket, waits: false, of: client, challenge: challenge,
            cause: cause())
        if case .verify(let unverified) = decision {
            recordVerification(of: key, generation: unverified.generation, .undecided, ticket: ticket)
        }
    }

    /// Lets another exchange try the session, too, if this one gets no answer in a while.
    func trialBegan(of key: SessionKey, generation: UInt64, ticket: ExchangeTicket) {
        let timer = LazyTimer(loop: loop)
        timer.onExpiry = { [services] in
            services.notify(services.gate.recordSilence(of: key, generation: generation, by: ticket))
        }
        timer.arm(at: loop.now + Self.longestSilence)
    }

    private static var longestSilence: Duration { .seconds(2) }

    /// Records the result of an exchange that tried a session.
    func recordVerification(
        of key: SessionKey, generation: UInt64, _ result: SessionTable<ExchangeTicket>.VerificationResult,
        ticket: ExchangeTicket
    ) {
        if result == .accepted { services.observer.sessionAccepted(key) }
        services.notify(gate.recordVerification(of: key, generation: generation, result, by: ticket))
        services.trials.settle(key, by: gate)
    }

    /// Begins the trial of a session by a request that no login led to. It waits for its turn among the processes with the same state.
    ///
    /// Returns false if there is nothing to wait for.
    private func awaitTurn(of key: SessionKey, _ held: HeldSession, _ ticket: ExchangeTicket, at plan: UpstreamPlan)
        -> Bool
    {
        guard services.locks != nil, let use = held.session.use, !services.trials.isKept(for: key) else { return false }
        let (services, limit) = (services, LoginLimit(plan.timeouts.login, on: loop))
        Task(executorPreference: loop) {
            let turn = await services.turns(limit).take(key.turnName, waiting: {})
            let (gate, now) = (services.gate, services.wallClock())
            if let turn, gate.refusal(of: use, now: now) == nil {
                services.trials.keep(turn, for: key, within: limit)
                return services.notify([(ticket, .verify(key, held))])
            }
            // Others ask again, too: their login then finds out why.
            let others = gate.recordVerification(of: key, generation: held.generation, .outdated, by: ticket)
            let own: SessionTable<ExchangeTicket>.Outcome =
                turn == nil ? .failed(.blockedByOtherProcess(key.challenge)) : .askAgain
            services.notify(others + [(ticket, own)])
        }
        return true
    }

    // MARK: Without a request

    /// Starts the due renewals of a route whose sessions are still valid.
    func renew(_ route: RouteSessions, of client: UpstreamClient, now: Int64) {
        // Checked again in a second, by any exchange.
        route.postponeRenewal(until: now + 1_000)
        for slot in route.slots {
            guard let due = gate.held(slot.key)?.renewAt, now >= due,
                gate.change({ $0.sessions.beginRenewal(slot.key, now: now) })
            else { continue }
            start(slot, at: client.plan, challenge: nil, LoginCause(.renewal))
        }
    }

    /// Number of logins without a request that start in one turn of the loop: requests do not wait for thousands.
    private static var startsPerTurn: Int { 32 }

    /// Retries the logins that failed a while ago.
    ///
    /// A rejected value is not sent again: its latch is closed until the value changes.
    func recover(_ logins: LoginIndex) {
        let now = services.wallClock()
        recover(logins.ordered(gate.read { $0.sessions.failingKeys(now: now) })[...])
    }

    private func recover(_ failing: ArraySlice<(key: SessionKey, entry: LoginIndex.Entry)>) {
        let now = services.wallClock()
        for (key, entry) in failing.prefix(Self.startsPerTurn)
        where gate.change({ $0.sessions.beginRecovery(key, now: now) }) {
            start(
                .init(login: entry.login, scope: Scope(text: key.scope)), at: entry.plan, challenge: nil,
                LoginCause(.recovery))
        }
        let rest = failing.dropFirst(Self.startsPerTurn)
        if !rest.isEmpty { services.roster.onSomeWorker { $0.logins.recover(rest) } }
    }

    /// Maintains the kept sessions: establishes missing ones, renews expiring ones, retries failed logins.
    ///
    /// Visits only those that are due.
    func maintainSessions(of logins: LoginIndex) {
        gate.serve(logins)
        let now = services.wallClock()
        maintain(logins.orderedKept(gate.change { $0.sessions.dueKeys(now: now) })[...])
    }

    private func maintain(_ due: ArraySlice<(key: SessionKey, entry: LoginIndex.Entry)>) {
        let now = services.wallClock()
        for (key, entry) in due.prefix(Self.startsPerTurn) {
            let begins = gate.change { gate in
                gate.sessions.beginProactiveLogin(key, now: now) || gate.sessions.beginRecovery(key, now: now)
            }
            guard begins else { continue }
            let isHeld = gate.held(key) != nil
            start(
                RouteSessions.Slot(login: entry.login, scope: entry.login.defaultScope), at: entry.plan,
                challenge: nil, LoginCause(isHeld ? .renewal : .start))
        }
        let rest = due.dropFirst(Self.startsPerTurn)
        if !rest.isEmpty { services.roster.onSomeWorker { $0.logins.maintain(rest) } }
    }

    /// Logs in again for `keys` with the current value of their credential. The old sessions serve until then.
    ///
    /// If no session is held, the pause after the old value's failure ends. One after a failure of the current value stays.
    func replaceOutdated(_ keys: Set<SessionKey>, of logins: LoginIndex) {
        let now = services.wallClock()
        var failing: Set<String> = []
        for key in keys {
            switch gate.state(of: key, now: now) {
            case .loggingIn: continue
            case .cold: services.credentialVersions?.forget(key)
            case .failing:
                guard let versions = services.credentialVersions, versions.forgetSession(of: key) else { continue }
                failing.insert(key.challenge)
                versions.forget(key)
            case .held: replace(key, of: logins, now: now)
            }
        }
        guard !failing.isEmpty else { return }
        services.sharing?.forgetFailures()
        for challenge in failing { gate.change { $0.sessions.forgetFailures(of: challenge) } }
    }

    private func replace(_ key: SessionKey, of logins: LoginIndex, now: Int64) {
        guard let (login, plan) = logins.entries(of: key).first.map({ ($0.login, $0.plan) }) else {
            services.credentialVersions?.forget(key)
            return
        }
        // Otherwise one runs already, or the last attempt failed a moment ago: the next check returns to it.
        guard gate.change({ $0.sessions.beginRenewal(key, now: now) }) else { return }
        start(
            RouteSessions.Slot(login: login, scope: Scope(text: key.scope)), at: plan, challenge: nil,
            LoginCause(.change), replacing: replaced(key, login, at: plan))
    }

    /// Returns the held session if its login ends sessions at the server.
    ///
    /// A logout for all scopes would end the new session as well: for such a login the server's own session stays the
    /// same.
    private func replaced(_ key: SessionKey, _ login: Authenticator, at plan: UpstreamPlan) -> PendingLogout? {
        guard let logout = login.logout, !logout.endsAllScopes, let held = gate.held(key) else { return nil }
        return PendingLogout(key: key, session: held.session, logout: logout, plan: plan)
    }

    // MARK: Running

    /// Runs the login on this loop, independently of the exchange that led to it.
    ///
    /// Others may wait after that exchange is gone. If the login succeeds, `replaced` is ended at its server. The login
    /// is over after `timeouts.login` at the latest, whatever blocks it. A session established after that is dropped.
    func start(
        _ slot: RouteSessions.Slot, at plan: UpstreamPlan, challenge: ExaminedResponse?, target: WebURL? = nil,
        _ cause: LoginCause, replacing replaced: PendingLogout? = nil
    ) {
        let isShared = services.sharing?.isShared(slot.key, in: plan.sources.generation) == true
        let login = slot.login.login(
            LoginOccasion(scope: slot.scope, challenge: challenge, target: target, isShared: isShared))
        let sideRequests = sideRequests(for: slot.login, at: plan, cause: cause)
        let (services, sources) = (services, plan.sources)
        let key = slot.key
        let limit = LoginLimit(plan.timeouts.login, on: loop)
        Task(executorPreference: loop) {
            let run: @Sendable (any SessionLogin) async -> Result<Session, LoginFailure> = { login in
                services.observer.loginBegan(key, cause)
                let end = await services.end(
                    of: login, for: key, asking: sources, sideRequests: sideRequests, within: limit)
                if let turn = end.turn { services.trials.keep(turn, for: key, within: limit) }
                services.observer.loginEnded(key, end.result, cause, after: end.duration)
                return end.result
            }
            let ended: Result<Session, LoginFailure>?
            if let sharing = services.sharing {
                ended = await limit.result(inTurnFor: key, login: { await run(login) }) { login in
                    // If nothing is sent, other nodes do not have to wait, even if the latch is opened meanwhile.
                    if let failure = await services.closedLatch(of: key, asking: sources) {
                        return await run(RefusedLogin(failure))
                    }
                    return await sharing.logIn(
                        key, in: sources.generation, isRenewal: cause.isRenewal, by: login)
                }
            } else {
                ended = await run(login)
            }
            guard let result = ended else {
                return services.notify(services.gate.change { $0.sessions.abandon(key) })
            }
            services.notify(services.gate.finish(key, with: result))
            services.trials.settle(key, by: services.gate)
            if let replaced, case .success = result { services.roster.onSomeWorker { $0.logins.endLater(replaced) } }
        }
    }

    /// Returns the side requests of a login of `authenticator` at the upstream of `plan`. Call on the loop's thread.
    package func sideRequests(
        for authenticator: Authenticator, at plan: UpstreamPlan, cause: LoginCause
    ) -> any SideRequests {
        guard !authenticator.isLoginPage, plan.logins.all.contains(where: \.isLoginPage) else {
            return LoopSideRequests(runtime: runtime, plan: plan, login: authenticator.name)
        }
        return GuardedSideRequests(runtime: runtime, plan: plan, login: authenticator.name, cause: cause)
    }

    // MARK: Logging out

    /// Ends a session at its server, and calls `done` in any case.
    func end(_ pending: PendingLogout, _ done: @escaping @Sendable () -> Void) {
        let services = services
        let conversation = services.conversation(
            for: pending.key, credentials: pending.plan.sources.credentials,
            sideRequests: LoopSideRequests(runtime: runtime, plan: pending.plan, login: pending.key.challenge))
        Task(executorPreference: loop) {
            do throws(LoginFailure) {
                try await pending.logout.end(pending.session, conversation)
                services.observer.logoutEnded(pending.key, nil)
            } catch {
                services.observer.logoutEnded(pending.key, error)
            }
            done()
        }
    }

    /// Ends a replaced session after a delay for answers to requests that carried it.
    func endLater(_ pending: PendingLogout) {
        let timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in end(pending) {} }
        timer.arm(at: loop.now + Self.grace)
    }

    private static var grace: Duration { .seconds(2) }
}

/// The exchanges and logins of one worker that wait for the end of a login.
final class LoginWaiters {
    typealias Outcome = SessionTable<ExchangeTicket>.Outcome

    private unowned let runtime: ClientRuntime
    private var exchanges: [UInt64: Exchange] = [:]
    private var logins: [UInt64: (Outcome) -> Void] = [:]

    /// Creates an empty collection for the worker of `runtime`, which outlives it.
    init(_ runtime: ClientRuntime) { self.runtime = runtime }

    /// Adds a waiting exchange under `ticket`.
    func add(_ exchange: Exchange, _ ticket: ExchangeTicket) { exchanges[ticket.exchange] = exchange }

    /// Adds a login that waits for another one; `finish` is called once, with the outcome.
    func add(_ ticket: ExchangeTicket, _ finish: @escaping (Outcome) -> Void) { logins[ticket.exchange] = finish }

    /// Removes the exchange of `ticket` from the waiters for the session of `key`.
    func remove(_ ticket: ExchangeTicket, for key: SessionKey) {
        guard exchanges.removeValue(forKey: ticket.exchange) != nil else { return }
        runtime.gate.change { $0.sessions.removeWaiter(ticket, of: key) }
    }

    /// Passes the end of a login to the waiters of this worker.
    func notify(_ outcomes: SharedAttemptGate.Outcomes) {
        for (ticket, outcome) in outcomes {
            if let exchange = exchanges.removeValue(forKey: ticket.exchange) {
                exchange.loginEnded(outcome)
                continue
            }
            logins.removeValue(forKey: ticket.exchange)?(outcome)
            if case .verify(let key, let unverified) = outcome {
                // The waiter has left meanwhile: another one is to try the session.
                runtime.logins.recordVerification(
                    of: key, generation: unverified.generation, .undecided, ticket: ticket)
            }
        }
    }
}

/// A session to be ended at its server.
package struct PendingLogout: Sendable {
    let key: SessionKey
    let session: Session
    let logout: any SessionLogout
    let plan: UpstreamPlan

    /// Returns the sessions of `held` that `logins` end at the server, each once.
    package static func all(of held: [SessionKey: HeldSession], by logins: LoginIndex) -> [PendingLogout] {
        var pending: [PendingLogout] = []
        var siblings: Set<SessionKey> = []
        for (key, held) in held {
            let found = logins.entries(of: key).lazy.compactMap { entry in entry.login.logout.map { (entry.plan, $0) } }
                .first
            guard let (plan, logout) = found else { continue }
            let isFirst = siblings.insert(key.withoutScope).inserted
            if logout.endsAllScopes, !isFirst { continue }
            pending.append(PendingLogout(key: key, session: held.session, logout: logout, plan: plan))
        }
        return pending
    }
}
