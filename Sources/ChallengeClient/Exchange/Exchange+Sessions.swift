// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

// The sessions that the request needs: asked for, waited for, tried, confirmed.
extension Exchange {
    // MARK: Logging in

    /// Gets the session of `slot`: from the table, or by waiting for a login.
    func logIn(_ slot: Int) {
        guard let client, let route = sessions.route else { return }
        releaseTransfer()
        if let reason = route.slots[slot].login.refusal {
            return perform(machine.sessionFailed(ExchangeError(.callerNotAllowed, detail: reason)))
        }
        let isChallenged = machine.challengedSlot == slot
        var answer = requestSession(
            slot, rejected: sessions.rejected(slot, at: target), isChallenged, of: client, at: route)
        if isChallenged, case .use(let held) = answer, held.session.isEmpty {
            // Established before some other request, where nothing was asked for.
            answer = requestSession(slot, rejected: held.generation, isChallenged, of: client, at: route)
        }
        switch answer {
        case .use(let held): use(held, isNew: false)
        case .prove(let session): tryOut(session)
        case .go where request.isCheck, .wait where request.isCheck:
            // Taken back at once: the places of those who wait are the callers'.
            runtime.gate.change { $0.sessions.leave(route.slots[slot].key, waiter: ticket) }
            perform(machine.sessionFailed(.loginUnderWay))
        case .go, .wait:
            // Anew: whatever was waited for before, as the beginning of a login page is, had a limit of its own.
            timer.arm(at: runtime.loop.now + client.plan.timeouts.login)
            waitingFor = route.slots[slot].key
            awaitedLogin = route.slots[slot].key.challenge
            runtime.waiters.add(self, ticket)
        case .no(let failure):
            if isOptional(slot) { goWithout(slot) } else { perform(machine.sessionFailed(ExchangeError(failure))) }
        case .overloaded: perform(machine.sessionFailed(.tooManyWaiters))
        }
    }

    private func requestSession(
        _ slot: Int, rejected: UInt64?, _ isChallenged: Bool, of client: UpstreamClient, at route: RouteSessions
    ) -> SessionTable<ExchangeTicket>.Answer {
        let refusedUse = refusedUse(of: slot)
        let answer = runtime.logins.request(
            route, slot: slot, rejected: rejected, after: refusedUse, ticket: ticket, of: client,
            challenge: isChallenged ? challenge : nil,
            target: isChallenged ? nil : address(at: client), cause: loginCause)
        // Only who leads: whoever finds another session there, or waits, may well be accepted with it.
        if answer == .go, refusedUse != nil { sessions.refusedSlot = slot }
        return answer
    }

    /// The use of a session of `slot` that was refused here, because of which a login may begin. One that wears out may have been used up
    /// by others.
    private func refusedUse(of slot: Int) -> RefusedUse? {
        guard !request.isCheck, let generation = sessions.carried(slot), !sessions.carriesSpendable,
            let resource = resource(of: slot)
        else { return nil }
        return RefusedUse(place: resource, generation: generation)
    }

    /// The request's own address for a login that looks there; `nil` for a target that is no path (`*` of OPTIONS).
    private func address(at client: UpstreamClient) -> WebURL? {
        let url = client.plan.address(of: target)
        return url.path.hasPrefix("/") ? url : nil
    }

    /// This exchange's request, for a login that it leads to. Asks the kernel for the caller.
    private var loginCause: LoginCause {
        if request.isCheck { return LoginCause(.check) }
        return LoginCause(.request, exchange: id, user: caller?.callerUser)
    }

    /// The login, or the confirmation, that this exchange waited for is over.
    func loginEnded(_ outcome: SessionTable<ExchangeTicket>.Outcome) {
        waitingFor = nil
        if machine.state.isHolding { return confirmationEnded(outcome) }
        guard let slot = machine.state.waitingSlot else { return }
        switch outcome {
        case .kept(let held, _), .won(let held):
            guard machine.challengedSlot == slot, held.session.isEmpty, !sessions.hasPassedEmpty else {
                return use(held, isNew: true)
            }
            // Established before some other request, where nothing was asked for.
            sessions.passEmpty(held.generation, in: slot)
            perform(machine.askAgain())
        case .prove(_, let session): tryOut(session)
        case .failed(let failure):
            if isOptional(slot), failure.saysNothingWasTried { return goWithout(slot) }
            perform(machine.sessionFailed(ExchangeError(failure)))
        case .askAgain: perform(machine.askAgain())
        }
    }

