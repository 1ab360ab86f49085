// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

/// What an exchange remembers of sessions that bring nothing.
struct Emptiness {
    /// The slots whose session was empty when the request was last sent.
    var used = SlotSet()
    /// The slots that the request goes without: nothing is asked for there, or no login can be had now.
    var without = SlotSet()
    /// True if the exchange has met an empty session after a challenge, and asked for another once.
    var isPassed = false
}

// How an exchange comes by the sessions that it needs.
extension Exchange {
    func win(_ slot: Int) -> ExchangeMachine.Action? {
        guard let client, let route else { return nil }
        releaseTransfer()
        if let reason = route.slots[slot].login.refusal {
            return machine.sessionFailed(ExchangeError(.callerNotAllowed, detail: reason))
        }
        let isChallenged = challengedSlot == slot
        var decision = requestSession(slot, rejected: rejectedGeneration(of: slot), isChallenged, of: client, at: route)
        if isChallenged, case .use(let held) = decision, held.session.isEmpty {
            // Won ahead of some other request, where nothing was asked for.
            decision = requestSession(slot, rejected: held.generation, isChallenged, of: client, at: route)
        }
        switch decision {
        case .use(let held):
            return sessionIsThere(held, wonNow: false)
        case .prove(let session):
            if request.isSubrequest { return decline(session, of: slot) }
            trial = (slot, session)
            return sessionIsThere(session, wonNow: true)
        case .go where request.isCheck, .wait where request.isCheck:
            // Taken back at once: the places of those who wait are the callers'.
            runtime.gate.change { $0.sessions.leave(route.slots[slot].key, waiter: ticket) }
            return machine.sessionFailed(.loginUnderWay)
        case .go, .wait:
            // Anew: whatever was waited for before, as the beginning of a login page is, had a limit of its own.
            timer.arm(at: runtime.loop.now + client.plan.timeouts.login)
            waitingFor = route.slots[slot].key
            awaitedLogin = route.slots[slot].key.challenge
            runtime.wait(self, ticket: ticket)
            return nil
        case .no(let failure):
            if isOptional(slot) { return goWithout(slot) }
            return machine.sessionFailed(ExchangeError(failure))
        case .overloaded:
            return machine.sessionFailed(.tooManyWaiters)
        }
    }

    /// The use of a session of `slot` that was refused here, because of which a login may begin. One that wears out may have been used up
    /// by others.
    private func refusedUse(of slot: Int, at client: UpstreamClient) -> RefusedUse? {
        guard !request.isCheck, slot < used.count, used[slot] != 0, !emptiness.used.contains(slot),
            attentive?.wearsOut != true, let place = place(of: slot, at: client)
        else { return nil }
        return RefusedUse(place: place, generation: used[slot])
    }

    /// The login that this exchange waited for is over.
    func loginEnded(_ outcome: SessionTable<ExchangeTicket>.Outcome) {
        waitingFor = nil
        if machine.isHolding { return confirmationEnded(outcome) }
        guard let slot = machine.waitingSlot else { return }
        switch outcome {
        case .kept(let held, _), .won(let held):
            if challengedSlot == slot, held.session.isEmpty, !emptiness.isPassed {
                // Won ahead of some other request, where nothing was asked for.
                emptiness.isPassed = true
                while used.count <= slot { used.append(0) }
                used[slot] = held.generation
                return perform(.win(slot: slot))
            }
            perform(sessionIsThere(held, wonNow: true))
        case .prove(_, let session):
            if request.isSubrequest { return perform(decline(session, of: slot)) }
            trial = (slot, session)
            perform(sessionIsThere(session, wonNow: true))
        case .failed(let failure):
            if isOptional(slot), failure.saysNothingWasTried { return perform(goWithout(slot)) }
            perform(machine.sessionFailed(ExchangeError(failure)))
        case .askAgain:
            perform(.win(slot: slot))
        }
    }

    /// The first slot whose session has to be won before anything is sent.
    var missingSlot: Int? {
        guard let route, !route.slots.isEmpty else { return nil }
        return route.missing(
            for: request, at: target, loginOrder, by: runtime.gate, now: runtime.wallClock(), besides: trial?.slot,
            without: emptiness.without)
    }

    private var loginOrder: LoginOrder {
        if request.isSubrequest { return .beforeAnswer }
        if isTooLong { return .beforeLongBody }
        if request.framing == .chunked { return .beforeUnmeasuredBody }
        return request.hasBody || !request.method.isSafe ? .beforeRequest : .afterChallenge
    }

    private func requestSession(
        _ slot: Int, rejected: UInt64?, _ isChallenged: Bool, of client: UpstreamClient, at route: RouteSessions
    ) -> SessionTable<ExchangeTicket>.Answer {
        let refusedUse = refusedUse(of: slot, at: client)
        let answer = runtime.requestSession(
            route, slot: slot, rejected: rejected, after: refusedUse, ticket: ticket, of: client,
            challenge: isChallenged ? challenge : nil,
            target: isChallenged ? nil : address(at: client), cause: loginCause)
        // Only who leads: whoever finds another session there, or waits, may well be accepted with it.
        if answer == .go, refusedUse != nil { notedSlot = slot }
        return answer
    }

    /// The generation of `slot` that is no good: refused, or empty from a look at another path.
    private func rejectedGeneration(of slot: Int) -> UInt64? {
        if slot < used.count, used[slot] != 0 { return used[slot] }
        guard let route, route.lookedElsewhere(slot, than: target) else { return nil }
        return route.generations[slot]
    }

    /// The request's own address for a login that looks there; `nil` for a target that is no path (`*` of OPTIONS).
    private func address(at client: UpstreamClient) -> WebURL? {
        let url = client.plan.address(of: target)
        return url.path.hasPrefix("/") ? url : nil
    }

    /// Returns whether the request can go without the session of `slot`: nothing has asked for it yet, and the request is safe (RFC
    /// 9110 §9.2.1). Another could be carried out as nobody's.
    private func isOptional(_ slot: Int) -> Bool {
        guard let route else { return false }
        return challengedSlot != slot && request.method.isSafe && !request.isSubrequest
            && !route.slots[slot].login.isAhead
    }

    /// The request goes without the session of `slot`; what it meets is answered then.
    private func goWithout(_ slot: Int) -> ExchangeMachine.Action {
        emptiness.without.insert(slot)
        return machine.sessionReady(missing: missingSlot, wonNow: false)
    }

    private func sessionIsThere(_ held: HeldSession, wonNow: Bool) -> ExchangeMachine.Action {
        guard let route, let slot = machine.waitingSlot else { return .doNothing }
        // Nothing was won by it, so that a challenge that comes now is the first.
        if held.session.isEmpty, challengedSlot != slot, !request.isSubrequest { return goWithout(slot) }
        let missing = missingSlot
        return machine.sessionReady(
            missing: missing, wonNow: wonNow, isHidden: missing == slot && canComeAgain(slot),
            login: route.slots[slot].key.challenge)
    }

    /// Returns whether it makes sense to ask for the session of `slot` once more: it is there or on its way, or has failed by now.
    func canComeAgain(_ slot: Int) -> Bool {
        guard let route else { return false }
        return runtime.gate.standing(of: route.slots[slot].key, now: runtime.wallClock()) != .cold
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
