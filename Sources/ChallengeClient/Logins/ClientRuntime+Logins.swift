// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

// Who starts a login: an exchange that needs its session, a session that nears its end, whoever asks after one that failed.
extension ClientRuntime {
    /// Asks for the session of a slot and starts the login where it is this exchange's turn.
    func requestSession(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, after refusal: RefusedUse? = nil, ticket: ExchangeTicket,
        of client: UpstreamClient, challenge: ExaminedResponse?, target: WebURL? = nil,
        cause: @autoclosure () -> LoginCause
    ) -> SessionTable<ExchangeTicket>.Answer {
        let slot = route.slots[slot]
        let now = wallClock()
        let answer = gate.change {
            $0.ask(for: slot.key, rejected: rejected, after: refusal, waiter: ticket, now: now)
        }
        if answer == .go { startLogin(slot, at: client.plan, challenge: challenge, target: target, cause()) }
        return answer
    }

    /// The same for a login whose server stands behind another's page: `finish` is called once, when the session is there or
    /// cannot be had.
    func requestSession(
        _ slot: RouteSessions.Slot, rejected: UInt64?, at plan: UpstreamPlan, challenge: ExaminedResponse?,
        cause: LoginCause,
        finish: @escaping (SessionTable<ExchangeTicket>.Outcome) -> Void
    ) {
        let ticket = nextTicket()
        let now = wallClock()
        switch gate.change({ $0.ask(for: slot.key, rejected: rejected, waiter: ticket, now: now) }) {
        case .use(let held): finish(.won(held))
        case .no(let failure): finish(.failed(failure))
        case .overloaded:
            let detail = "Too many requests wait for a login already. Raise `limits.waiters`, or try again."
            finish(.failed(LoginFailure(.failed, challenge: slot.key.challenge, detail: detail)))
        case .prove(let trial):
            judge(slot.key, generation: trial.generation, .undecided, ticket: ticket)
            finish(.askAgain)
        case .wait: wait(ticket: ticket, finish)
        case .go:
            wait(ticket: ticket, finish)
            startLogin(slot, at: plan, challenge: challenge, cause)
        }
    }

    /// Has the session of a slot won for whoever comes next; the exchange that met the challenge does not wait for it.
    func winUnawaited(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, ticket: ExchangeTicket, of client: UpstreamClient,
        challenge: ExaminedResponse?, cause: @autoclosure () -> LoginCause
    ) {
        let key = route.slots[slot].key
        let decision = requestSession(
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

    /// Starts the renewals that are due on a route whose sessions still serve.
    func renew(_ route: RouteSessions, of client: UpstreamClient, now: Int64) {
        // Looked at again in a second, whoever does it.
        route.postponeRenewal(until: now + 1_000)
        for slot in route.slots {
            guard let due = gate.held(slot.key)?.renewAt, now >= due,
                gate.change({ $0.sessions.beginRenewal(slot.key, now: now) })
            else { continue }
            startLogin(slot, at: client.plan, challenge: nil, LoginCause(.renewal))
        }
    }

    /// Tries the logins of `plan` again that have failed a while ago. What was rejected is not sent again: its latch is
    /// closed until the value changes.
    func recover(_ plan: UpstreamPlan) {
        let now = wallClock()
        for login in plan.logins.all {
            for key in gate.read({ $0.sessions.failing(like: login.key, now: now) })
            where gate.change({ $0.sessions.beginRecovery(key, now: now) }) {
                startLogin(
                    .init(login: login, scope: Scope(text: key.scope)), at: plan, challenge: nil, LoginCause(.recovery))
            }
        }
    }

    /// Sees to it that the sessions that `plan` keeps are there: wins what is missing, renews what nears its end, tries again
    /// what has failed a while ago.
    func keep(_ plan: UpstreamPlan) {
        for login in plan.logins.all where login.isKept {
            let slot = RouteSessions.Slot(login: login, scope: login.defaultScope)
            let now = wallClock()
            let begins = gate.change { gate in
                gate.sessions.beginKeeping(slot.key, now: now) || gate.sessions.beginRecovery(slot.key, now: now)
            }
            guard begins else { continue }
            let isHeld = gate.held(slot.key) != nil
            startLogin(slot, at: plan, challenge: nil, LoginCause(isHeld ? .renewal : .start))
        }
    }

    /// Runs the login on this loop, apart from the exchange that led to it: others may wait for it when that is gone. Where it wins a
    /// session, `replaced` is ended at its server after that.
    ///
    /// It is over after `timeouts.login` at the latest, whatever hangs in it. What it wins after that is nobody's.
    func startLogin(
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
            if let replaced, case .success = result { services.roster.onSomeWorker { $0.endLater(replaced) } }
        }
    }
}
