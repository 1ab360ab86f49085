// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The course of one exchange: which transfer is sent when, what is held and what passes, when it is over.
///
/// A value without I/O: events in, one action out. It knows sessions only by the place (`slot`) of their login in the
/// route's list.
package struct ExchangeMachine: Sendable, Equatable {
    /// At most this many rounds of challenge and answer per exchange (CONTRIBUTING, rule 2).
    package static let mostRounds = 8
    /// At most this many times is a request sent again after 409 with `MFP-Conflict`, as MobileFirst's own clients do.
    package static let mostConflicts = 7

    /// At most this many times is it sent again because the upstream had ended the connection: several may rest that have ended.
    package static let mostResends = 4

    private enum State: Sendable, Equatable {
        /// Nothing has happened.
        case idle
        /// A session must be won first; legal next: sending, ended.
        case waiting(slot: Int)
        /// A transfer runs and its head is awaited; legal next: looking, settling, passing, ended.
        case sending
        /// The head is here, and whether it is a challenge hangs on the beginning of its body; legal next: settling, passing,
        /// ended.
        case looking
        /// The answer is a challenge of a session that the request carried, and is held until it is known if that session is over;
        /// legal next: passing, settling, ended.
        case holding(slot: Int)
        /// The answer was a challenge or a conflict; its end is awaited, as a request is sent again only after a
        /// complete answer. Legal next: waiting, sending, ended.
        case settling(then: Settlement)
        /// The head went to the caller, the body follows; legal next: finishing, ended.
        case passing
        /// The answer went to the caller whole, while the request's body still comes; legal next: ended.
        case finishing
        case ended
    }

    private enum Settlement: Sendable, Equatable {
        case resend
        case win(slot: Int)
    }

    /// What the driver does next.
    package enum Action: Sendable, Equatable {
        /// Keep the answer, and ask if the session of that slot still works; report that by `sessionKept` or `sessionOver`.
        case confirm(slot: Int)
        /// Tell the caller that the answer is whole; the request's body still goes upstream.
        case complete
        /// Let the head, and then the body, go to the caller.
        case deliver
        /// Swallow the answer's body, up to a bound, and report its end.
        case discard
        /// Nothing, until the next event.
        case doNothing
        /// Keep the answer, and report what its beginning means by `headReceived`.
        case look
        /// The exchange is over and well.
        case finish
        /// The exchange is over without a response: tell the caller why.
        case fail(ExchangeError)
        /// The exchange is over: hand the connection over, which has another protocol now.
        case handOver
        /// The exchange is over in the middle of a response: the caller's connection must not look complete.
        case truncate(ExchangeError)
        /// Send the request, from its first byte, with the sessions that are held now.
        case send
        /// Get the session of that slot: from the table, or by waiting for a login.
        case win(slot: Int)
    }

    private var state = State.idle
    private var rounds = 0
    private var conflicts = 0
    /// How often the request was sent again because its connection had ended.
    private var resends = 0
    /// The slot whose session was won during this exchange, last.
    package private(set) var wonSlot: Int?

    /// An exchange at its beginning.
    package init() {}

    /// True if the response head has gone to the caller.
    package var hasDelivered: Bool { state == .passing || state == .finishing }
    /// True if it is over.
    package var hasEnded: Bool { state == .ended }
    /// True if the beginning of the answer's body is awaited.
    package var isLooking: Bool { state == .looking }
    /// True if the answer is held until it is known if a session is over.
    package var isHolding: Bool { heldSlot != nil }
    /// The slot of that session.
    package var heldSlot: Int? { if case .holding(let slot) = state { slot } else { nil } }
    /// True if a login is waited for.
    package var isWaiting: Bool { if case .waiting = state { true } else { false } }
    /// True if the end of an answer is awaited after which the request is sent again.
    package var isSettling: Bool { if case .settling = state { true } else { false } }
    /// The slot whose session is waited for.
    package var waitingSlot: Int? { if case .waiting(let slot) = state { slot } else { nil } }
    /// How many answers to challenges this exchange has asked for.
    package var roundCount: Int { rounds }

    /// The request's head is here. `missing`: the first login that must have won its session before anything is sent.
    package mutating func start(missing: Int?) -> Action {
        guard let slot = missing else {
            state = .sending
            return .send
        }
        state = .waiting(slot: slot)
        return .win(slot: slot)
    }

    /// The session that was waited for is there, won by `login`. `missing` as in `start`. `isHidden`: it was taken away again, and may
    /// come back.
    package mutating func sessionReady(
        missing: Int?, wonNow: Bool, isHidden: Bool = false, login: String = ""
    ) -> Action {
        guard case .waiting(let slot) = state else { return .doNothing }
        if wonNow {
            wonSlot = slot
            if missing == slot, isHidden, rounds < Self.mostRounds {
                rounds += 1
                return .win(slot: slot)
            }
            if missing == slot {
                // Another login would bring the same, for ever.
                let failure = LoginFailure(
                    .failed, challenge: login,
                    detail: "The login \(login) won a session that has ended already. Do the clocks agree?")
                return sessionFailed(ExchangeError(failure))
            }
        }
        return start(missing: missing)
    }

    /// There is no session to be had.
    package mutating func sessionFailed(_ error: ExchangeError) -> Action {
        guard case .waiting = state else { return .doNothing }
        state = .ended
        return .fail(error)
    }

    /// The final response head is here, or what was looked at behind it, and asks that of the login of `slot`. `mayRepeat`: a session
    /// just won does not speak against another round. `canReplay`: the request's body is still held from its first byte.
    package mutating func headReceived(
        _ challenge: Challenge, slot: Int = 0, mayRepeat: Bool = false, canReplay: Bool
    ) -> Action {
        guard state == .sending || state == .looking else { return .doNothing }
        switch challenge {
        case .needsBody:
            guard state == .sending else { break }
            state = .looking
            return .look
        case .challenged, .stale:
            // One resource is not the session (CONTRIBUTING, rule 4): a refusal in spite of a session just won is the answer.
            guard mayRepeat || wonSlot != slot, rounds < Self.mostRounds else { break }
            guard canReplay else { return failed(.bodyNotReplayable) }
            // Another scope is another session: that the one for the smaller scope was won just now says nothing of it.
            if mayRepeat { wonSlot = nil }
            rounds += 1
            state = .settling(then: .win(slot: slot))
            return .discard
        case .refused:
            state = .holding(slot: slot)
            return .confirm(slot: slot)
        case .replay:
            guard conflicts < Self.mostConflicts, canReplay else { break }
            conflicts += 1
            state = .settling(then: .resend)
            return .discard
        case .pass:
            break
        }
        state = .passing
        return .deliver
    }

    /// The session still works, or nobody can say: the answer that is held is the caller's.
    package mutating func sessionKept() -> Action {
        guard case .holding = state else { return .doNothing }
        state = .passing
        return .deliver
    }

    /// The session is over: the answer that is held is a challenge. `canReplay` as in `headReceived`.
    package mutating func sessionOver(canReplay: Bool) -> Action {
        guard case .holding(let slot) = state else { return .doNothing }
        state = .sending
        return headReceived(.challenged(), slot: slot, canReplay: canReplay)
    }

    /// The request was answered without the upstream, by what the sessions are.
    package mutating func answered() -> Action {
        guard state == .sending else { return .doNothing }
        state = .ended
        return .finish
    }

    /// The upstream has not taken the request in the way that it was sent: it refused to say 100 before it gets the body (RFC 9110
    /// §15.5.18), or has no NTLM for it. The request is sent again in another way.
    package mutating func requestUntaken(canReplay: Bool) -> Action {
        guard state == .sending else { return .doNothing }
        guard canReplay else { return failed(.bodyNotReplayable) }
        return .send
    }

    /// The final response head is here and is that of a 101, which was asked for.
    package mutating func switched() -> Action {
        guard state == .sending else { return .doNothing }
        state = .ended
        return .handOver
    }

    /// All of the answer was received, but not all of the request's body has been sent. `isRefusal`: it has a status of 300
    /// or above, after which nothing more is sent (RFC 9112 §9.5).
    package mutating func answerWhole(isRefusal: Bool) -> Action {
        guard state == .passing, !isRefusal else { return answerComplete() }
        state = .finishing
        return .complete
    }

    /// The answer is complete, and its transfer has ended or will be ended; or more of a swallowed one came than we care to
    /// read.
    package mutating func answerComplete() -> Action {
        switch state {
        case .settling(.win(let slot)):
            state = .waiting(slot: slot)
            return .win(slot: slot)
        case .settling(.resend):
            state = .sending
            return .send
        case .passing, .finishing:
            state = .ended
            return .finish
        case .ended, .holding, .idle, .waiting:
            return .doNothing
        case .looking, .sending:
            // libcurl said it is done and no head came: nothing that HTTP allows.
            state = .ended
            return .fail(
                ExchangeError(
                    .upstreamProtocol,
                    detail: """
                        The upstream ended its answer before it began, or in the middle of its head. It may have failed \
                        while it worked: look into its log.
                        """))
        }
    }

    /// The transfer broke. `canResend`: the upstream's connection went before it answered, and it does no harm to send the
    /// request again (RFC 9110 §9.2.2, RFC 9113 §6.8).
    package mutating func connectionEnded(_ error: ExchangeError, canResend: Bool) -> Action {
        guard state == .sending, canResend, resends < Self.mostResends else { return failed(error) }
        resends += 1
        return .send
    }

    /// The transfer broke, or the deadline passed.
    package mutating func failed(_ error: ExchangeError) -> Action {
        switch state {
        case .ended: return .doNothing
        case .passing:
            state = .ended
            return .truncate(error)
        case .finishing:
            // The caller has its answer; what became of the rest of its body changes nothing about that.
            state = .ended
            return .finish
        case .holding, .idle, .looking, .sending, .settling, .waiting:
            state = .ended
            return .fail(error)
        }
    }
}
