// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

// What an answer means: whether it goes to the caller, is a challenge to be answered, or proves or refuses a session.
extension Exchange {
    /// How long a page that trickles in is waited for before it is judged by what is there.
    static let lookDelay = LoopDelay(.seconds(2))
    /// So many sessions that others use up are won for one exchange.
    private static let mostSpent = 4

    /// Has the head examined: it goes to the caller, or is a challenge to be answered.
    package func transferHasHead(_ transfer: Transfer) {
        guard let client, let route else { return }
        guard passesChecks(transfer, of: client) else { return }
        if let attentive { heldCookies = client.learn(attentive, from: transfer, target: target) }
        if transfer.isUpgrade, transfer.answer.status == 101 {
            if trial != nil { judge(.accepted) }
            perform(machine.switched())
            return
        }
        var verdict = ExchangeMachine.Verdict.pass
        if !route.slots.isEmpty, !request.keepsCredentials, let response = examined(transfer, at: route) {
            verdict = self.verdict(on: response, of: client, at: route)
        }
        settle(verdict, status: transfer.answer.status)
    }

    /// Judges an answer by the beginning of its body, as far as it is here.
    func look(at transfer: Transfer) {
        guard let client, let route, var response = examined(transfer, at: route) else { return }
        response.body = ContentCoding.undone(
            transfer.body.withSpan { bytes in
                bytes.copy(ByteRange(start: 0, end: min(bytes.count, ExaminedResponse.bodyLimit)))
            }, response.fields[values: .contentEncoding], limit: ExaminedResponse.bodyLimit)
        settle(verdict(on: response, of: client, at: route), status: response.status)
    }

    /// What became of the session that was tried, and then the answer itself.
    private func settle(_ verdict: ExchangeMachine.Verdict, status: Int) {
        // What is not the challenge again proves the session, unless the server judged nothing at all.
        if trial != nil, verdict != .look { judge(status == 429 || status >= 500 ? .undecided : .accepted) }
        let action = machine.headReceived(verdict, canReplay: body.canReplay)
        if case .challenge(let slot, _) = verdict { noteChallenge(at: slot, then: action) }
        if machine.isUnreplayable { giveUpReplay(verdict) }
        perform(action)
    }

    /// The session that this exchange tried is what `proof` says.
    func judge(_ proof: SessionTable<ExchangeTicket>.Proof) {
        guard let trial, let route else { return }
        self.trial = nil
        runtime.judge(route.slots[trial.slot].key, generation: trial.session.generation, proof, ticket: ticket)
    }

    /// The final head as detectors take it, with the target of the request; `nil` for the statuses that none of the route's
    /// challenges has, which costs the hot path three comparisons.
    private func examined(_ transfer: Transfer, at route: RouteSessions) -> ExaminedResponse? {
        let status = transfer.answer.status
        guard status == 401 || status == 403 || status == 409 || route.looksAtPages, let client else { return nil }
        let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0) }
        return ExaminedResponse(
            status: status, fields: head.fields, method: HTTPRequest.Method(request.methodName) ?? .get,
            url: client.address(of: target))
    }

    private func verdict(
        on response: ExaminedResponse, of client: UpstreamClient, at route: RouteSessions
    ) -> ExchangeMachine.Verdict {
        let finding = client.examine(
            response, request: request, target: target, route: route, used: used, empty: emptiness.used)
        refusal = finding.refusal
        if let grown = finding.route { self.route = grown }
        switch finding.meaning {
        case .conflict: return .conflict
        case .look: return .look
        case .pass: return .pass
        case .refused(let slot): return refused(slot, response, of: client, at: route)
        case .stale(let slot):
            if trial?.slot == slot { judge(.outdated) }
            challenge = response
            return .challenge(slot: slot, canGrow: true)
        case .challenge(let slot, let canGrow):
            if trial?.slot == slot { return refused(slot, response, of: client, at: route) }
            challenge = response
            if !canGrow, mayBeResource(slot, at: route) { return .suspect(slot: slot) }
            // What was won a moment ago may be used up by now: that is no word about this one resource.
            let isSpent = attentive?.wearsOut == true && machine.roundCount < Self.mostSpent
            return .challenge(slot: slot, canGrow: canGrow || isSpent)
        }
    }

    /// The session of `slot` was refused, and another login would bring the same.
    private func refused(
        _ slot: Int, _ response: ExaminedResponse, of client: UpstreamClient, at route: RouteSessions
    ) -> ExchangeMachine.Verdict {
        if trial?.slot == slot { trial = nil }
        let use = RefusedUse(
            route: RouteKey(method: request.method, target: target), slot: slot, generation: used[slot])
        switch runtime.refuse(
            route.slots[slot].key, generation: used[slot], route: use.route.fingerprint, ticket: ticket,
            cause: loginCause)
        {
        case .failed(let failure):
            challengedSlot = slot
            return .failed(ExchangeError(failure))
        case .old:
            challenge = response
            return .challenge(slot: slot, canGrow: false)
        case .doubted:
            // Whether the session goes along next time or not, it is the answer for a while (CONTRIBUTING, rule 4).
            client.remember(use, now: runtime.loop.now)
            client.remember(use.withoutSession, now: runtime.loop.now)
            challengedSlot = slot
            noteChallenge(.passed)
            return .pass
        }
    }

    /// Hands the connection over, which has another protocol now.
    func handOver() {
        guard let client, let transfer, let connection = transfer.line?.takeConnection(), let caller else {
            return
        }
        do throws(WireError) {
            try caller.exchangeSwitches(headOf: transfer, to: connection)
            end()
        } catch {
            connection.close()
            end()
            caller.exchangeFailed(ExchangeError(error, upstream: client.plan))
        }
    }
}
