// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The verdict of an answer on an unverified session that its request carried.
package struct SessionVerdict: Sendable, Equatable {
    /// Result of a trial.
    package typealias Result = SessionTable<ExchangeTicket>.VerificationResult

    /// The index of its login in the route's list.
    package let slot: Int
    /// The result of the verification.
    package let result: Result

    /// Creates a verdict.
    package init(slot: Int, result: Result) {
        self.slot = slot
        self.result = result
    }
}

/// The unverified sessions tried by one exchange, and the verdicts on them (CONTRIBUTING, rules 1 and 3).
struct TriedSessions {
    typealias Result = SessionVerdict.Result

    /// True if some of the request that carries them may have left this machine.
    var areSent = false
    private var slots: [Int] = []
    private var verdicts: [SessionVerdict] = []

    /// True if no session is being tried.
    var isEmpty: Bool { slots.isEmpty }
    /// True if a verdict has not been returned yet.
    var hasVerdicts: Bool { !verdicts.isEmpty }

    /// Returns true if the session of `slot` is being tried.
    func contains(_ slot: Int) -> Bool { slots.contains(slot) }

    mutating func add(_ slot: Int) {
        if !slots.contains(slot) { slots.append(slot) }
    }

    /// Removes the session of `slot`, which others verify.
    mutating func hand(over slot: Int) { slots.removeAll { $0 == slot } }

    /// Records verdicts on all sessions after an answer.
    ///
    /// Any answer but the same challenge verifies a session, unless the server was unable to check it.
    mutating func recordVerdicts(of answer: ExaminedAnswer) {
        guard answer.challenge != .needsBody else { return }
        for slot in slots {
            switch answer.challenge {
            case .refused where slot == answer.slot: continue
            case .stale where slot == answer.slot: record(slot, .outdated)
            case _ where answer.isKnownRefusal: record(slot, .undecided)
            default: record(slot, answer.isInconclusive ? .unanswered(.status(answer.status)) : .accepted)
            }
        }
    }

    /// Records the end of the exchange. `trial`: it ended before an answer, and the server may have counted the sent
    /// credential.
    mutating func recordEnd(_ trial: UnansweredTrial?) {
        guard areSent, let trial else { return recordAll(.undecided) }
        recordAll(.unanswered(trial))
    }

    /// Records the same verdict on all sessions.
    mutating func recordAll(_ result: Result) {
        for slot in slots { record(slot, result) }
    }

    /// Records a verdict on the session of `slot`, if it is being tried.
    mutating func record(_ slot: Int, _ result: Result) {
        guard let index = slots.firstIndex(of: slot) else { return }
        slots.remove(at: index)
        verdicts.append(SessionVerdict(slot: slot, result: result))
    }

    /// Removes and returns the next verdict.
    mutating func nextVerdict() -> SessionVerdict? { verdicts.isEmpty ? nil : verdicts.removeFirst() }
}

/// Final response as the route's logins see it, and the sessions that the request carried.
package struct ExaminedAnswer: Sendable, Equatable {
    /// The demand of the answer: first as detected, then refined by the state of the exchange.
    package var challenge: Challenge
    /// The slot of the challenged login; meaningless if the answer passes.
    package var slot = 0
    /// The status code.
    package var status = 200
    /// True if another round is allowed right after a login: more scope or a fresh session is asked for.
    package var mayRepeat = false
    /// True if a challenge passes because this route is known to refuse the session.
    package var isKnownRefusal = false
    /// True if the request carried a session of `slot` that a separate request can confirm.
    package var carriesConfirmable = false
    /// True if the request carried a held session of `slot` that sends a credential.
    package var carriesCredential = false
    /// True if the request carried a session that other requests use up.
    package var carriesSpendable = false
    /// True if the request lacked the session of `slot` although there is one, or one under way.
    package var isHidden = false
    /// True if the session of `slot` authenticates connections.
    package var bindsConnection = false
    /// True if the request's body is still held from its first byte.
    package var canReplay = true
    /// True if the request carried a session of `slot` under another `User-Agent` than its login, and may be sent again under that.
    package var mayBeBound = false
    /// Relation of the answer to a page that it does not show.
    package var concealment = Concealment.none

    /// Relations of an answer to a page that it does not show.
    package enum Concealment: Sendable, Equatable {
        /// The answer shows everything that a login needs to recognize its challenge.
        case none
        /// The answer does not show its page, which is not a login's as far as is known.
        case known
        /// The answer may conceal the login page of its slot.
        case open
    }

    /// Creates an answer.
    package init(_ challenge: Challenge, slot: Int = 0, status: Int = 200) {
        self.challenge = challenge
        self.slot = slot
        self.status = status
    }

    /// True if the answer says nothing about a session.
    var isInconclusive: Bool { isKnownRefusal || InconclusiveStatus.contains(status) }

    /// Refines a detected challenge by the sessions that the request carried.
    mutating func refine(tried: TriedSessions, establishedSlot: Int?, rounds: Int, omitsConnectionCredential: Bool) {
        guard case .challenged = challenge else { return }
        // Others may have used up a session that was established a moment ago.
        let isSpent = carriesSpendable && rounds < ExchangeMachine.maxSpentSessions
        if omitsConnectionCredential, bindsConnection {
            // The server asks for nothing before the body, and for the login after it: another round would end
            // likewise.
            challenge = .pass
        } else if tried.contains(slot) || !mayRepeat && carriesCredential && establishedSlot == slot
            || !mayRepeat && carriesConfirmable && establishedSlot != slot
        {
            // Either the session is over, or this resource refuses it (CONTRIBUTING, rule 4).
            challenge = .refused
        } else if isSpent || isHidden && establishedSlot == slot {
            // A session established a moment ago may be used up or hidden by now, which says nothing about this
            // resource.
            mayRepeat = true
        }
    }
}
