// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

// The judgement of an answer: it goes to the caller, is a challenge to be answered, or proves or refuses a session.
extension Exchange {
    /// How long a page that trickles in is waited for before it is judged by what is there.
    static let lookDelay = LoopDelay(.seconds(2))
    /// So many sessions that others use up are won for one exchange.
    private static let mostSpent = 4

    /// Has the head examined: it goes to the caller, or is a challenge to be answered.
    package func transferHasHead(_ transfer: Transfer) {
        guard let client, let route else { return }
        guard passesChecks(transfer, of: client) else { return }
        if let attentive {
            heldCookies = attentive.learn(from: transfer, of: client.plan, target: target, now: runtime.wallClock())
        }
        if transfer.isUpgrade, transfer.answer.status == 101 {
            if trial != nil { judge(.accepted) }
            perform(machine.switched())
            return
        }
        if !route.slots.isEmpty, !request.keepsCredentials, let response = examined(transfer, at: route) {
            examine(response, of: client, at: route)
        }
        settle(status: transfer.answer.status)
    }

    /// Judges an answer by the beginning of its body, as far as it is here.
    func look(at transfer: Transfer) {
        guard let client, let route, var response = examined(transfer, at: route) else { return }
        response.body = ContentCoding.undone(
            transfer.body.withSpan { bytes in
                bytes.copy(ByteRange(start: 0, end: min(bytes.count, ExaminedResponse.bodyLimit)))
            }, response.fields[values: .contentEncoding], limit: ExaminedResponse.bodyLimit)
        examine(response, of: client, at: route)
        settle(status: response.status)
    }

    /// What became of the session that was tried, and then the answer itself.
    private func settle(status: Int) {
        let (asked, slot) = (finding.challenge, finding.slot)
        let isUndecided = finding.isKnownRefusal || status == 429 || status >= 500
        // What is not the challenge again proves the session, unless the server judged nothing at all.
        if let trial, asked != .needsBody, asked != .refused || slot != trial.slot {
            judge(isUndecided ? .undecided : .accepted)
        }
        // Also where another exchange's login had won the session meanwhile: what was noted of the old one is no refusal.
        if asked == .pass, !isUndecided, let client, let slot = machine.wonSlot ?? notedSlot {
            if let place = place(of: slot, at: client) { runtime.gate.change { $0.refusals.forget(place) } }
            notedSlot = nil
        }
        let action = machine.headReceived(
            asked, slot: slot, mayRepeat: finding.mayRepeat, canReplay: body.canReplay)
        switch asked {
        case .challenged, .stale: challengeMet(at: slot, then: action)
        case .needsBody, .pass, .refused, .replay: break
        }
        perform(action)
    }

    /// A challenge of the login in `slot` was met, and `action` is what the machine makes of it.
    func challengeMet(at slot: Int, then action: ExchangeMachine.Action) {
        challengedSlot = slot
        switch action {
        // What comes of it is known when the request is sent again, or not.
        case .discard: break
        case .deliver: noteChallenge(.passed)
        case .fail(let error) where error.kind == .bodyNotReplayable:
            noteChallenge(.notReplayable)
            giveUpReplay(at: slot)
        default: noteChallenge(.failed)
        }
    }

    /// This route, as refusals of the session of `slot` are remembered for it.
    func place(of slot: Int, at client: UpstreamClient) -> ResourceKey? {
        guard let route, route.slots.indices.contains(slot) else { return nil }
        return ResourceKey(of: request, target, session: route.slots[slot].key)
    }

    /// The session that this exchange tried is what `proof` says.
    func judge(_ proof: SessionTable<ExchangeTicket>.Proof) {
        guard let trial, let route else { return }
        self.trial = nil
        if proof == .accepted { markAccepted(trial.session, at: route.slots[trial.slot]) }
        runtime.judge(route.slots[trial.slot].key, generation: trial.session.generation, proof, ticket: ticket)
    }

    /// The final head as detectors take it, with the target of the request; `nil` for a response that none of the route's is shown, which
    /// costs the hot path a few comparisons.
    private func examined(_ transfer: Transfer, at route: RouteSessions) -> ExaminedResponse? {
        guard let client, transfer.passes(route.filter) else { return nil }
        let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0) }
        return ExaminedResponse(
            status: head.status, fields: head.fields, method: HTTPRequest.Method(request.methodName) ?? .get,
            url: client.plan.address(of: target))
    }

    /// Finds what the response asks for, in the light of what is known of the session that the request carried.
    private func examine(_ response: ExaminedResponse, of client: UpstreamClient, at route: RouteSessions) {
        finding = client.examiner.examine(
            response, request: request, target: target, route: route, used: used, empty: emptiness.used)
        if let grown = finding.route { self.route = grown }
        let slot = finding.slot
        switch finding.challenge {
        case .needsBody, .pass, .replay: return
        case .refused: break
        case .stale:
            if trial?.slot == slot { judge(.outdated) }
        case .challenged:
            // It asks for nothing ahead of the body, and for all of it then: another round would meet the same.
            if request.goesUnbound, route.slots[slot].login.bindsConnections {
                finding.challenge = .pass
                return
            }
            // The session is over, or this resource is not for it.
            if trial?.slot == slot || !finding.mayRepeat && mayBeResource(slot, at: route) {
                finding.challenge = .refused
                break
            }
            // What was won a moment ago may be used up by now: that is no word about this one resource.
            let isSpent = attentive?.wearsOut == true && machine.roundCount < Self.mostSpent
            finding.mayRepeat = finding.mayRepeat || isSpent || wentWithout(slot)
        }
        challenge = response
    }

    /// Returns whether the request was sent without the session of `slot` that this exchange was told of a moment ago: a credential that
    /// was doubted anew meanwhile is hidden until its confirmation is over.
    private func wentWithout(_ slot: Int) -> Bool {
        machine.wonSlot == slot && slot < used.count && used[slot] == 0 && canComeAgain(slot)
    }

    /// Keeps the mark that the credential of the session that this exchange tried was accepted. The answer to a request that was
    /// challenged without it shows that best: an open address takes anything.
    private func markAccepted(_ trial: HeldSession, at slot: RouteSessions.Slot) {
        guard let use = trial.session.use, let client else { return }
        var wasAsked = false
        if let challenge, case .challenged? = slot.login.trigger.detector?.examine(challenge, hasSession: false) {
            wasAsked = true
        }
        let gate = runtime.gate
        let known = gate.acceptance(of: use)
        if let known, known.wasAsked, !wasAsked { return }
        // A path that a GET was accepted at is the better one to ask again.
        let isWanted = request.method == .get || request.method == .head || known?.path == nil
        let path = isWanted ? client.plan.address(of: target).path : nil
        gate.note(.accepted(Acceptance(path: path, at: runtime.wallClock(), wasAsked: wasAsked)), of: use)
    }

    /// Hands the connection over, which has another protocol now.
    func handOver() {
        guard let client, let transfer, let connection = stream?.takeConnection(), let caller else {
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
