// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The phase of an exchange, with the data known only in it.
package enum ExchangeState: Sendable, Equatable {
    /// Not started.
    case idle
    /// A session must be established before anything is sent.
    case waiting(slot: Int)
    /// The request's body is read before sending, because a signature needs its digest.
    case reading
    /// A transfer runs, and its final head is awaited.
    case sending
    /// The head has arrived; the beginning of the body decides if it is a challenge.
    case examining
    /// The answer, a challenge in spite of a session, is held. It stays so until it is known if that session is over.
    case holding(slot: Int)
    /// The answer, which may conceal a login page, is held until the page has been asked for.
    case looking(slot: Int)
    /// The answer is a challenge or a conflict. Its end is awaited, as a request is sent again only after a complete
    /// answer.
    case settling(then: Settlement, swallowed: Int)
    /// The head was delivered, the body follows.
    case passing
    /// The answer was delivered whole, while the request's body is still being sent.
    case finishing
    case ended

    /// The next step after a discarded answer.
    package enum Settlement: Sendable, Equatable {
        case resend
        case logIn(slot: Int)
    }

    /// True if the response head was delivered, and more may follow.
    package var isDelivering: Bool { self == .passing || self == .finishing }
    /// True if the exchange is over.
    package var hasEnded: Bool { self == .ended }
    /// True if the answer is held until it is known what it means.
    package var isHolding: Bool { heldSlot != nil }
    /// The slot of the session that the held answer depends on.
    package var heldSlot: Int? {
        switch self {
        case .holding(let slot), .looking(let slot): slot
        default: nil
        }
    }
    /// True if the end of a discarded answer is awaited.
    package var isSettling: Bool { if case .settling = self { true } else { false } }
    /// The slot whose session is awaited.
    package var waitingSlot: Int? { if case .waiting(let slot) = self { slot } else { nil } }
}

// The events of `ExchangeMachine` that carry data, and its actions: one small enum for each kind of event.
extension ExchangeMachine {
    /// A session that was waited for.
    package struct ReadySession: Sendable, Equatable {
        /// True if established during this exchange.
        package var isNew: Bool
        /// True if not accepted by the server yet, and tried by this exchange.
        package var isUnverified = false
        /// True if the session was removed again and may come back.
        package var isHidden = false
        /// True if another node has established it: it may have ended since, so a challenge to it is not the resource's answer.
        package var isTakenOver = false
        /// The name of its login.
        package var login = ""

        /// Creates a ready session.
        package init(
            isNew: Bool, isUnverified: Bool = false, isHidden: Bool = false, isTakenOver: Bool = false,
            login: String = ""
        ) {
            self.isNew = isNew
            self.isUnverified = isUnverified
            self.isHidden = isHidden
            self.isTakenOver = isTakenOver
            self.login = login
        }
    }

    /// The end of a transfer.
    package enum TransferEnd: Sendable, Equatable {
        /// The connection ended; `resend` tells if the request may be sent again.
        case broken(ExchangeError, resend: FailureMeaning.Resend)
        /// The answer is complete.
        case complete
        /// The upstream refuses to send 100 before the body (RFC 9110 §15.5.18).
        case expectationRefused
        /// The request or the answer is unusable: its body is lost, or it breaks a rule.
        case lost(ExchangeError)
        /// The connection was to be authenticated first, and the upstream sent no challenge there.
        case unbound
        /// A session of the request ended while the connection was made. Nothing was sent; the error is for the last try.
        case withdrawn(ExchangeError)
    }

    /// The next step towards a transfer.
    package enum BeginAction: Sendable, Equatable {
        /// The exchange is over without a response: report the error to the caller.
        case fail(ExchangeError)
        /// Get the session of that slot from the table or by waiting for a login.
        case logIn(slot: Int)
        /// Send the request from its first byte, with the current sessions.
        case send
        case wait
    }

    /// The next step of reading the body for its digest.
    package enum ReadAction: Sendable, Equatable {
        /// More has to come from the caller.
        case askCaller
        /// Read more of the body in the next turn.
        case readMore
        /// The digest cannot be computed: fail.
        case refuse
        case send
        case wait
    }

    /// The next step with an answer whose head is here.
    package enum AnswerAction: Sendable, Equatable {
        /// Hold the answer, and check if the session of that slot still works.
        case confirm(slot: Int)
        /// Deliver the head, then the body. `verifiesSessions`: the server asked for nothing although able to.
        case deliver(verifiesSessions: Bool)
        /// Discard the answer's body, and report its end.
        case discard
        /// The exchange is over because the request's body is no longer held. Establish the session of that slot for
        /// the caller's next attempt.
        case giveUp(slot: Int)
        /// The exchange is over: pass the switched connection to the caller.
        case handOver
        /// Hold the answer, examine the beginning of its body, and report the result by `headReceived`.
        case examineBody
        /// Hold the answer, and ask for the page that it may conceal from the login of that slot.
        case look(slot: Int)
        case wait
    }

    /// The next step after the end of an answer or a transfer.
    package enum EndAction: Sendable, Equatable {
        /// Report the answer as complete; the request's body is still being sent.
        case complete
        /// The exchange is over without a response: report the error to the caller.
        case fail(ExchangeError)
        /// The exchange is over and complete.
        case finish
        /// Get the session of that slot.
        case logIn(slot: Int)
        /// Send the request again.
        case send
        /// The exchange is over in the middle of a response, which must not look complete.
        case truncate(ExchangeError)
        case wait
    }

    /// The end of an exchange that cannot continue.
    package enum BreakAction: Sendable, Equatable {
        case fail(ExchangeError)
        case finish
        case truncate(ExchangeError)
        case wait

        /// Action after the end of a transfer that corresponds to this one.
        var afterTransfer: EndAction {
            switch self {
            case .fail(let error): .fail(error)
            case .finish: .finish
            case .truncate(let error): .truncate(error)
            case .wait: .wait
            }
        }
    }

    /// The meaning of the exchange's timer in its state.
    package enum TimerAction: Sendable, Equatable {
        /// Deliver the held answer.
        case keepSession
        /// Examine the answer with the body received so far.
        case examineBody
        /// The concealed page did not come.
        case endLook
        /// Read more of the body for its digest.
        case readBody
        /// A limit has passed; `isWaiting`: that of a login.
        case timeOut(isWaiting: Bool)
        case wait
    }

    /// A challenge and its outcome.
    package struct ConcludedChallenge: Sendable, Equatable {
        /// The slot of the challenged login.
        package let slot: Int
        /// The outcome.
        package let outcome: ChallengeCount.Outcome

        /// Creates a concluded challenge.
        package init(slot: Int, outcome: ChallengeCount.Outcome) {
            self.slot = slot
            self.outcome = outcome
        }
    }
}
