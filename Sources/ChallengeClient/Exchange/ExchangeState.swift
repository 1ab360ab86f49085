// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The phase of an exchange, with what is known only in it.
package enum ExchangeState: Sendable, Equatable {
    /// Nothing has happened.
    case idle
    /// A session must be established before anything is sent.
    case waiting(slot: Int)
    /// The request's body is read before it is sent: a signature needs its digest.
    case reading
    /// A transfer runs, and its final head is awaited.
    case sending
    /// The head is here; the beginning of its body tells if it is a challenge.
    case looking
    /// The answer is a challenge in spite of a session, and is held until it is known if that session is over.
    case holding(slot: Int)
    /// The answer is a challenge or a conflict. Its end is awaited: a request is sent again only after a complete answer.
    case settling(then: Settlement, swallowed: Int)
    /// The head went to the caller, the body follows.
    case passing
    /// The answer went to the caller whole, while the request's body still comes.
    case finishing
    case ended

    /// The next step after an answer that goes to nobody.
    package enum Settlement: Sendable, Equatable {
        case resend
        case logIn(slot: Int)
    }

    /// True if the response head has gone to the caller, and more may follow.
    package var isDelivering: Bool { self == .passing || self == .finishing }
    /// True if it is over.
    package var hasEnded: Bool { self == .ended }
    /// True if the answer is held until it is known if a session is over.
    package var isHolding: Bool { heldSlot != nil }
    /// The slot of that session.
    package var heldSlot: Int? { if case .holding(let slot) = self { slot } else { nil } }
    /// True if the end of an answer is awaited that goes to nobody.
    package var isSettling: Bool { if case .settling = self { true } else { false } }
    /// The slot whose session is waited for.
    package var waitingSlot: Int? { if case .waiting(let slot) = self { slot } else { nil } }
}
