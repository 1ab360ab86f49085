// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

/// Confirmations of sessions in doubt: one per session for all exchanges of all workers.
final class ConfirmationRunner {
    private unowned let runtime: ClientRuntime
    private let services: ClientServices
    private let loop: EventLoop

    /// Creates the runner of `runtime`, which outlives it.
    init(_ runtime: ClientRuntime) {
        self.runtime = runtime
        services = runtime.services
        loop = runtime.loop
    }

    /// Requests the confirmation of a slot's session, and starts the confirmation if this exchange leads.
    ///
    /// `refusal` is recorded if the session still works.
    func requestConfirmation(
        of slot: RouteSessions.Slot, generation: UInt64, after refusal: RefusedUse?, ticket: ExchangeTicket,
        at plan: UpstreamPlan, challenge: ExaminedResponse?, cause: @autoclosure () -> LoginCause
    ) -> SessionTable<ExchangeTicket>.ConfirmationAnswer {
        let now = services.wallClock()
        let answer = services.gate.change {
            $0.requestConfirmation(of: slot.key, generation: generation, after: refusal, waiter: ticket, now: now)
        }
        if case .confirm(let held) = answer {
            startConfirmation(slot, held, after: refusal, at: plan, challenge: challenge, cause())
        } else {
            services.trials.settle(slot.key, by: services.gate)
        }
        return answer
    }

    /// Requests the confirmation of the session of a login page in front of another login's server.
    ///
    /// Calls `finish` once, with true if the session is over. The first `before` confirmations do not count; by
    /// default, those that have begun by now.
    func requestConfirmation(
        of slot: RouteSessions.Slot, generation: UInt64, after before: UInt64? = nil, at plan: UpstreamPlan,
        challenge: ExaminedResponse, cause: LoginCause, finish: @escaping (_ isOver: Bool) -> Void
    ) {
        let before = before ?? services.gate.read { $0.sessions.confirmations }
        let ticket = runtime.nextTicket()
        switch requestConfirmation(
            of: slot, generation: generation, after: nil, ticket: ticket, at: plan, challenge: challenge, cause: cause)
        {
        case .over: finish(true)
        case .keep, .overloaded: finish(false)
        case .confirm, .wait:
            runtime.waiters.add(ticket) { [unowned self] outcome in
                switch outcome {
                case .kept(_, let confirmation?) where confirmation <= before: break
                case .askAgain: break
                // A renewal that failed says nothing about the session that it was to replace.
                case .failed where holds(slot.key, generation): break
                case .failed, .kept: return finish(false)
                case .verify, .established: return finish(true)
                }
                requestConfirmation(
                    of: slot, generation: generation, after: before, at: plan, challenge: challenge, cause: cause,
                    finish: finish)
            }
        }
    }

    private func holds(_ key: SessionKey, _ generation: UInt64) -> Bool {
        !services.gate.read { $0.sessions.isOutdated(key, generation: generation) }
    }

    /// Checks on this loop if `held` still works. A confirmation is not a login: only a rejection is counted, logged
    /// and audited.
    private func startConfirmation(
        _ slot: RouteSessions.Slot, _ held: HeldSession, after refusal: RefusedUse?, at plan: UpstreamPlan,
        challenge: ExaminedResponse?, _ cause: LoginCause
    ) {
        let login = slot.login.login(LoginOccasion(scope: slot.scope, challenge: challenge))
        let (services, sources) = (services, plan.sources)
        let key = slot.key
        let conversation = Conversation(
            sideRequests: runtime.logins.sideRequests(for: slot.login, at: plan, cause: cause),
            credentials: sources.credentials,
            attempts: services.gate, state: services.state,
            turns: services.turns(LoginLimit(plan.timeouts.login, on: loop)), now: services.wallClock)
        let (deadline, limit) = (LoginDeadline(on: loop), plan.timeouts.login)
        // That of the request whose refusal is confirmed, if it was the first with this value.
        let trial = services.trials.take(key)
        Task(executorPreference: loop) {
            let bounded = deadline.bounding(conversation)
            let check =
                slot.login.confirmsSessions || !held.session.sendsTokens ? nil : SessionCheck(held, slot, challenge)
            let result = await deadline.outcome(within: limit, late: ConfirmationResult(.unknown)) {
                guard let check else { return await login.confirm(held.session, of: key, in: trial, bounded) }
                return ConfirmationResult(await check.run(bounded))
            }
            // Released at the end, when a rejection is on disk.
            defer {
                result.turn?.end()
                trial?.end()
            }
            var confirmation = result.confirmation
            if check != nil, confirmation == .over,
                !services.gate.change({
                    $0.sessions.mayRenew(key, generation: held.generation, now: services.wallClock())
                })
            {
                confirmation = .unknown
            }
            if let use = held.session.use {
                if confirmation == .stillGood { services.observer.sessionAccepted(key) }
                // Another node or an earlier process may have recorded an acceptance: the next login of this process
                // decides.
                let isOthers =
                    held.isTakenOver && result.refusal == nil && services.gate.acceptance(of: use) == nil
                if confirmation == .over, isOthers { confirmation = .unknown }
                if confirmation == .over {
                    let failure =
                        if let refusal = result.refusal { refusal.failure } else {
                            await services.close(use, for: key, asking: sources)
                        }
                    services.observer.loginEnded(key, .failure(failure), cause, after: .zero)
                    // If the credential was replaced meanwhile, waiters are not failed: they log in with the new value.
                    if services.credentialVersions?.isReplaced(use.credential) != true {
                        return services.notify(
                            services.gate.change {
                                $0.sessions.reject(
                                    key, generation: held.generation, failure, now: services.wallClock())
                            })
                    }
                }
            }
            services.notify(
                services.gate.change {
                    $0.confirmSession(
                        key, generation: held.generation, confirmation, after: refusal, now: services.wallClock())
                })
        }
    }
}

/// The result of a confirmation, and the turn in which it was made.
private struct ConfirmationResult: Sendable {
    let confirmation: SessionConfirmation
    let turn: LoginTurn?
    /// The reason if nothing was sent, because another process saw the value rejected.
    let refusal: AttemptRefusal?

    init(_ confirmation: SessionConfirmation, in turn: LoginTurn? = nil, refusal: AttemptRefusal? = nil) {
        self.confirmation = confirmation
        self.turn = turn
        self.refusal = refusal
    }
}

extension SessionLogin {
    /// Confirms a session of `key`. One that sends a credential waits for its turn among the processes with the same state.
    fileprivate func confirm(
        _ session: Session, of key: SessionKey, in trial: LoginTurn?, _ conversation: Conversation
    ) async -> ConfirmationResult {
        guard let use = session.use else { return ConfirmationResult(await confirm(session, conversation)) }
        var turn = trial
        if turn == nil { turn = await conversation.turns.take(key.turnName, waiting: {}) }
        guard let turn else { return ConfirmationResult(.unknown) }
        if let refusal = conversation.attempts.refusal(of: use, now: conversation.now()) {
            return ConfirmationResult(.over, in: turn, refusal: refusal)
        }
        return ConfirmationResult(await confirm(session, conversation), in: turn)
    }
}
