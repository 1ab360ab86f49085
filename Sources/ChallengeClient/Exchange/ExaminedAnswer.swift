// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// A final response head, or what was looked at behind it, as the logins of the route see it, and what the request carried.
package struct ExaminedAnswer: Sendable, Equatable {
    /// The demand of the answer: first by itself, then in the light of what the exchange has done.
    package var challenge: Challenge
    /// The slot of the login that it asks; of no meaning where it passes.
    package var slot = 0
    /// The status code.
    package var status = 200
    /// True if a session just established does not speak against another round: more scope is asked for, or a fresh session.
    package var mayRepeat = false
    /// True if a challenge passes because this route is known to refuse the session.
    package var isKnownRefusal = false
    /// True if the request carried a session of `slot` that can be confirmed elsewhere.
    package var carriesConfirmable = false
    /// True if the request carried a session that others use up.
    package var carriesSpendable = false
    /// True if the request went without the session of `slot` although one is there or on its way.
    package var isHidden = false
    /// True if the session of `slot` authenticates connections.
    package var bindsConnection = false
    /// True if the request's body is still held from its first byte.
    package var canReplay = true

    /// An answer.
    package init(_ challenge: Challenge, slot: Int = 0, status: Int = 200) {
        self.challenge = challenge
        self.slot = slot
        self.status = status
    }

    /// True if the server judged no session: it is in trouble, or the refusal is an old one.
    var saysNothing: Bool { isKnownRefusal || status == 429 || status >= 500 }

    /// Takes a challenge for what it is in the light of the sessions that the request carried.
    mutating func weigh(tried: TriedSessions, wonSlot: Int?, rounds: Int, goesUnbound: Bool) {
        guard case .challenged = challenge else { return }
        if goesUnbound, bindsConnection {
            // It asks for nothing before the body, and for all of it then: another round would meet the same.
            challenge = .pass
        } else if tried.contains(slot) || !mayRepeat && carriesConfirmable && wonSlot != slot {
            // The session is over, or this resource is not for it (CONTRIBUTING, rule 4).
            challenge = .refused
        } else if carriesSpendable && rounds < ExchangeMachine.mostSpent || isHidden && wonSlot == slot {
            // What was established a moment ago may be used up, or hidden, by now: that says nothing of this one resource.
            mayRepeat = true
        }
    }
}
