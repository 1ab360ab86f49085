// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// The course of one exchange: which transfer is sent when, what is held and what passes, when it is over.
///
/// A value without I/O and without a clock; `Exchange` carries its actions out. Sessions are known only by the place (`slot`) of their
/// login in the route's list. An event that the state does not allow traps in debug builds, and changes nothing in release builds.
package struct ExchangeMachine: ~Copyable {
    /// At most this many rounds of challenge and answer per exchange (CONTRIBUTING, rule 2).
    package static let mostRounds = 8
    /// At most this many times is a request sent again after 409 with `MFP-Conflict`, as MobileFirst's own clients do.
    package static let mostConflicts = 7
    /// At most this many times is it sent again because the upstream had ended the connection: several may rest that have ended.
    package static let mostResends = 4
    /// So many sessions that others use up are established for one exchange.
    package static let mostSpent = 4

    /// Its phase.
    package private(set) var state = ExchangeState.idle
    /// Answers to challenges that this exchange has asked for.
    package private(set) var rounds = 0
    private var conflicts = 0
    /// Sendings because the connection had ended.
    private var resends = 0
    private var tried = TriedSessions()
    /// True if the request is about to ask for 100, or waits for it (RFC 9110 §10.1.1).
    private var isExpecting = false
    private var concluded: ConcludedChallenge?
    private let trapsMisuse: Bool
    /// Events that the state did not allow.
    package private(set) var misuses = 0

    /// The slot whose session was established during this exchange, last.
    package private(set) var wonSlot: Int?
    /// The slot of the challenge that was met and of which nothing has come yet.
    package private(set) var challengedSlot: Int?
    /// True if the upstream is asked to say 100 before it gets the body.
    package private(set) var expectsContinue: Bool
    /// True if the request goes without the credential of a session that authenticates connections: the upstream asks for none there.
    package private(set) var goesUnbound = false

    /// An exchange at its beginning.
    package init(expectsContinue: Bool = false, trapsMisuse: Bool = true) {
        self.expectsContinue = expectsContinue
        self.trapsMisuse = trapsMisuse
    }

    /// True if an event has decided something of a session that was tried, or of a challenge that was met.
    package var hasNews: Bool { concluded != nil || tried.hasJudgements }

    /// Hands out what the last event has decided of a session that was tried; to be asked before its action is carried out.
    package mutating func takeJudgement() -> SessionJudgement? { tried.takeJudgement() }

    /// Hands out what the last event has decided of a challenge that was met; to be asked before its action is carried out.
    package mutating func takeConcludedChallenge() -> ConcludedChallenge? {
        guard let last = concluded else { return nil }
        concluded = nil
        return last
    }

    // MARK: Sessions

    /// The request's head is here. `missing`: the first login that must have established its session before anything is sent.
    package mutating func start(missing: Int?) -> BeginAction {
        guard case .idle = state else { return misused("start", .wait) }
        return begin(missing: missing)
    }

    private mutating func begin(missing: Int?) -> BeginAction {
        guard let slot = missing else {
            conclude(.answered)
            state = .sending
            return .send
        }
        state = .waiting(slot: slot)
        return .logIn(slot: slot)
    }

    /// The session that was waited for is there. `missing` as in `start`.
    package mutating func sessionReady(_ session: ReadySession, missing: Int?) -> BeginAction {
        guard case .waiting(let slot) = state else { return misused("sessionReady", .wait) }
        if session.isUnverified { tried.add(slot) }
        guard session.isNew else { return begin(missing: missing) }
        wonSlot = slot
        guard missing == slot else { return begin(missing: missing) }
        if session.isHidden, rounds < Self.mostRounds {
            rounds += 1
            return .logIn(slot: slot)
        }
        // Another login would bring the same, for ever.
        return sessionFailed(
            ExchangeError(
                LoginFailure(
                    .failed, challenge: session.login,
                    detail: "The login \(session.login) won a session that has ended already. Do the clocks agree?")))
    }

    /// There is no session to be had.
    package mutating func sessionFailed(_ error: ExchangeError) -> BeginAction {
        guard case .waiting = state else { return misused("sessionFailed", .wait) }
        end()
        return .fail(error)
    }

    /// The login, or the confirmation, is over without a result: its session is to be asked for again.
    package mutating func askAgain() -> BeginAction {
        guard case .waiting(let slot) = state else { return misused("askAgain", .wait) }
        return .logIn(slot: slot)
    }

    // MARK: The request's body

    /// A signature needs the digest of the body, which is not known yet.
    package mutating func bodyIsUnread() {
        guard case .sending = state else { return misused("bodyIsUnread", ()) }
        state = .reading
    }

    /// Some of the body was read for its digest.
    package mutating func bodyRead(_ step: BodyReading.Step) -> ReadAction {
        guard case .reading = state else { return misused("bodyRead", .wait) }
        switch step {
        case .goOn: return .readOn
        case .hungry: return .askCaller
        case .lost: return .refuse
        case .done:
            state = .sending
            return .send
        }
    }

    /// The request was handed to a stream. `systemNow` is compared in `bodyIsTaken`.
    package mutating func requestIsSent() {
        guard case .sending = state else { return misused("requestIsSent", ()) }
        isExpecting = expectsContinue
    }

    /// The stream takes the body for the first time since the request was sent. Returns if the upstream honors an expectation, where that
    /// shows: it said 100, or let the wait pass (RFC 9110 §10.1.1).
    package mutating func bodyIsTaken(wasContinued: Bool, hasWaited: @autoclosure () -> Bool) -> Bool? {
        guard isExpecting else { return nil }
        isExpecting = false
        return wasContinued ? true : hasWaited() ? false : nil
    }

    // MARK: Answers

    /// The final response head is here, or what was looked at behind it.
    package mutating func headReceived(_ answer: ExaminedAnswer) -> AnswerAction {
        let isFirst: Bool
        switch state {
        case .sending: isFirst = true
        case .looking: isFirst = false
        default: return misused("headReceived", .wait)
        }
        var answer = answer
        answer.weigh(tried: tried, wonSlot: wonSlot, rounds: rounds, goesUnbound: goesUnbound)
        if !tried.isEmpty { tried.judge(by: answer) }
        switch answer.challenge {
        case .needsBody where isFirst:
            state = .looking
            return .look
        case .challenged, .stale:
            return challengeMet(answer.slot, mayRepeat: answer.mayRepeat, canReplay: answer.canReplay)
        case .refused:
            state = .holding(slot: answer.slot)
            return .confirm(slot: answer.slot)
        case .replay where conflicts < Self.mostConflicts && answer.canReplay:
            conflicts += 1
            state = .settling(then: .resend, swallowed: 0)
            return .discard
        case .pass:
            state = .passing
            return .deliver(provesSessions: !answer.saysNothing)
        case .needsBody, .replay:
            state = .passing
            return .deliver(provesSessions: false)
        }
    }

    private mutating func challengeMet(_ slot: Int, mayRepeat: Bool, canReplay: Bool) -> AnswerAction {
        challengedSlot = slot
        // One resource is not the session (CONTRIBUTING, rule 4): a refusal in spite of a session just established is the answer.
        guard mayRepeat || wonSlot != slot, rounds < Self.mostRounds else {
            conclude(.passed)
            state = .passing
            return .deliver(provesSessions: false)
        }
        guard canReplay else {
            conclude(.notReplayable)
            end()
            return .giveUp(slot: slot)
        }
        // Another scope is another session: that the one for the smaller scope was established just now says nothing of it.
        if mayRepeat { wonSlot = nil }
        rounds += 1
        state = .settling(then: .logIn(slot: slot), swallowed: 0)
        return .discard
    }

    /// The session of the held answer is being confirmed: whoever waits for that is no longer the one who tries it.
    package mutating func confirmationIsAwaited() {
        guard case .holding(let slot) = state else { return misused("confirmationIsAwaited", ()) }
        tried.hand(over: slot)
    }

    /// The session still works, or nobody can say: the answer that is held is the caller's.
    package mutating func sessionKept() -> AnswerAction {
        guard case .holding(let slot) = state else { return misused("sessionKept", .wait) }
        tried.judge(slot, .undecided)
        challengedSlot = slot
        conclude(.passed)
        state = .passing
        return .deliver(provesSessions: false)
    }

    /// The session is over: the answer that is held is a challenge. `canReplay`: the request's body is still held from its first byte.
    package mutating func sessionOver(canReplay: Bool) -> AnswerAction {
        guard case .holding(let slot) = state else { return misused("sessionOver", .wait) }
        tried.judge(slot, .undecided)
        return challengeMet(slot, mayRepeat: false, canReplay: canReplay)
    }

    /// The credential of the session of the held answer was rejected.
    package mutating func sessionRejected(_ error: ExchangeError) -> BreakAction {
        guard case .holding(let slot) = state else { return misused("sessionRejected", .wait) }
        challengedSlot = slot
        return failed(error)
    }

    /// The final response head is that of a 101, which was asked for.
    package mutating func switched() -> AnswerAction {
        guard case .sending = state else { return misused("switched", .wait) }
        tried.judgeAll(.accepted)
        end()
        return .handOver
    }

    /// The request was answered without the upstream, by what the sessions are.
    package mutating func answeredLocally() {
        guard case .sending = state else { return misused("answeredLocally", ()) }
        end()
    }

    // MARK: Ends

    /// A piece of an answer was read that goes to nobody. Reads on only up to `limit` bytes: a longer one is not worth its connection.
    package mutating func swallowed(_ count: Int, limit: Int) -> EndAction {
        guard case .settling(let next, let before) = state else { return misused("swallowed", .wait) }
        let swallowed = before + count
        guard swallowed > limit else {
            state = .settling(then: next, swallowed: swallowed)
            return .wait
        }
        return answerComplete()
    }

    /// All of the answer was received, but not all of the request's body has been sent. `isRefusal`: it has a status of 300
    /// or above, after which nothing more is sent (RFC 9112 §9.5).
    package mutating func answerWhole(isRefusal: Bool) -> EndAction {
        guard case .passing = state, !isRefusal else { return answerComplete() }
        state = .finishing
        return .complete
    }

    /// The transfer is over. `canReplay` as in `sessionOver`; `isIdempotent`: the request's method is (RFC 9110 §9.2.2).
    package mutating func transferEnded(_ end: TransferEnd, canReplay: Bool, isIdempotent: Bool) -> EndAction {
        switch end {
        case .complete: return answerComplete()
        case .broken(let error, let resend):
            let mayGoAgain =
                switch resend {
                case .always: canReplay
                case .ifIdempotent: isIdempotent && canReplay
                case .never: false
                }
            guard case .sending = state, mayGoAgain, resends < Self.mostResends else { return endFailed(error) }
            resends += 1
            return .send
        case .lost(let error): return endFailed(error)
        case .expectationRefused:
            expectsContinue = false
            return sendOtherwise(canReplay: canReplay)
        case .unbound:
            // No credential was looked at, so nothing is known of it.
            tried.judgeAll(.undecided)
            goesUnbound = true
            return sendOtherwise(canReplay: canReplay)
        }
    }

    /// The upstream has not taken the request in the way that it was sent.
    private mutating func sendOtherwise(canReplay: Bool) -> EndAction {
        guard case .sending = state else { return misused("transferEnded", .wait) }
        return canReplay ? .send : endFailed(.bodyNotReplayable)
    }

    /// The answer is complete, and its transfer has ended or will be ended.
    private mutating func answerComplete() -> EndAction {
        switch state {
        case .settling(.logIn(let slot), _):
            state = .waiting(slot: slot)
            return .logIn(slot: slot)
        case .settling(.resend, _):
            conclude(.answered)
            state = .sending
            return .send
        case .passing, .finishing:
            end()
            return .finish
        case .looking, .sending:
            // libcurl said it is done and no head came: nothing that HTTP allows.
            return endFailed(.answerWithoutHead)
        case .ended, .holding, .idle, .reading, .waiting:
            return misused("answerComplete", .wait)
        }
    }

    private mutating func endFailed(_ error: ExchangeError) -> EndAction {
        switch failed(error) {
        case .wait: .wait
        case .finish: .finish
        case .fail(let error): .fail(error)
        case .truncate(let error): .truncate(error)
        }
    }

    /// The request cannot go on: its transfer broke, a limit of time passed, or a session is no use for it.
    package mutating func failed(_ error: ExchangeError) -> BreakAction {
        switch state {
        case .ended: return misused("failed", .wait)
        case .passing:
            end()
            return .truncate(error)
        case .finishing:
            // The caller has its answer; what became of the rest of its body changes nothing about that.
            end()
            return .finish
        case .holding, .idle, .looking, .reading, .sending, .settling, .waiting:
            end()
            return .fail(error)
        }
    }

    /// The caller went away.
    package mutating func cancelled() {
        guard !state.hasEnded else { return misused("cancelled", ()) }
        end()
    }

    /// The timer that was set last has expired.
    package mutating func timerExpired() -> TimerAction {
        switch state {
        case .ended: misused("timerExpired", .wait)
        case .reading: .readBody
        case .looking: .look
        case .holding: .keepSession
        case .waiting: .timeOut(isWaiting: true)
        case .finishing, .idle, .passing, .sending, .settling: .timeOut(isWaiting: false)
        }
    }

    private mutating func end() {
        state = .ended
        tried.judgeAll(.undecided)
        conclude(.failed)
    }

    /// This came of the challenge that was met, if one was.
    private mutating func conclude(_ outcome: ChallengeCount.Outcome) {
        guard let slot = challengedSlot else { return }
        challengedSlot = nil
        concluded = ConcludedChallenge(slot: slot, outcome: outcome)
    }

    private mutating func misused<Action>(_ event: StaticString, _ nothing: Action) -> Action {
        misuses += 1
        assert(!trapsMisuse, "ExchangeMachine: \(event) is not allowed now")
        return nothing
    }
}
