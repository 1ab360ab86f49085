// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Curl
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

// The news of the running transfer: the answer, room for the body, the end.
extension Exchange: TransferOwner {
    /// Passes interim responses on. 100 is the caller's only if nobody here asked for it: else it is told by
    /// `exchangeWantsBody` (RFC 9110 §15.2).
    package func transferHasInterims(_ transfer: Transfer) {
        guard let caller else { return }
        let isAsked = machine.expectsContinue
        transfer.takeInterims { head, bytes in
            if head.status == 100, isAsked {
                caller.exchangeWantsBody()
            } else {
                caller.exchangeDelivers(interim: head, in: bytes)
            }
        }
    }

    // MARK: The answer's head

    /// Has the head examined: it goes to the caller, or is a challenge to be answered.
    package func transferHasHead(_ transfer: Transfer) {
        guard let client, let route = sessions.route else { return }
        if !sessions.checks.isEmpty, !passesChecks(transfer, of: client) { return }
        if let attentive = sessions.attentive {
            sessions.heldCookies = attentive.learn(
                from: transfer, of: client.plan, target: target, now: runtime.wallClock())
        }
        if transfer.isUpgrade, transfer.answer.status == 101 { return perform(machine.switched()) }
        // Most responses are shown to nobody, which costs the hot path a few comparisons.
        guard !route.slots.isEmpty, !request.keepsCredentials, transfer.passes(route.filter) else {
            return perform(machine.headReceived(ExaminedAnswer(.pass, status: transfer.answer.status)))
        }
        examine(response(of: transfer, at: client), of: client, at: route)
    }

    /// Judges an answer by the beginning of its body, as far as it is here.
    func look(at transfer: Transfer) {
        guard let client, let route = sessions.route else { return }
        var response = response(of: transfer, at: client)
        response.body = ContentCoding.undone(
            transfer.body.withSpan { bytes in
                bytes.copy(ByteRange(start: 0, end: min(bytes.count, ExaminedResponse.bodyLimit)))
            }, response.fields[values: .contentEncoding], limit: ExaminedResponse.bodyLimit)
        examine(response, of: client, at: route)
    }

