// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Curl
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

// Events of the running transfer: the answer, room for the body, the end.
extension Exchange: TransferOwner {
    /// Passes interim responses on.
    ///
    /// 100 is delivered as such only if it was not requested here; otherwise `exchangeWantsBody` is called instead (RFC
    /// 9110 §15.2).
    package func transferHasInterims(_ transfer: Transfer) {
        guard let caller else { return }
        let isAsked = machine.expectsContinue
        let values = isInjected ? sessions.examinedFields?.injections : nil
        transfer.takeInterims { head, bytes in
            if head.status == 100, isAsked { return caller.exchangeWantsBody() }
            // Interim responses are only hints and may be dropped.
            if let values, values.cleaner.finds(in: bytes) { return }
            caller.exchangeDelivers(interim: head, in: bytes)
        }
    }

    // MARK: The answer's head

    /// Examines the response head: it is delivered, or is a challenge to be answered.
    package func transferHasHead(_ transfer: Transfer) {
        guard let client, let route = sessions.route else { return }
        if isInjected, let values = sessions.examinedFields?.injections,
            !cleanHead(of: transfer, by: values, at: client)
        {
            return
        }
        if !sessions.checks.isEmpty, !passesChecks(transfer, of: client) { return }
        if let examinedFields = sessions.examinedFields {
            sessions.heldCookies = examinedFields.learn(
                from: transfer, of: client.plan, target: target, now: runtime.wallClock())
        }
        if transfer.isUpgrade, transfer.answer.status == 101 { return perform(machine.switched()) }
        // Most responses need no examination; these few comparisons on the hot path recognize them.
        guard !route.slots.isEmpty, !request.keepsCredentials,
            transfer.passes(route.filter) || !route.pageSlots.isEmpty && showsNoPage(transfer)
        else {
            return perform(machine.headReceived(ExaminedAnswer(.pass, status: transfer.answer.status)))
        }
        examine(response(of: transfer, at: client), of: client, at: route)
    }

    /// Examines an answer with the beginning of its body, as far as received.
    func examineBody(of transfer: Transfer) {
        guard let client, let route = sessions.route else { return }
        var response = response(of: transfer, at: client)
        response.body = ContentCoding.undone(
            transfer.body.withSpan { bytes in
                bytes.copy(ByteRange(start: 0, end: min(bytes.count, ExaminedResponse.bodyLimit)))
            }, response.fields[values: .contentEncoding], limit: ExaminedResponse.bodyLimit)
        examine(response, of: client, at: route)
    }