    /// A session is there.
    private func use(_ held: HeldSession, isNew: Bool, isUnverified: Bool = false) {
        guard let route = sessions.route, let slot = machine.state.waitingSlot else { return }
        // Nothing was established by it, so that a challenge that comes now is the first.
        if held.session.isEmpty, machine.challengedSlot != slot, !request.isSubrequest { return goWithout(slot) }
        let missing = missingSlot
        perform(
            machine.sessionReady(
                ExchangeMachine.ReadySession(
                    isNew: isNew, isUnverified: isUnverified, isHidden: isNew && missing == slot && canComeAgain(slot),
                    login: route.slots[slot].key.challenge),
                missing: missing))
    }

    /// A session is there that the server has not accepted yet.
    private func tryOut(_ session: HeldSession) {
        guard let route = sessions.route, let slot = machine.state.waitingSlot else { return }
        guard !request.isSubrequest else {
            // Only who sees the answer to a request can say what it proves. The other proxy sends the request without this session,
            // and hands the challenge that it meets to a listener which forwards.
            isPartial = true
            runtime.logins.judge(route.slots[slot].key, generation: session.generation, .undecided, ticket: ticket)
            return perform(machine.sessionReady(.init(isNew: false), missing: nil))
        }
        sessions.tryOut(session, in: slot)
        use(session, isNew: true, isUnverified: true)
    }

    /// The request goes without the session of `slot`; what it meets is answered then.
    private func goWithout(_ slot: Int) {
        sessions.goWithout(slot)
        perform(machine.sessionReady(.init(isNew: false), missing: missingSlot))
    }

    /// Returns whether the request can go without the session of `slot`: nothing has asked for it yet, and the request is safe (RFC
    /// 9110 §9.2.1). Another could be carried out as nobody's.
    private func isOptional(_ slot: Int) -> Bool {
        guard let route = sessions.route else { return false }
        return machine.challengedSlot != slot && request.method.isSafe && !request.isSubrequest
            && !route.slots[slot].login.isAhead
    }

    /// The first slot whose session has to be established before anything is sent.
    var missingSlot: Int? {
        guard let route = sessions.route, !route.slots.isEmpty else { return nil }
        return route.missing(
            for: request, at: target, loginOrder, by: runtime.gate, now: runtime.wallClock(), carrying: sessions)
    }

    private var loginOrder: LoginOrder {
        if request.isSubrequest { return .beforeAnswer }
        if body.isTooLong { return .beforeLongBody }
        if request.framing == .chunked { return .beforeUnmeasuredBody }
        return request.hasBody || !request.method.isSafe ? .beforeRequest : .afterChallenge
    }

    /// Returns whether it makes sense to ask for the session of `slot` once more: it is there or on its way, or has failed by now.
    func canComeAgain(_ slot: Int) -> Bool {
        guard let route = sessions.route else { return false }
        return runtime.gate.standing(of: route.slots[slot].key, now: runtime.wallClock()) != .cold
    }

    /// The exchange ends because its body is gone. The caller is told to send it again, so the session is established meanwhile.
    func logInForNext(_ slot: Int) {
        guard let client, let route = sessions.route else { return }
        runtime.services.replay?.figures.wasNotReplayable()
        guard route.slots[slot].login.refusal == nil else { return }
        runtime.logins.winUnawaited(
            route, slot: slot, rejected: sessions.sent(slot), ticket: ticket, of: client, challenge: challenge,
            cause: loginCause)
    }

    // MARK: Judging

    /// Passes on what the machine has decided of sessions that were tried, and of challenges that were met.
    func settleNews() {
        while let judgement = machine.takeJudgement() { passOn(judgement) }
        guard let met = machine.takeConcludedChallenge() else { return }
        guard let client, let route = sessions.route, met.slot < route.slots.count, !request.isCheck else { return }
        client.meter.met(route.slots[met.slot].login.name, met.outcome)
    }

    private func passOn(_ judgement: SessionJudgement) {
        guard let client, let route = sessions.route, let session = sessions.takeTrial(of: judgement.slot) else {
            return
        }
        let slot = route.slots[judgement.slot]
        if judgement.proof == .accepted, let use = session.session.use {
            runtime.gate.noteAccepted(
                use, by: slot.login, challenge: challenge, address: client.plan.address(of: target),
                isSafe: request.method == .get || request.method == .head, now: runtime.wallClock())
        }
        runtime.logins.judge(slot.key, generation: session.generation, judgement.proof, ticket: ticket)
    }

    /// This route, as refusals of the session of `slot` are remembered for it.
    private func resource(of slot: Int) -> ResourceKey? {
        guard let route = sessions.route, route.slots.indices.contains(slot) else { return nil }
        return ResourceKey(of: request, target, session: route.slots[slot].key)
    }

