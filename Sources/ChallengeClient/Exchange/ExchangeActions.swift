// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// The events of `ExchangeMachine` that carry something, and its actions: one small enum for each kind of event.
extension ExchangeMachine {
    /// A session that was waited for.
    package struct ReadySession: Sendable, Equatable {
        /// True if it was established during this exchange.
        package var isNew: Bool
        /// True if the server has not accepted it yet, and this exchange tries it for all.
        package var isUnverified = false
        /// True if it was taken away again, and may come back.
        package var isHidden = false
        /// The name of its login.
        package var login = ""

        /// A session.
        package init(isNew: Bool, isUnverified: Bool = false, isHidden: Bool = false, login: String = "") {
            self.isNew = isNew
            self.isUnverified = isUnverified
            self.isHidden = isHidden
            self.login = login
        }
    }

    /// The end of a transfer.
    package enum TransferEnd: Sendable, Equatable {
        /// The connection ended; `resend` says who may send the request again.
        case broken(ExchangeError, resend: FailureMeaning.Resend)
        /// The answer is complete.
        case complete
        /// The upstream will not say 100 before it gets the body (RFC 9110 §15.5.18).
        case expectationRefused
        /// The request or the answer is of no use: its body is lost, or it breaks a rule.
        case lost(ExchangeError)
        /// The connection was to be authenticated first, and the upstream asked for nothing there.
        case unbound
    }

    /// The next step on the way to a transfer.
    package enum BeginAction: Sendable, Equatable {
        /// The exchange is over without a response: tell the caller why.
        case fail(ExchangeError)
        /// Get the session of that slot: from the table, or by waiting for a login.
        case logIn(slot: Int)
        /// Send the request, from its first byte, with the sessions that are held now.
        case send
        case wait
    }

    /// The next step of reading the body for its digest.
    package enum ReadAction: Sendable, Equatable {
        /// More has to come from the caller.
        case askCaller
        /// Read more of it in the next turn.
        case readOn
        /// The body cannot be known: fail.
        case refuse
        case send
        case wait
    }

    /// The next step with an answer whose head is here.
    package enum AnswerAction: Sendable, Equatable {
        /// Keep the answer, and ask if the session of that slot still works.
        case confirm(slot: Int)
        /// Let the head, and then the body, go to the caller. `provesSessions`: the server has asked for nothing, and was able to.
        case deliver(provesSessions: Bool)
        /// Read the answer's body for nobody, and report its end.
        case discard
        /// The exchange is over: the request's body is no longer held. Have the session of that slot established for its next sending.
        case giveUp(slot: Int)
        /// The exchange is over: hand the connection over, which has another protocol now.
        case handOver
        /// Keep the answer, and report what its beginning means by `headReceived`.
        case look
        case wait
    }

    /// The next step after the end of an answer, or of a transfer.
    package enum EndAction: Sendable, Equatable {
        /// Tell the caller that the answer is whole; the request's body still goes upstream.
        case complete
        /// The exchange is over without a response: tell the caller why.
        case fail(ExchangeError)
        /// The exchange is over and well.
        case finish
        /// Get the session of that slot.
        case logIn(slot: Int)
        /// Send the request again.
        case send
        /// The exchange is over in the middle of a response: it must not look complete.
        case truncate(ExchangeError)
        case wait
    }

    /// The end of an exchange that cannot go on.
    package enum BreakAction: Sendable, Equatable {
        case fail(ExchangeError)
        case finish
        case truncate(ExchangeError)
        case wait
    }

    /// The meaning of the exchange's timer.
    package enum TimerAction: Sendable, Equatable {
        /// Let the held answer go to the caller.
        case keepSession
        /// Judge the answer by what is here of its body.
        case look
        /// Read some more of the body for its digest.
        case readBody
        /// A limit has passed. `isWaiting`: that of a login.
        case timeOut(isWaiting: Bool)
        case wait
    }

    /// A challenge that was met, and what came of it.
    package struct ConcludedChallenge: Sendable, Equatable {
        /// The slot of its login.
        package let slot: Int
        /// The outcome.
        package let outcome: ChallengeCount.Outcome

        /// A challenge.
        package init(slot: Int, outcome: ChallengeCount.Outcome) {
            self.slot = slot
            self.outcome = outcome
        }
    }
}
