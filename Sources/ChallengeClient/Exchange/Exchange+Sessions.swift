// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

// The sessions that the request needs: request, wait, try, confirm.
extension Exchange {
    // MARK: Logging in

    /// Gets the session of `slot` from the table or by waiting for a login.
    func logIn(_ slot: Int) {
        guard let client, let route = sessions.route else { return }
        releaseTransfer()
        if let reason = route.slots[slot].login.refusal {
            return perform(machine.sessionFailed(ExchangeError(.callerNotAllowed, detail: reason)))
        }
        let isChallenged = machine.challengedSlot == slot
        if isChallenged, let failure = sessions.sharedFailure, !failure.lacksChallenge {
            return perform(machine.sessionFailed(ExchangeError(failure)))
        }
        var answer = requestSession(
            slot, rejected: sessions.rejected(slot, at: target), isChallenged, of: client, at: route)
        if isChallenged, case .use(let held) = answer, held.session.isEmpty {
            // Established before another request, to which no challenge came.
            answer = requestSession(slot, rejected: held.generation, isChallenged, of: client, at: route)
        }
        switch answer {
        case .use(let held): use(held, isNew: false)
        case .verify(let session): tryOut(session, isNew: false)
        case .logIn, .wait:
            guard !request.isCheck else { return perform(machine.sessionFailed(.loginUnderWay)) }
            leadsLogin = answer == .logIn
            // The timer restarts: an earlier wait, such as for the beginning of a login page, had its own limit.
            timer.arm(at: runtime.loop.now + client.plan.timeouts.login)
            waitingFor = route.slots[slot].key
            awaitedLogin = route.slots[slot].key.challenge
            runtime.waiters.add(self, ticket)
        case .refuse(let failure):
            if isOptional(slot) { omitSession(slot) } else { perform(machine.sessionFailed(ExchangeError(failure))) }
        case .overloaded: perform(machine.sessionFailed(.tooManyWaiters))
        }
    }

    private func requestSession(
        _ slot: Int, rejected: UInt64?, _ isChallenged: Bool, of client: UpstreamClient, at route: RouteSessions
    ) -> SessionTable<ExchangeTicket>.Answer {
        let refusedUse = refusedUse(of: slot)
        let answer = runtime.logins.request(
            route, slot: slot, rejected: rejected, after: refusedUse, ticket: ticket,
            address: resource(of: slot)?.resource, waits: !request.isCheck, tries: !request.isAuthRequest, of: client,
            challenge: isChallenged ? challenge : nil,
            target: isChallenged ? nil : address(at: client), cause: loginCause)
        // Only the exchange that leads the login: another session, found or waited for, may well be accepted.
        if answer == .logIn, refusedUse != nil { sessions.refusedSlot = slot }
        return answer
    }

    /// Returns the refused use of a session of `slot` that may start a login.
    ///
    /// `nil` for a session that other requests may have used up.
    private func refusedUse(of slot: Int) -> RefusedUse? {
        guard !request.isCheck, let generation = sessions.carried(slot), !sessions.carriesSpendable,
            let resource = resource(of: slot)
        else { return nil }
        return RefusedUse(key: resource, generation: generation)
    }

    /// Returns the request's own URL for a login; `nil` if the target is not a path (`*` of OPTIONS).
    private func address(at client: UpstreamClient) -> WebURL? {
        let url = client.plan.address(of: target)
        return url.path.hasPrefix("/") ? url : nil
    }

    /// This exchange's request as the cause of a login. Asks the kernel for the caller's uid.
    private var loginCause: LoginCause {
        if request.isCheck { return LoginCause(.check) }
        return LoginCause(.request, exchange: id, caller: caller?.identity)
    }

    /// Continues after the awaited login or confirmation.
    func loginEnded(_ outcome: SessionTable<ExchangeTicket>.Outcome) {
        waitingFor = nil
        if machine.state.isHolding { return confirmationEnded(outcome) }
        guard let slot = machine.state.waitingSlot else { return }
        if sessions.isBehind, !takesSession(of: outcome, in: slot) { return goWithoutSession() }
        if case .established(let held) = outcome {
            held.acceptance.recordVerification(at: runtime.loop.now.nanoseconds)
        }
        switch outcome {
        case .kept(let held, _), .established(let held):
            guard machine.challengedSlot == slot, held.session.isEmpty, !sessions.hasRetriedEmpty else {
                return use(held, isNew: true)
            }
            // Established before another request, to which no challenge came.
            sessions.retryEmpty(held.generation, in: slot)
            perform(machine.askAgain())
        case .verify(_, let session): tryOut(session, isNew: true)
        // The login had no challenge that it could use; this exchange has one, or an address that may show one.
        case .failed(let failure) where failure.lacksChallenge && !leadsLogin && !isOptional(slot):
            perform(machine.askAgain())
        case .failed(let failure):
            // A page that asks for no login needs none.
            let mayGoWithout = failure.isWithoutAttempt || loginTiming == .beforeConcealedPage
            if isOptional(slot), mayGoWithout { return omitSession(slot) }
            perform(machine.sessionFailed(ExchangeError(failure)))
        case .askAgain: perform(machine.askAgain())
        }
    }