    /// The refusal of a session of `slot` here, because of which a login had begun, says nothing any more.
    func forgetRefusal(of slot: Int) {
        if let resource = resource(of: slot) { runtime.gate.change { $0.refusals.forget(resource) } }
        sessions.refusedSlot = nil
    }

    // MARK: Confirming

    // A challenge on a request that carried a session: the answer is held, with its transfer, until it is known if the session is over.
    // Then it goes to the caller as it came, or the request is sent again. So the upstream executes the request once.

    /// Asks if the session of `slot` still works.
    func confirm(_ slot: Int) {
        guard let client, let route = sessions.route else { return }
        let doubt = runtime.confirmations.doubt(
            route.slots[slot], generation: sessions.sent(slot) ?? 0, ticket: ticket, at: client.plan,
            challenge: challenge, cause: loginCause)
        switch doubt {
        case .keep: perform(keepSession(isConfirmed: false))
        case .over: perform(machine.sessionOver(canReplay: body.canReplay))
        case .overloaded: breakOff(.tooManyWaiters)
        case .confirm, .wait:
            // Whoever waits is no longer the one who tries it.
            _ = sessions.takeTrial(of: slot)
            machine.confirmationIsAwaited()
            timer.arm(at: runtime.loop.now + client.plan.timeouts.login)
            waitingFor = route.slots[slot].key
            runtime.waiters.add(self, ticket)
        }
    }

    /// The confirmation is over, or a login of the same session.
    private func confirmationEnded(_ outcome: SessionTable<ExchangeTicket>.Outcome) {
        guard let slot = machine.state.heldSlot else { return }
        switch outcome {
        case .askAgain: goOn { $0.confirm(slot) }
        case .failed(let failure) where !failure.isUnknown:
            goOn { $0.perform($0.machine.sessionRejected(ExchangeError(failure))) }
        case .failed: goOn { $0.perform($0.keepSession(isConfirmed: false)) }
        case .kept(_, let isConfirmed): goOn { $0.perform($0.keepSession(isConfirmed: isConfirmed)) }
        case .prove(let key, let session):
            // Another session is there already; whoever needs it next tries it.
            runtime.logins.judge(key, generation: session.generation, .undecided, ticket: ticket)
            goOn { $0.perform($0.machine.sessionOver(canReplay: $0.body.canReplay)) }
        case .won: goOn { $0.perform($0.machine.sessionOver(canReplay: $0.body.canReplay)) }
        }
    }

    /// Nobody waits any longer for the confirmation: the answer goes to the caller.
    func giveUpConfirmation() {
        if let waitingFor { runtime.waiters.remove(ticket, for: waitingFor) }
        waitingFor = nil
        goOn { $0.perform($0.keepSession(isConfirmed: false)) }
    }

    /// Lets the answer pass. Only a confirmed session is remembered as refused at this route: else the table has it for a moment.
    private func keepSession(isConfirmed: Bool) -> ExchangeMachine.AnswerAction {
        if !isConfirmed { finding.refusal = nil }
        return machine.sessionKept()
    }

    /// Carries out what becomes of the answer that was held, and has the transfer tell the rest of it.
    private func goOn(_ carryOut: (Exchange) -> Void) {
        let transfer = transfer
        carryOut(self)
        guard let transfer, self.transfer === transfer, !machine.state.isHolding else { return }
        transfer.tellNewsAgain()
        guard self.transfer === transfer, !machine.state.hasEnded else { return }
        if wantsBody { caller?.exchangeWantsBody() }
    }

    // MARK: Auth requests

    /// Answers another proxy with the fields of the sessions that are held, in place of sending the request.
    func authorize() {
        guard let client, let route = sessions.route, let caller else { return }
        // The snapshot is fresh: it was asked a moment ago what is missing in it.
        let now = runtime.wallClock()
        if !client.plan.carriesSecrets, !route.fields.isEmpty { return breakOff(.plaintext(of: client.plan)) }
        if now >= route.renewAt { runtime.logins.renew(route, of: client, now: now) }
        do throws(LoginFailure) {
            let signing = signing(
                at: client, body: request.method.isSafe || request.method == .delete ? .none : .unread)
            let answer = try SubrequestAnswer(
                of: route, for: signing, keepsCredentials: request.keepsCredentials, isPartial: isPartial,
                target: target, at: client.plan.base.origin, now: now)
            caller.exchangeAuthorizes(answer)
            machine.answeredLocally()
            finish()
        } catch {
            breakOff(ExchangeError(error))
        }
    }
}

extension LoginFailure {
    /// True if no credential was sent: the latch is closed, or there is none to be had.
    fileprivate var saysNothingWasTried: Bool {
        switch code {
        case .accountLocked, .attemptsKept, .latched, .noCredential: true
        default: isCancelled
        }
    }
}