    /// The final head as detectors take it, with the target of the request.
    private func response(of transfer: Transfer, at client: UpstreamClient) -> ExaminedResponse {
        let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0) }
        return ExaminedResponse(
            status: head.status, fields: head.fields, method: HTTPRequest.Method(request.methodName) ?? .get,
            url: client.plan.address(of: target))
    }

    /// Has the route's logins say what the response asks for, and the machine what becomes of it.
    private func examine(_ response: ExaminedResponse, of client: UpstreamClient, at route: RouteSessions) {
        finding = client.examiner.examine(response, request: request, target: target, route: route, sessions: sessions)
        if let grown = finding.route { sessions.route = grown }
        let slot = finding.slot
        var answer = ExaminedAnswer(finding.challenge, slot: slot, status: response.status)
        answer.mayRepeat = finding.mayRepeat
        answer.isKnownRefusal = finding.isKnownRefusal
        answer.canReplay = body.canReplay
        switch finding.challenge {
        case .needsBody, .pass, .replay: break
        case .refused, .stale: challenge = response
        case .challenged:
            challenge = response
            answer.bindsConnection = route.slots[slot].login.bindsConnections
            answer.carriesConfirmable = sessions.carriesConfirmable(slot)
            answer.carriesSpendable = sessions.carriesSpendable
            // A credential that was doubted anew meanwhile is hidden until its confirmation is over.
            answer.isHidden = machine.wonSlot == slot && sessions.sent(slot) == nil && canComeAgain(slot)
        }
        perform(machine.headReceived(answer))
    }

    /// Returns whether the answer proves what it has to; if not, the exchange is over.
    private func passesChecks(_ transfer: Transfer, of client: UpstreamClient) -> Bool {
        let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0) }
        for check in sessions.checks {
            guard let fault = check.fault(status: head.status, fields: head.fields) else { continue }
            breakOff(.unproven(by: fault, of: client.plan))
            return false
        }
        return true
    }

    /// Carries out what becomes of an answer whose head is here.
    func perform(_ action: ExchangeMachine.AnswerAction) {
        if machine.hasNews { settleNews() }
        switch action {
        case .wait: return
        case .confirm(let slot): confirm(slot)
        case .deliver(let provesSessions):
            // Also where another exchange's login had established the session: what was noted of the old one is no refusal.
            if provesSessions, let slot = machine.wonSlot ?? sessions.refusedSlot { forgetRefusal(of: slot) }
            deliverHead()
        case .discard:
            // At once: what the caller still sends of the body must not push its beginning out while the login runs. Nothing more of it
            // is sent after a head with 300 or above.
            body.rewind()
            if let client { timer.arm(at: runtime.loop.now + client.responseDelay) }
        case .giveUp(let slot):
            logInForNext(slot)
            fail(.bodyNotReplayable)
        case .handOver: handOver()
        case .look: timer.arm(at: runtime.loop.now + Self.lookDelay)
        }
    }

    private func deliverHead() {
        guard let client, let transfer else { return }
        // The answer is final: nothing is sent again, however long it lasts.
        if request.hasBody { body.stopKeeping() }
        sessions.refusedSlot = nil
        if let refusal = finding.refusal { runtime.gate.noteRefusal(refusal) }
        timer.arm(at: runtime.loop.now + client.idleDelay)
        caller?.exchangeDelivers(headOf: transfer)
    }

    /// Hands the connection over, which has another protocol now.
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

    /// Passes the body on, or reads over that of a challenge.
    package func transferHasBody(_ transfer: Transfer) {
        if machine.state == .looking {
            guard transfer.body.count >= ExaminedResponse.bodyLimit || transfer.isAtEnd else { return }
            look(at: transfer)
            // What was kept for the look is taken here now, as if it had just come.
            guard self.transfer === transfer else { return }
        }
        if machine.state.isHolding { return }
        if machine.state.isDelivering {
            caller?.exchangeDelivers(bodyOf: transfer)
            if let client { timer.arm(at: runtime.loop.now + client.idleDelay) }
            return
        }
        let count = transfer.body.count
        transfer.body.removeAll()
        perform(machine.swallowed(count, limit: Transfer.window))
    }

    /// A challenge's end is all that is waited for; an answer that goes to the caller is at its end, too.
    package func transferHasAll(_ transfer: Transfer) {
        if machine.state == .looking { look(at: transfer) }
        guard self.transfer === transfer, !machine.state.isHolding else { return }
        if transfer.hasTrailers { deliverTrailers(of: transfer) }
        perform(machine.answerWhole(isRefusal: transfer.answer.status >= 300))
    }

    /// Trailers go where the answer went.
    private func deliverTrailers(of transfer: Transfer) {
        if machine.state.isDelivering { caller?.exchangeDelivers(trailersOf: transfer) }
    }

    // MARK: The request's body

    /// The request's body, from where the transfer stopped reading.
    package func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        // The answer is there and asks for another request; its end is still to come.
        guard !machine.state.isSettling, !machine.state.isHolding, let stream else { return .pause }
        if let isHonored = machine.bodyIsTaken(
            wasContinued: stream.transfer.upload.wasContinued, hasWaited: stream.hasWaited)
        {
            client?.expectations.note(isHonored: isHonored, at: runtime.loop.now)
        }
        return unsafe body.supply(into: buffer) { (name, value) throws(CurlError) in
            // One that a session's field takes the place of stays here, as it would among the fields of the head.
            let kind = FieldName(name, ByteRange(start: 0, end: name.count))
            if sessions.route?.fields.override(kind, named: name) == true { return }
            try stream.appendTrailer(name: name, value: value)
        }
    }

    /// Asks the caller for more of the body where there is room for it.
    package func transferTookBody(_ transfer: Transfer) {
        if let client, !machine.state.isDelivering, machine.state != .looking {
            // While the request is under way its answer is not late; and not at all while the caller is waited for, who has
            // a time limit of its own.
            if body.isDrained { timer.disarm() } else { timer.arm(at: runtime.loop.now + client.responseDelay) }
        }
        if !machine.state.hasEnded, wantsBody { caller?.exchangeWantsBody() }
    }

    /// RFC 9110 §9.2.2: only an idempotent request is sent again by itself, and only where all of its body is held.
    package func mayResend() -> Bool { request.method.isIdempotent && body.rewind() }

    // MARK: The end

    /// Finishes, sends again after a challenge, or tells the caller what went wrong.
    package func transferEnded(_ transfer: Transfer, error: CurlError?) {
        if machine.state == .looking { look(at: transfer) }
        guard let client, let stream, self.transfer === transfer, !machine.state.isHolding else { return }
        let end = end(of: transfer, stream, error, at: client)
        if end == .complete, transfer.hasTrailers { deliverTrailers(of: transfer) }
        perform(
            machine.transferEnded(end, canReplay: body.canReplay, isIdempotent: request.method.isIdempotent))
    }

    private func end(
        of transfer: Transfer, _ stream: any UpstreamStream, _ error: CurlError?, at client: UpstreamClient
    ) -> ExchangeMachine.TransferEnd {
        switch transfer.setback {
        case .expectation:
            client.expectations.note(isHonored: false, at: runtime.loop.now)
            return .expectationRefused
        case .unboundConnection: return .unbound
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

    /// Carries out what follows the end of an answer, or of a transfer.
    private func perform(_ action: ExchangeMachine.EndAction) {
        if machine.hasNews { settleNews() }
        switch action {
        case .wait: return
        case .complete: caller?.exchangeHasAll()
        case .fail(let error): fail(error)
        case .finish: finish()
        case .logIn(let slot): logIn(slot)
        case .send: send()
        case .truncate(let error): truncate(error)
        }
    }
}