    /// Continues with a session of the awaited slot.
    private func use(_ held: HeldSession, isNew: Bool, isUnverified: Bool = false) {
        guard let route = sessions.route, let slot = machine.state.waitingSlot else { return }
        // An empty session established nothing, so that a challenge that comes now is the first.
        if held.session.isEmpty, machine.challengedSlot != slot, !request.isAuthRequest { return omitSession(slot) }
        let missing = missingSlot
        if isNew || isUnverified { sessions.established = held }
        perform(
            machine.sessionReady(
                ExchangeMachine.ReadySession(
                    isNew: isNew, isUnverified: isUnverified, isHidden: isNew && missing == slot && canReappear(slot),
                    isTakenOver: held.isTakenOver, login: route.slots[slot].key.challenge),
                missing: missing))
    }

    /// Tries a session that the server has not accepted yet. `isNew`: this exchange has waited for it.
    private func tryOut(_ session: HeldSession, isNew: Bool) {
        guard let route = sessions.route, let slot = machine.state.waitingSlot else { return }
        guard !request.isAuthRequest else {
            // Only the response to a request verifies a session, and the other proxy receives that response. It sends
            // the request without this session and passes the challenge on to a listener that forwards.
            isPartial = true
            runtime.logins.recordVerification(
                of: route.slots[slot].key, generation: session.generation, .undecided, ticket: ticket)
            return perform(machine.sessionReady(.init(isNew: false), missing: nil))
        }
        sessions.tryOut(session, in: slot)
        runtime.logins.trialBegan(of: route.slots[slot].key, generation: session.generation, ticket: ticket)
        use(session, isNew: isNew, isUnverified: true)
    }

    /// Sends the request without the session of `slot`; a challenge is answered when it comes.
    private func omitSession(_ slot: Int) {
        sessions.omitSession(slot)
        perform(machine.sessionReady(.init(isNew: false), missing: missingSlot))
    }

    /// Returns true if the request can go without the session of `slot`.
    ///
    /// That is if nothing has asked for the session yet and the request is safe (RFC 9110 §9.2.1). An unsafe request
    /// could be carried out anonymously.
    private func isOptional(_ slot: Int) -> Bool {
        guard let route = sessions.route else { return false }
        return machine.challengedSlot != slot && request.method.isSafe && !request.isAuthRequest
            && !route.slots[slot].login.isAhead
    }

    /// The first slot whose session must be established before the request is sent.
    var missingSlot: Int? {
        guard let route = sessions.route, !route.slots.isEmpty else { return nil }
        return route.missing(
            for: request, at: target, loginTiming, by: runtime.gate, now: runtime.wallClock(), carrying: sessions)
    }

    private var loginTiming: LoginTiming {
        if request.isAuthRequest { return .beforeAnswer }
        if body.isTooLong { return .beforeLongBody }
        if request.framing == .chunked { return .beforeUnmeasuredBody }
        if request.hasBody || !request.method.isSafe { return .beforeRequest }
        return awaitsConcealedPage ? .beforeConcealedPage : .afterChallenge
    }

    /// Returns true if the session of `slot` is worth another request: present, under way, or failed by now. Or an operator has
    /// dropped it since a login brought it for this exchange.
    func canReappear(_ slot: Int) -> Bool {
        guard let route = sessions.route else { return false }
        let now = runtime.wallClock()
        return sessions.hasEstablished(now: now) || runtime.gate.state(of: route.slots[slot].key, now: now) != .cold
    }

    /// Starts a login for the caller's next attempt, as this exchange ends without its body.
    func logInForNext(_ slot: Int) {
        guard let client, let route = sessions.route else { return }
        runtime.services.replay?.figures.wasNotReplayable()
        guard route.slots[slot].login.refusal == nil else { return }
        runtime.logins.logInUnawaited(
            route, slot: slot, rejected: sessions.sent(slot), ticket: ticket, of: client, challenge: challenge,
            cause: loginCause)
    }

    // MARK: Outcomes

    /// Reports the machine's verdicts on tried sessions and its concluded challenge.
    func reportOutcomes() {
        while let verdict = machine.nextVerdict() { report(verdict) }
        guard let met = machine.takeConcludedChallenge() else { return }
        guard let client, let route = sessions.route, met.slot < route.slots.count, !request.isCheck else { return }
        client.meter.met(route.slots[met.slot].login.name, met.outcome)
        if met.outcome == .answered { recordProof(in: met.slot, at: client, route) }
    }

