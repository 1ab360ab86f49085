// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

// How an exchange comes by the sessions that it needs.
extension Exchange {
    func win(_ slot: Int) -> ExchangeMachine.Action? {
        guard let client, let route else { return nil }
        releaseTransfer()
        if let reason = route.slots[slot].login.refusal {
            return machine.sessionFailed(ExchangeError(.callerNotAllowed, detail: reason))
        }
        let rejected = slot < used.count && used[slot] != 0 ? used[slot] : nil
        let decision = runtime.requestSession(
            route, slot: slot, rejected: rejected, ticket: ticket, of: client, challenge: challenge,
            cause: loginCause)
        switch decision {
        case .use:
            return sessionIsThere(wonNow: false)
        case .prove(let session):
            if request.isSubrequest { return decline(session, of: slot) }
            trial = (slot, session)
            return sessionIsThere(wonNow: true)
        case .lead where request.isCheck, .wait where request.isCheck:
            // Taken back at once: the places of those who wait are the callers'.
            runtime.directory.leave(route.slots[slot].key, waiter: ticket)
            return machine.sessionFailed(.loginUnderWay)
        case .lead, .wait:
            // Anew: whatever was waited for before, as the beginning of a login page is, had a limit of its own.
            timer.arm(at: runtime.loop.now + client.plan.timeouts.login)
            waitingFor = route.slots[slot].key
            awaitedLogin = route.slots[slot].key.challenge
            runtime.wait(self, ticket: ticket)
            return nil
        case .refuse(let failure):
            return machine.sessionFailed(ExchangeError(failure))
        case .overloaded:
            return machine.sessionFailed(
                ExchangeError(
                    .overloaded,
                    detail: "Too many requests wait for a login. Try again shortly; `limits.waiters` sets their number."
                ))
        }
    }

    /// The login that this exchange waited for is over.
    func loginEnded(_ outcome: SessionTable<ExchangeTicket>.Outcome) {
        waitingFor = nil
        switch outcome {
        case .won:
            perform(sessionIsThere(wonNow: true))
        case .prove(_, let session):
            guard let slot = machine.waitingSlot else { return }
            if request.isSubrequest { return perform(decline(session, of: slot)) }
            trial = (slot, session)
            perform(sessionIsThere(wonNow: true))
        case .failed(let failure):
            perform(machine.sessionFailed(ExchangeError(failure)))
        case .askAgain:
            guard let slot = machine.waitingSlot else { return }
            perform(.win(slot: slot))
        }
    }

    private func sessionIsThere(wonNow: Bool) -> ExchangeMachine.Action {
        guard let client, let route, let slot = machine.waitingSlot else { return .doNothing }
        let missing = client.missing(in: route, for: request, aheadOfBody: winsAhead, besides: trial?.slot)
        return machine.sessionReady(missing: missing, wonNow: wonNow, login: route.slots[slot].key.challenge)
    }
}
