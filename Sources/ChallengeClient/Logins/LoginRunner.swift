// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import EventLoop

/// The logins of one worker: begun when it is this worker's turn, run on its loop, told to all who wait.
package final class LoginRunner {
    private unowned let runtime: ClientRuntime
    private let services: ClientServices
    private let loop: EventLoop

    /// The runner of `runtime`, which outlives it.
    init(_ runtime: ClientRuntime) {
        self.runtime = runtime
        services = runtime.services
        loop = runtime.loop
    }

    private var gate: SharedAttemptGate { services.gate }

    // MARK: Asking

    /// Asks for the session of a slot and starts the login where it is this exchange's turn.
    func request(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, after refusal: RefusedUse? = nil, ticket: ExchangeTicket,
        of client: UpstreamClient, challenge: ExaminedResponse?, target: WebURL? = nil,
        cause: @autoclosure () -> LoginCause
    ) -> SessionTable<ExchangeTicket>.Answer {
        let slot = route.slots[slot]
        let now = services.wallClock()
        let answer = gate.change {
            $0.ask(for: slot.key, rejected: rejected, after: refusal, waiter: ticket, now: now)
        }
        if answer == .go { start(slot, at: client.plan, challenge: challenge, target: target, cause()) }
        return answer
    }

    /// The same for a login whose server stands behind another's page: `finish` is called once, when the session is there or
    /// cannot be had.
    func request(
        _ slot: RouteSessions.Slot, rejected: UInt64?, at plan: UpstreamPlan, challenge: ExaminedResponse?,
        cause: LoginCause,
        finish: @escaping (SessionTable<ExchangeTicket>.Outcome) -> Void
    ) {
        let ticket = runtime.nextTicket()
        let now = services.wallClock()
        switch gate.change({ $0.ask(for: slot.key, rejected: rejected, waiter: ticket, now: now) }) {
        case .use(let held): finish(.won(held))
        case .no(let failure): finish(.failed(failure))
        case .overloaded:
            let detail = "Too many requests wait for a login already. Raise `limits.waiters`, or try again."
            finish(.failed(LoginFailure(.failed, challenge: slot.key.challenge, detail: detail)))
        case .prove(let trial):
            judge(slot.key, generation: trial.generation, .undecided, ticket: ticket)
            finish(.askAgain)
        case .wait: runtime.waiters.add(ticket, finish)
        case .go:
            runtime.waiters.add(ticket, finish)
            start(slot, at: plan, challenge: challenge, cause)
        }
    }

    /// Has the session of a slot won for whoever comes next; the exchange that met the challenge does not wait for it.
    func winUnawaited(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, ticket: ExchangeTicket, of client: UpstreamClient,
        challenge: ExaminedResponse?, cause: @autoclosure () -> LoginCause
    ) {
        let key = route.slots[slot].key
        let decision = request(
            route, slot: slot, rejected: rejected, ticket: ticket, of: client, challenge: challenge, cause: cause())
        if case .prove(let trial) = decision {
            judge(key, generation: trial.generation, .undecided, ticket: ticket)
        }
        gate.change { $0.sessions.leave(key, waiter: ticket) }
    }

    /// An exchange has tried a session.
    func judge(
        _ key: SessionKey, generation: UInt64, _ proof: SessionTable<ExchangeTicket>.Proof, ticket: ExchangeTicket
    ) {
        if proof == .accepted { services.observer.sessionAccepted(key) }
        services.tell(gate.change { $0.sessions.judge(key, generation: generation, proof, by: ticket) })
    }

    // MARK: Without a request

    /// Starts the renewals that are due on a route whose sessions still serve.
    func renew(_ route: RouteSessions, of client: UpstreamClient, now: Int64) {
        // Looked at again in a second, whoever does it.
        route.postponeRenewal(until: now + 1_000)
        for slot in route.slots {
            guard let due = gate.held(slot.key)?.renewAt, now >= due,
                gate.change({ $0.sessions.beginRenewal(slot.key, now: now) })
            else { continue }
            start(slot, at: client.plan, challenge: nil, LoginCause(.renewal))
        }
    }

    /// Tries the logins of `plan` again that have failed a while ago. What was rejected is not sent again: its latch is
    /// closed until the value changes.
    func recover(_ plan: UpstreamPlan) {
        let now = services.wallClock()
        for login in plan.logins.all {
            for key in gate.read({ $0.sessions.failing(like: login.key, now: now) })
            where gate.change({ $0.sessions.beginRecovery(key, now: now) }) {
                start(
                    .init(login: login, scope: Scope(text: key.scope)), at: plan, challenge: nil, LoginCause(.recovery))
            }
        }
    }

    /// Sees to it that the sessions that `plan` keeps are there: wins what is missing, renews what nears its end, tries again
    /// what has failed a while ago.
    func keep(_ plan: UpstreamPlan) {
        for login in plan.logins.all where login.isKept {
            let slot = RouteSessions.Slot(login: login, scope: login.defaultScope)
            let now = services.wallClock()
            let begins = gate.change { gate in
                gate.sessions.beginKeeping(slot.key, now: now) || gate.sessions.beginRecovery(slot.key, now: now)
            }
            guard begins else { continue }
            let isHeld = gate.held(slot.key) != nil
            start(slot, at: plan, challenge: nil, LoginCause(isHeld ? .renewal : .start))
        }
    }

    /// Wins the sessions of `keys` anew, with the present value of their credential; until that is done the old ones serve.
    /// Where no session is held, a pause after the old value's failure ends.
    func replaceOutdated(_ keys: Set<SessionKey>, at plans: [UpstreamPlan]) {
        let now = services.wallClock()
        let standings = gate.read { $0.sessions.standings(now: now) }
        for key in keys {
            switch standings[key] ?? .cold {
            case .winning: continue
            case .cold: services.ledger?.forget(key)
            case .failing:
                services.fleet?.forgetFailures()
                gate.change { $0.sessions.forgetFailures(of: key.challenge) }
                services.ledger?.forget(key)
            case .held: replace(key, at: plans, now: now)
            }
        }
    }

    private func replace(_ key: SessionKey, at plans: [UpstreamPlan], now: Int64) {
        for plan in plans {
            guard let login = plan.logins.all.first(where: { $0.key.isSibling(of: key) }) else { continue }
            // Otherwise one runs already, or its last try failed a moment ago: the next look comes back to it.
            guard gate.change({ $0.sessions.beginRenewal(key, now: now) }) else { return }
            start(
                RouteSessions.Slot(login: login, scope: Scope(text: key.scope)), at: plan, challenge: nil,
                LoginCause(.change), replacing: replaced(key, login, at: plan))
            return
        }
        services.ledger?.forget(key)
    }

    /// The session that is held now, where its login ends sessions at the server. One logout for all scopes would end the new one as
    /// well: there the server's own session stays the same.
    private func replaced(_ key: SessionKey, _ login: Authenticator, at plan: UpstreamPlan) -> PendingLogout? {
        guard let logout = login.logout, !logout.endsAllScopes, let held = gate.held(key) else { return nil }
        return PendingLogout(key: key, session: held.session, logout: logout, plan: plan)
    }

    // MARK: Running

    /// Runs the login on this loop, apart from the exchange that led to it: others may wait for it when that is gone. Where it wins a
    /// session, `replaced` is ended at its server after that.
    ///
    /// It is over after `timeouts.login` at the latest, whatever hangs in it. What it wins after that is nobody's.
    func start(
        _ slot: RouteSessions.Slot, at plan: UpstreamPlan, challenge: ExaminedResponse?, target: WebURL? = nil,
        _ cause: LoginCause, replacing replaced: PendingLogout? = nil
    ) {
        let login = slot.login.login(LoginOccasion(scope: slot.scope, challenge: challenge, target: target))
        let sideRequests = sideRequests(for: slot.login, at: plan, cause: cause)
        let services = services
        let key = slot.key
        let limit = LoginLimit(plan.timeouts.login, on: loop)
        Task(executorPreference: loop) {
            let login: @Sendable () async -> Result<Session, LoginFailure> = {
                services.observer.loginBegan(key, cause)
                let (result, duration) = await services.run(
                    login, for: key, sideRequests: sideRequests, within: limit)
                services.observer.loginEnded(key, result, cause, after: duration)
                return result
            }
            let won: Result<Session, LoginFailure>?
            if let fleet = services.fleet {
                won = await limit.result(inTurnFor: key, login: login) { login in
                    // What ends at the latch sends nothing: no other node is to wait for that.
                    if await services.closedLatch(of: key) != nil { return await login() }
                    return await fleet.win(key, isRenewal: cause.isRenewal, services, login: login)
                }
            } else {
                won = await login()
            }
            guard let result = won else { return services.tell(services.gate.change { $0.sessions.abandon(key) }) }
            services.tell(services.gate.finish(key, with: result))
            if let replaced, case .success = result { services.roster.onSomeWorker { $0.logins.endLater(replaced) } }
        }
    }

    /// The side requests of a login of `standing` at the upstream of `plan`, to which `cause` led; on the loop's thread.
    package func sideRequests(
        for standing: Authenticator, at plan: UpstreamPlan, cause: LoginCause
    ) -> any SideRequests {
        guard !standing.isLoginPage, plan.logins.all.contains(where: \.isLoginPage) else {
            return LoopSideRequests(runtime: runtime, plan: plan)
        }
        return GuardedSideRequests(runtime: runtime, plan: plan, cause: cause)
    }

    // MARK: Logging out

    /// Ends a session at its server, and calls `done`, whatever came of it.
    func end(_ pending: PendingLogout, _ done: @escaping @Sendable () -> Void) {
        let services = services
        let conversation = services.conversation(
            for: pending.key, credentials: services.credentials,
            sideRequests: LoopSideRequests(runtime: runtime, plan: pending.plan))
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

    /// Ends a session that another has taken the place of, once what was sent with it has had time to be answered.
    func endLater(_ pending: PendingLogout) {
        let timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in
            // It holds itself up to here.
            timer.onExpiry = nil
            end(pending) {}
        }
        timer.arm(at: loop.now + Self.grace)
    }

    private static var grace: Duration { .seconds(2) }
}