    /// Records that a value was accepted: the request asked for a login without the new session, and does not with it.
    private func recordProof(in slot: Int, at client: UpstreamClient, _ route: RouteSessions) {
        guard let submission = sessions.established?.session.submission,
            submission.use.key.challenge == route.slots[slot].key.challenge
        else { return }
        recordAcceptance(
            of: submission.use, by: route.slots[slot].login, form: submission.form, challenge: challenge, at: client)
    }

    private func report(_ verdict: SessionVerdict) {
        guard let client, let route = sessions.route, let session = sessions.takeUnverified(of: verdict.slot) else {
            return
        }
        let slot = route.slots[verdict.slot]
        if verdict.result == .accepted, let use = session.session.use {
            recordAcceptance(of: use, by: slot.login, challenge: challenge, at: client)
        }
        runtime.logins.recordVerification(
            of: slot.key, generation: session.generation, verdict.result, ticket: ticket)
    }

    /// Records that a value was accepted: its login page came at this request's address, which asks for no login with the session.
    private func recordProof(of session: Session, by login: Authenticator, at client: UpstreamClient) {
        guard let submission = session.submission, submission.askedAt == client.plan.address(of: target).path,
            runtime.gate.acceptance(of: submission.use) == nil
        else { return }
        recordAcceptance(of: submission.use, by: login, form: submission.form, challenge: nil, at: client)
    }

    /// Records that a value was accepted at this request's address. Returns true if that was new.
    @discardableResult
    private func recordAcceptance(
        of use: CredentialUse, by login: Authenticator, form: AcceptedForm? = nil, challenge: ExaminedResponse?,
        at client: UpstreamClient
    ) -> Bool {
        runtime.gate.recordAcceptance(
            use, by: login, challenge: challenge, address: client.plan.address(of: target),
            isSafe: request.method.isRetrieval,
            form: form, now: runtime.wallClock())
    }

    /// Records that the server accepted the held sessions of the request: when, and where for those that send a credential.
    func recordAcceptances(at route: RouteSessions) {
        route.recordsFrom = runtime.loop.now + Self.acceptanceInterval
        guard let client, !request.keepsCredentials else { return }
        for slot in route.slots.indices {
            guard let held = route.held(slot, generation: sessions.carried(slot)) else { continue }
            held.acceptance.accepted(sentAt: sentAt.nanoseconds)
            let now = runtime.wallClock()
            guard held.acceptance.isAddressDue(now: now) else { continue }
            guard let use = held.session.use else {
                recordProof(of: held.session, by: route.slots[slot].login, at: client)
                let isNew = held.acceptance.remember(
                    client.plan.address(of: target).path, isSafe: request.method.isRetrieval)
                held.acceptance.recordedAddress(isNew: isNew, now: now)
                continue
            }
            runtime.services.observer.sessionAccepted(route.slots[slot].key)
            held.acceptance.recordedAddress(
                isNew: recordAcceptance(of: use, by: route.slots[slot].login, challenge: challenge, at: client),
                now: now)
        }
    }

    /// Remembers that the session of `slot` works at the path of a response.
    func remember(_ response: ExaminedResponse, of slot: Int, at route: RouteSessions) {
        _ = route.held(slot, generation: sessions.carried(slot))?.acceptance.remember(
            response.url.path, isSafe: request.method.isRetrieval)
    }

    /// The minimum interval between records of acceptances at one worker's route.
    private static let acceptanceInterval = LoopDelay(.milliseconds(10))

    /// Returns the key of recorded refusals of the session of `slot` at this route.
    private func resource(of slot: Int) -> ResourceKey? {
        guard let route = sessions.route, route.slots.indices.contains(slot) else { return nil }
        return ResourceKey(of: request, target, session: route.slots[slot].key)
    }

    /// Removes the recorded refusal of a session of `slot`, which had led to a login.
    func forgetRefusal(of slot: Int) {
        if let resource = resource(of: slot) { runtime.gate.change { $0.refusals.removeRefusals(at: resource) } }
        sessions.refusedSlot = nil
    }

    // MARK: Confirming

    // A challenge to a request that carried a session: the answer is held, with its transfer, until it is known if the
    // session is over. Then the answer passes to the caller, or the request is sent again. So the upstream executes the
    // request once.

