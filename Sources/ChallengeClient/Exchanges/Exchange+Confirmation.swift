// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

// A challenge on a request that carried a session: the answer is held, with its transfer, until it is known if the session is over.
// Then it goes to the caller as it came, or the request is sent again. So the upstream executes the request once.
extension Exchange {
    /// Returns whether a challenge of `slot` may be about the resource rather than the session that the request carried.
    func mayBeResource(_ slot: Int, at route: RouteSessions) -> Bool {
        slot < used.count && used[slot] != 0 && !emptiness.used.contains(slot) && machine.wonSlot != slot
            && route.slots[slot].login.confirmsSessions
    }

    /// Asks if the session of `slot` still works.
    func confirm(_ slot: Int) -> ExchangeMachine.Action? {
        guard let client, let route else { return nil }
        let doubt = runtime.doubtSession(
            route.slots[slot], generation: used[slot], ticket: ticket, at: client.plan, challenge: challenge,
            cause: loginCause)
        if trial?.slot == slot {
            // Whoever waits is no longer the one who tries it.
            switch doubt {
            case .confirm, .wait: trial = nil
            case .keep, .over, .overloaded: judge(.undecided)
            }
        }
        switch doubt {
        case .keep: return keepSession(isConfirmed: false)
        case .over: return sessionIsOver()
        case .overloaded: return machine.failed(.tooManyWaiters)
        case .confirm, .wait:
            timer.arm(at: runtime.loop.now + client.plan.timeouts.login)
            waitingFor = route.slots[slot].key
            runtime.wait(self, ticket: ticket)
            return nil
        }
    }

    /// The confirmation is over, or a login of the same session.
    func confirmationEnded(_ outcome: SessionTable<ExchangeTicket>.Outcome) {
        guard let slot = machine.heldSlot else { return }
        switch outcome {
        case .askAgain:
            guard let next = confirm(slot) else { return }
            goOn(next)
        case .failed(let failure) where !failure.isUnknown:
            challengedSlot = slot
            goOn(machine.failed(ExchangeError(failure)))
        case .failed: goOn(keepSession(isConfirmed: false))
        case .kept(_, let isConfirmed): goOn(keepSession(isConfirmed: isConfirmed))
        case .prove(let key, let session):
            // Another session is there already; whoever needs it next tries it.
            runtime.judge(key, generation: session.generation, .undecided, ticket: ticket)
            goOn(sessionIsOver())
        case .won: goOn(sessionIsOver())
        }
    }

    /// Nobody waits any longer for the confirmation: the answer goes to the caller.
    func giveUpConfirmation() {
        if let waitingFor { runtime.stopWaiting(ticket, for: waitingFor) }
        waitingFor = nil
        goOn(keepSession(isConfirmed: false))
    }

    /// Lets the answer pass. Only a confirmed session is remembered as refused at this route: else the table has it for a moment.
    private func keepSession(isConfirmed: Bool) -> ExchangeMachine.Action {
        if !isConfirmed { finding.refusal = nil }
        challengedSlot = machine.heldSlot
        noteChallenge(.passed)
        return machine.sessionKept()
    }

    private func sessionIsOver() -> ExchangeMachine.Action {
        guard let slot = machine.heldSlot else { return .doNothing }
        let action = machine.sessionOver(canReplay: body.canReplay)
        challengeMet(at: slot, then: action)
        return action
    }

    /// Carries out what becomes of the answer that was held, and has the transfer tell the rest of it.
    private func goOn(_ action: ExchangeMachine.Action) {
        guard let transfer else { return perform(action) }
        perform(action)
        guard self.transfer === transfer else { return }
        transfer.tellNewsAgain()
        guard self.transfer === transfer, !machine.hasEnded else { return }
        if body.wantsMore { caller?.exchangeWantsBody() }
    }
}
