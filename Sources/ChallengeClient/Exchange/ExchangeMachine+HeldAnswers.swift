// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

// Answers that are held until their meaning is known: challenges on a session, and those that may conceal a login page.
extension ExchangeMachine {
    /// Delivers the held answer, which conceals no login page. `isKnown`: the page was asked for and came.
    package mutating func pageIsAbsent(isKnown: Bool) -> AnswerAction {
        guard case .looking = state else { return misused("pageIsAbsent", .wait) }
        tried.recordAll(isKnown ? .accepted : .undecided)
        state = .passing
        return .deliver(verifiesSessions: false)
    }

    /// Holds the answer as a challenge, because it conceals a login page.
    package mutating func pageIsFound() {
        guard case .looking(let slot) = state else { return misused("pageIsFound", ()) }
        state = .holding(slot: slot)
    }

    /// Records that the session of the held answer is being confirmed. An exchange that waits no longer tries the
    /// session itself.
    package mutating func confirmationIsAwaited() {
        guard case .holding(let slot) = state else { return misused("confirmationIsAwaited", ()) }
        tried.hand(over: slot)
    }

    /// Delivers the held answer, because the session still works or its state is unknown.
    ///
    /// `mayBeBound` as in `ExaminedAnswer`: then the request is sent once more, if possible.
    package mutating func sessionKept(mayBeBound: Bool = false) -> AnswerAction {
        guard case .holding(let slot) = state else { return misused("sessionKept", .wait) }
        tried.record(slot, .undecided)
        if mayBeBound, userAgent == .none, rounds < Self.maxRounds { return sendUnderLogins(of: slot) }
        challengedSlot = slot
        conclude(.passed)
        state = .passing
        return .deliver(verifiesSessions: false)
    }

    /// Answers the held challenge, because the session is over. `canReplay` as in `ExaminedAnswer`.
    package mutating func sessionOver(canReplay: Bool) -> AnswerAction {
        guard case .holding(let slot) = state else { return misused("sessionOver", .wait) }
        tried.record(slot, .undecided)
        return challengeMet(slot, mayRepeat: renewsUnderLogins(of: slot), canReplay: canReplay)
    }

    /// Ends the exchange, because the credential of the held answer's session was rejected.
    package mutating func sessionRejected(_ error: ExchangeError) -> BreakAction {
        guard case .holding(let slot) = state else { return misused("sessionRejected", .wait) }
        challengedSlot = slot
        return failed(error)
    }
}