    /// Checks if the session of `slot` still works, by a confirmation if necessary.
    func confirm(_ slot: Int) {
        guard let client, let route = sessions.route else { return }
        let answer = runtime.confirmations.requestConfirmation(
            of: route.slots[slot], generation: sessions.sent(slot) ?? 0, after: finding.refusal, ticket: ticket,
            at: client.plan, challenge: challenge, cause: loginCause)
        switch answer {
        case .keep: perform(keepSession(isConfirmed: false))
        case .over: perform(machine.sessionOver(canReplay: body.canReplay))
        case .overloaded: abort(.tooManyWaiters)
        case .confirm, .wait:
            // An exchange that waits no longer tries the session itself.
            _ = sessions.takeUnverified(of: slot)
            machine.confirmationIsAwaited()
            timer.arm(at: runtime.loop.now + client.plan.timeouts.login)
            waitingFor = route.slots[slot].key
            runtime.waiters.add(self, ticket)
        }
    }

    /// Continues after a confirmation, or after a login of the same session.
    private func confirmationEnded(_ outcome: SessionTable<ExchangeTicket>.Outcome) {
        guard let slot = machine.state.heldSlot else { return }
        switch outcome {
        case .askAgain: resumeAnswer { $0.confirm(slot) }
        case .failed(let failure) where !failure.isUnknown:
            resumeAnswer { $0.perform($0.machine.sessionRejected(ExchangeError(failure))) }
        // A renewal that failed says nothing about the session that it was to replace.
        case .failed where !sessions.isOutdated(slot, by: runtime.gate): resumeAnswer { $0.confirm(slot) }
        case .failed: resumeAnswer { $0.perform($0.keepSession(isConfirmed: false)) }
        case .kept(_, let confirmation?) where confirmation <= sessions.confirmationsBefore:
            // It may have asked before the session ended, and the refusal came after that.
            resumeAnswer { $0.confirm(slot) }
        case .kept(_, let confirmation):
            resumeAnswer { $0.perform($0.keepSession(isConfirmed: confirmation != nil)) }
        case .verify(let key, let session):
            // Another session is there already; the next exchange that needs it tries it.
            runtime.logins.recordVerification(of: key, generation: session.generation, .undecided, ticket: ticket)
            resumeAnswer { $0.perform($0.machine.sessionOver(canReplay: $0.body.canReplay)) }
        case .established: resumeAnswer { $0.perform($0.machine.sessionOver(canReplay: $0.body.canReplay)) }
        }
    }

    /// Stops waiting for the confirmation and delivers the held answer.
    func giveUpConfirmation() {
        if let waitingFor { runtime.waiters.remove(ticket, for: waitingFor) }
        waitingFor = nil
        resumeAnswer { $0.perform($0.keepSession(isConfirmed: false)) }
    }

    /// Delivers the held answer. Records a refusal for this route only if the session is confirmed.
    func keepSession(isConfirmed: Bool) -> ExchangeMachine.AnswerAction {
        if !isConfirmed { finding.refusal = nil }
        let isTrial = isConfirmed && body.canReplay && mayBeBound(machine.state.heldSlot, at: sessions.route)
        return machine.sessionKept(mayBeBound: isTrial)
    }

    /// Carries out the decision on the held answer, and resumes delivery of the rest.
    func resumeAnswer(_ carryOut: (Exchange) -> Void) {
        let transfer = transfer
        carryOut(self)
        guard let transfer, self.transfer === transfer, !machine.state.isHolding else { return }
        transfer.renotifyOwner()
        guard self.transfer === transfer, !machine.state.hasEnded else { return }
        if wantsBody { caller?.exchangeWantsBody() }
    }

    // MARK: Auth requests

    /// Answers another proxy with the fields of the held sessions; nothing is sent upstream.
    func authorize() {
        guard let client, let route = sessions.route, let caller else { return }
        // The snapshot is fresh: it was used for `missingSlot` a moment ago.
        let now = runtime.wallClock()
        if !client.plan.carriesSecrets, !route.fields.isEmpty { return abort(.plaintext(of: client.plan)) }
        if now >= route.renewAt { runtime.logins.renew(route, of: client, now: now) }
        if route.fields.injections != nil, let slot = route.slots.first(where: { $0.login.trigger.detector == nil }) {
            return abort(.onlyFields(slot.login.name))
        }
        do throws(LoginFailure) {
            let signing = signing(
                at: client, body: request.method.isSafe || request.method == .delete ? .none : .unread)
            let answer = try AuthRequestAnswer(
                of: route, for: signing, keepsCredentials: request.keepsCredentials, isPartial: isPartial,
                target: target, at: client.plan.base.origin, now: now)
            for slot in route.slots.indices {
                route.held(slot, generation: route.generations[slot])?.acceptance.isHandedOut()
            }
            caller.exchangeAuthorizes(answer)
            machine.answeredLocally()
            finish()
        } catch {
            abort(ExchangeError(error))
        }
    }
}

extension LoginFailure {
    /// True if no credential was sent: the latch is closed, or no credential is available.
    fileprivate var isWithoutAttempt: Bool {
        switch code {
        case .accountLocked, .attemptsKept, .latched, .noCredential: true
        default: isCancelled
        }
    }
}