    /// Returns the final head in the form detectors take, with the request's URL.
    private func response(of transfer: Transfer, at client: UpstreamClient) -> ExaminedResponse {
        let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0) }
        return ExaminedResponse(
            status: head.status, fields: head.fields, method: HTTPRequest.Method(request.methodName) ?? .get,
            url: client.plan.address(of: target))
    }

    /// Examines the response for the route's logins and passes the result to the machine.
    private func examine(_ response: ExaminedResponse, of client: UpstreamClient, at route: RouteSessions) {
        if response.status == 401 || response.status == 403, response.body == nil,
            let text = ChallengeList(in: response.fields).unreadText
        {
            runtime.services.observer.challengeUnread(text, by: client.plan.name)
        }
        finding = client.examiner.examine(
            response, request: request, target: target, sentAt: sentAt, route: route, sessions: sessions)
        if let grown = finding.route {
            // A session that lacks scope for this path is one that works.
            if response.status == 403 { remember(response, of: finding.slot, at: route) }
            sessions.route = grown
        }
        let slot = finding.slot
        var answer = ExaminedAnswer(finding.challenge, slot: slot, status: response.status)
        answer.mayRepeat = finding.mayRepeat || sessions.isOutdated(slot, by: runtime.gate)
        answer.isKnownRefusal = finding.isKnownRefusal
        if finding.challenge == .pass { recordConcealment(of: response, in: &answer) }
        answer.canReplay = body.canReplay
        switch finding.challenge {
        case .needsBody, .pass, .replay: break
        case .refused, .stale: challenge = response
        case .challenged:
            challenge = response
            answer.bindsConnection = route.slots[slot].login.bindsConnections
            answer.mayBeBound = mayBeBound(slot, at: route)
            answer.carriesConfirmable = sessions.carriesConfirmable(slot) || finding.isConfirmable
            answer.carriesSpendable = sessions.carriesSpendable
            let held = route.held(slot, generation: sessions.carried(slot))
            // One that answers have accepted since may be used up by now, which says nothing about the value.
            answer.carriesCredential =
                held?.session.use != nil && !(sessions.carriesSpendable && held?.acceptance.isKnown == true)
            // A credential under confirmation since is hidden until that confirmation is over.
            answer.isHidden = machine.establishedSlot == slot && sessions.sent(slot) == nil && canReappear(slot)
        }
        perform(machine.headReceived(answer))
    }

    /// Returns true if the answer passes all checks; otherwise ends the exchange.
    private func passesChecks(_ transfer: Transfer, of client: UpstreamClient) -> Bool {
        let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0) }
        for check in sessions.checks {
            guard let fault = check.fault(status: head.status, fields: head.fields) else { continue }
            abort(.unverified(by: fault, of: client.plan))
            return false
        }
        return true
    }

    /// Carries out the machine's decision on an answer.
    func perform(_ action: ExchangeMachine.AnswerAction) {
        if machine.hasOutcomes { reportOutcomes() }
        switch action {
        case .wait: return
        case .confirm(let slot):
            endFirstRequest(.asked)
            sessions.confirmationsBefore = runtime.gate.read { $0.sessions.confirmations }
            confirm(slot)
        case .deliver(let verifiesSessions):
            endFirstRequest(verifiesSessions ? .open : .unknown)
            if let slot = machine.userAgent.slot { recordUserAgent(of: slot, isAccepted: verifiesSessions) }
            // Also if another exchange's login established the session: the record of the old session is not a refusal
            // of the new one.
            if verifiesSessions || finding.concealsPage, let slot = machine.establishedSlot ?? sessions.refusedSlot {
                forgetRefusal(of: slot)
            }
            if verifiesSessions, let route = sessions.route, runtime.loop.now >= route.recordsFrom {
                recordAcceptances(at: route)
            }
            deliverHead()
        case .discard:
            if machine.challengedSlot != nil { endFirstRequest(.asked) }
            // Rewound at once: bytes that the caller still sends must not displace the beginning of the body while the
            // login runs. Nothing more of the body is sent after a head with 300 or above.
            body.rewind()
            if case .renewed(let slot) = machine.userAgent { suspectUserAgent(of: slot) }
            if let client { timer.arm(at: runtime.loop.now + client.responseDelay) }
        case .giveUp(let slot):
            endFirstRequest(.asked)
            logInForNext(slot)
            fail(.bodyNotReplayable)
        case .handOver:
            endFirstRequest(.open)
            handOver()
        case .examineBody: timer.arm(at: runtime.loop.now + Self.examinationDelay)
        case .look(let slot): look(slot)
        }
    }

    private func deliverHead() {
        guard let client, let transfer else { return }
        // The answer is final: nothing is sent again, however long it lasts.
        if request.hasBody { body.stopKeeping() }
        sessions.refusedSlot = nil
        if let refusal = finding.refusal { runtime.gate.recordRefusal(refusal) }
        timer.arm(at: runtime.loop.now + client.idleDelay)
        caller?.exchangeDelivers(headOf: transfer)
    }

    /// Passes the connection to the caller after a 101.
    private func handOver() {
        guard let client, let transfer, let connection = stream?.takeConnection(), let caller else { return }
        do throws(WireError) {
            try caller.exchangeSwitches(headOf: transfer, to: connection)
            end()
        } catch {
            connection.close()
            fail(ExchangeError(error, upstream: client.plan))
        }
    }

    // MARK: The answer's body

    /// Delivers the body, or discards that of a challenge.
    package func transferHasBody(_ transfer: Transfer) {
        if machine.state == .examining {
            guard transfer.body.count >= ExaminedResponse.bodyLimit || transfer.isAtEnd else { return }
            examineBody(of: transfer)
            // The bytes kept for the examination are handled here as if they had just arrived.
            guard self.transfer === transfer else { return }
        }
        if machine.state.isHolding { return }
        if machine.state.isDelivering {
            if isInjected, injected.cleansPage {
                injected.cleanBody(of: transfer, isEnd: transfer.isAtEnd)
                if !transfer.body.isEmpty { caller?.exchangeDelivers(bodyOf: transfer) }
                injected.recordDelivery(of: transfer)
            } else {
                caller?.exchangeDelivers(bodyOf: transfer)
            }
            if let client { timer.arm(at: runtime.loop.now + client.idleDelay) }
            return
        }
        let count = transfer.body.count
        transfer.body.removeAll()
        perform(machine.swallowed(count, limit: Transfer.window))
    }

    /// Continues after the end of an answer whose request may still be going up.
    package func transferHasAll(_ transfer: Transfer) {
        if machine.state == .examining { examineBody(of: transfer) }
        guard self.transfer === transfer, !machine.state.isHolding else { return }
        guard !isInjected || deliverRest(of: transfer) else { return transfer.postponeEnd() }
        if transfer.hasTrailers { deliverTrailers(of: transfer) }
        perform(machine.answerWhole(isRefusal: transfer.answer.status >= 300))
    }

    /// Delivers the trailers if the answer was delivered.
    private func deliverTrailers(of transfer: Transfer) {
        if machine.state.isDelivering, !(isInjected && trailersHoldValues(transfer)) {
            caller?.exchangeDelivers(trailersOf: transfer)
        }
    }

    // MARK: The request's body

    /// Supplies the request's body from the position where the transfer stopped.
    package func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        // The answer asks for another request, and its end is still to come.
        guard !machine.state.isSettling, !machine.state.isHolding, let stream else { return .pause }
        if let isHonored = machine.bodyIsTaken(
            wasContinued: stream.transfer.upload.wasContinued, hasWaited: stream.hasWaited)
        {
            client?.expectations.record(isHonored: isHonored, at: runtime.loop.now)
        }
        return unsafe body.supply(into: buffer) { (name, value) throws(CurlError) in
            // A trailer that a session's field overrides is dropped, as in the head that has been sent.
            let kind = FieldName(name, ByteRange(start: 0, end: name.count))
            if sessions.sentFields.override(kind, named: name) { return }
            try stream.appendTrailer(name: name, value: value)
        }
    }

    /// Asks the caller for more of the body if there is room.
    package func transferTookBody(_ transfer: Transfer) {
        if let client, !machine.state.isDelivering, machine.state != .examining {
            // The answer is not late while the request is being sent, nor while the caller is awaited, which has its
            // own time limit.
            if body.isDrained { timer.disarm() } else { timer.arm(at: runtime.loop.now + client.responseDelay) }
        }
        if !machine.state.hasEnded, wantsBody { caller?.exchangeWantsBody() }
    }

    /// Returns true if the stream itself may resend the request: the method is idempotent and the body held (RFC 9110
    /// §9.2.2), and the request is not an attempt to log in that the server may have counted.
    package func mayResend() -> Bool { request.method.isIdempotent && !machine.triesCredential && body.rewind() }

    /// Returns true if a session of the request has ended since its fields were written.
    package func carriesEndedSession() -> Bool { sessions.hasEnded(by: runtime.gate, now: runtime.wallClock()) }

    // MARK: The end

    /// Finishes, sends again after a challenge, or reports the failure.
    package func transferEnded(_ transfer: Transfer, error: CurlError?) {
        if machine.state == .examining { examineBody(of: transfer) }
        guard let client, let stream, self.transfer === transfer, !machine.state.isHolding else { return }
        guard !isInjected || deliverRest(of: transfer) else { return }
        let end = end(of: transfer, stream, error, at: client)
        machine.recordSending(stream.hasSent)
        if end == .complete, transfer.hasTrailers { deliverTrailers(of: transfer) }
        perform(
            machine.transferEnded(end, canReplay: body.canReplay, isIdempotent: request.method.isIdempotent))
    }

    private func end(
        of transfer: Transfer, _ stream: any UpstreamStream, _ error: CurlError?, at client: UpstreamClient
    ) -> ExchangeMachine.TransferEnd {
        switch transfer.setback {
        case .expectation:
            client.expectations.record(isHonored: false, at: runtime.loop.now)
            return .expectationRefused
        case .connectionUnchallenged: return .unbound
        case .sessionEnded: return .withdrawn(.outrun)
        case .idleTimeout:
            return .broken(ExchangeError(stream.failure(.gotNothing), upstream: client.plan), resend: .always)
        case nil: break
        }
        if error != nil, body.isBroken { return .lost(.bodyLost) }
        if let fault = transfer.fault { return .lost(ExchangeError(fault, upstream: client.plan)) }
        guard let error else { return .complete }
        let failure = stream.failure(error)
        return .broken(ExchangeError(failure, upstream: client.plan), resend: FailureMeaning(failure).resend)
    }

    /// Carries out the machine's decision after the end of an answer or a transfer.
    private func perform(_ action: ExchangeMachine.EndAction) {
        if machine.hasOutcomes { reportOutcomes() }
        switch action {
        case .wait: return
        case .complete: caller?.exchangeHasAll()
        case .fail(let error): fail(error)
        case .finish: finish()
        case .logIn(let slot): logIn(slot)
        case .send: sendAgain()
        case .truncate(let error): truncate(error)
        }
    }

    /// Sends the request again. A session that it carried, that it needs, and that has ended since, comes first.
    private func sendAgain() {
        // Rewound at once, as after a challenge: a login may come first, and the caller's body continues.
        body.rewind()
        guard let route = sessions.route, let slot = missingSlot, sessions.sent(slot) != nil else { return send() }
        perform(machine.sessionIsOver(slot, login: route.slots[slot].key.challenge))
    }
}
