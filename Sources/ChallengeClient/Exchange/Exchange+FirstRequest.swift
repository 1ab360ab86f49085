// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

// Requests without a session, of which one goes ahead: a cold burst is one anonymous request (CONTRIBUTING, rule 1).
extension Exchange {
    /// Returns true if the request waits for the response head of another one, which may ask for a login.
    func waitsForFirstRequest() -> Bool {
        guard let route = sessions.route, let slot = route.coldSlots.first, request.method.isSafe, !request.hasBody,
            !request.isCheck, !request.isAuthRequest, !request.keepsCredentials
        else { return false }
        let (key, ticket, now) = (route.slots[slot].key, ticket, runtime.wallClock())
        switch runtime.gate.change({ $0.sessions.beginFirstRequest(key, waiter: ticket, now: now) }) {
        case .lead:
            sessions.leads = key
            return false
        case .go(let isLasting):
            if isLasting { route.recordOpen(slot) }
            return false
        case .wait(let time):
            _ = machine.start(missing: slot)
            sessions.isBehind = true
            timer.arm(at: runtime.loop.now + .milliseconds(time))
            waitingFor = key
            runtime.waiters.add(self, ticket)
            return true
        }
    }

    /// Returns true if the login of the request that went ahead has brought a session, with which this one goes on.
    func takesSession(of outcome: SessionTable<ExchangeTicket>.Outcome, in slot: Int) -> Bool {
        switch outcome {
        case .askAgain: return false
        case .failed(let failure):
            sessions.sharedFailure = failure
            return false
        case .established, .kept, .verify:
            sessions.isBehind = false
            awaitedLogin = sessions.route?.slots[slot].key.challenge
            return true
        }
    }

    /// Sends the request without a session, after the other one has shown nothing, or not in time.
    func goWithoutSession() {
        sessions.isBehind = false
        if let waitingFor { runtime.waiters.remove(ticket, for: waitingFor) }
        waitingFor = nil
        perform(machine.sessionReady(.init(isNew: false), missing: missingSlot))
    }

    /// Tells the requests that wait for this one what it has shown.
    func endFirstRequest(_ outcome: FirstRequestOutcome) {
        guard let key = sessions.leads else { return }
        sessions.leads = nil
        let ticket = ticket
        runtime.services.notify(
            runtime.gate.change { $0.sessions.endFirstRequest(key, outcome, waiter: ticket) })
    }
}
