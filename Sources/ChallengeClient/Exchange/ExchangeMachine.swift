// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// Course of one exchange: transfers to send, answers to hold or deliver, and its end.
///
/// Value type without I/O and clock; `Exchange` carries out its actions. Sessions are known only by the index (`slot`)
/// of their login in the route's list. An event that the state does not allow traps in debug builds, and changes
/// nothing in release builds.
package struct ExchangeMachine: ~Copyable {
    /// The limit of rounds of challenge and answer per exchange (CONTRIBUTING, rule 2).
    package static let maxRounds = 8
    /// The limit of resends after 409 with `MFP-Conflict`, as in MobileFirst's own clients.
    package static let maxConflicts = 7
    /// The limit of resends after a connection ended: several idle ones may have ended.
    package static let maxResends = 4
    /// The limit of withdrawals: other requests' sessions replace one's own while each new connection is made.
    package static let maxWithdrawals = 64
    /// The limit of sessions established for one exchange because other requests used them up.
    package static let maxSpentSessions = 4

    /// The phase.
    package internal(set) var state = ExchangeState.idle
    /// The number of answers to challenges that this exchange has requested.
    package internal(set) var rounds = 0
    private var conflicts = 0
    /// The numbers of resends because the connection had ended, and because a session had before anything was sent.
    private var (resends, withdrawals) = (0, 0)
    var tried = TriedSessions()
    /// True if the request is about to ask for 100, or waits (RFC 9110 §10.1.1).
    private var isExpecting = false
    private var concluded: ConcludedChallenge?
    private let trapsMisuse: Bool
    /// The number of events that the state did not allow.
    package private(set) var misuses = 0

    /// The slot whose session was established last during this exchange.
    package private(set) var establishedSlot: Int?
    /// The slot of the last challenge, if its outcome is open.
    package internal(set) var challengedSlot: Int?
    /// True if the upstream is asked for a 100 before it gets the body.
    package private(set) var expectsContinue: Bool
    /// The `User-Agent` that the request is sent under.
    package internal(set) var userAgent = UserAgentTrial.none
    /// True if the request omits the credential of a session that authenticates connections. The upstream sent no
    /// challenge there.
    package private(set) var omitsConnectionCredential = false

    /// Creates an exchange in its first state.
    package init(expectsContinue: Bool = false, trapsMisuse: Bool = true) {
        self.expectsContinue = expectsContinue
        self.trapsMisuse = trapsMisuse
    }

    /// True if the last event has produced a verdict or the outcome of a challenge.
    package var hasOutcomes: Bool { concluded != nil || tried.hasVerdicts }

    /// Returns the next verdict of the last event on a tried session; read before its action is carried out.
    package mutating func nextVerdict() -> SessionVerdict? { tried.nextVerdict() }

    /// Returns the outcome of a challenge after the last event; read before its action is carried out.
    package mutating func takeConcludedChallenge() -> ConcludedChallenge? {
        guard let last = concluded else { return nil }
        concluded = nil
        return last
    }

    /// True if the request tries a credential that no server has accepted yet.
    package var triesCredential: Bool { !tried.isEmpty }

    /// Records if some of the request may have left this machine; before an event that may end the exchange.
    package mutating func recordSending(_ isSent: Bool) { tried.areSent = isSent }

    // MARK: Sessions

    /// Starts the exchange. `missing`: the first slot whose session must be established before the request is sent.
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

    /// Continues with the awaited session. `missing` as in `start`.
    package mutating func sessionReady(_ session: ReadySession, missing: Int?) -> BeginAction {
        guard case .waiting(let slot) = state else { return misused("sessionReady", .wait) }
        if session.isUnverified { tried.add(slot) }
        guard session.isNew else { return begin(missing: missing) }
        establishedSlot = session.isTakenOver ? nil : slot
        guard missing == slot else { return begin(missing: missing) }
        if session.isHidden, rounds < Self.maxRounds {
            // Nothing was sent with the session: a challenge to the next request is the first.
            establishedSlot = nil
            rounds += 1
            return .logIn(slot: slot)
        }
        // Another login would have the same result each time.
        return sessionFailed(.expiredAtOnce(session.login))
    }

    /// Requests a session that has ended before the request was sent with it, while its body was read or an answer came.
    package mutating func sessionIsOver(_ slot: Int, login: String) -> BeginAction {
        guard case .sending = state else { return misused("sessionIsOver", .wait) }
        state = .waiting(slot: slot)
        guard rounds < Self.maxRounds else { return sessionFailed(.expiredAtOnce(login)) }
        establishedSlot = nil
        rounds += 1
        return .logIn(slot: slot)
    }

    /// Ends the exchange because no session is available.
    package mutating func sessionFailed(_ error: ExchangeError) -> BeginAction {
        guard case .waiting = state else { return misused("sessionFailed", .wait) }
        end()
        return .fail(error)
    }

    /// Requests the session again, because the login or the confirmation ended without a result.
    package mutating func askAgain() -> BeginAction {
        guard case .waiting(let slot) = state else { return misused("askAgain", .wait) }
        return .logIn(slot: slot)
    }

    // MARK: The request's body

    /// Starts reading the body, because a signature needs its unknown digest.
    package mutating func bodyIsUnread() {
        guard case .sending = state else { return misused("bodyIsUnread", ()) }
        state = .reading
    }

    /// Continues after a part of the body was read for its digest.
    package mutating func bodyRead(_ step: BodyProgress.Step) -> ReadAction {
        guard case .reading = state else { return misused("bodyRead", .wait) }
        switch step {
        case .more: return .readMore
        case .needsInput: return .askCaller
        case .lost: return .refuse
        case .done:
            state = .sending
            return .send
        }
    }

    /// Records that the request was handed to a stream.
    package mutating func requestIsSent() {
        guard case .sending = state else { return misused("requestIsSent", ()) }
        isExpecting = expectsContinue
    }

    /// Records that the stream takes the body for the first time since sending.
    ///
    /// Returns true if the upstream honors an expectation (it sent 100), false if it let the wait expire, and `nil` if
    /// neither is known (RFC 9110 §10.1.1).
    package mutating func bodyIsTaken(wasContinued: Bool, hasWaited: @autoclosure () -> Bool) -> Bool? {
        guard isExpecting else { return nil }
        isExpecting = false
        return wasContinued ? true : hasWaited() ? false : nil
    }

    // MARK: Answers

    /// Decides on an examined answer: a final response head, or the beginning of its body.
    package mutating func headReceived(_ answer: ExaminedAnswer) -> AnswerAction {
        let isFirst: Bool
        switch state {
        case .sending: isFirst = true
        case .examining: isFirst = false
        default: return misused("headReceived", .wait)
        }
        var answer = answer
        answer.refine(
            tried: tried, establishedSlot: establishedSlot, rounds: rounds,
            omitsConnectionCredential: omitsConnectionCredential)
        if !tried.isEmpty, answer.concealment != .open { tried.recordVerdicts(of: answer) }
        switch answer.challenge {
        case .needsBody where isFirst:
            state = .examining
            return .examineBody
        case .challenged, .stale:
            if let action = tryUserAgent(answer) { return action }
            return challengeMet(answer.slot, mayRepeat: answer.mayRepeat, canReplay: answer.canReplay)
        case .refused:
            state = .holding(slot: answer.slot)
            return .confirm(slot: answer.slot)
        case .replay where conflicts < Self.maxConflicts && answer.canReplay:
            conflicts += 1
            state = .settling(then: .resend, swallowed: 0)
            return .discard
        case .pass where answer.concealment == .open:
            state = .looking(slot: answer.slot)
            return .look(slot: answer.slot)
        case .pass:
            state = .passing
            return .deliver(verifiesSessions: !answer.isInconclusive && answer.concealment == .none)
        case .needsBody, .replay:
            state = .passing
            return .deliver(verifiesSessions: false)
        }
    }

    mutating func challengeMet(_ slot: Int, mayRepeat: Bool, canReplay: Bool) -> AnswerAction {
        challengedSlot = slot
        // One resource is not the session (CONTRIBUTING, rule 4): a refusal right after a login is the answer.
        guard mayRepeat || establishedSlot != slot, rounds < Self.maxRounds else {
            conclude(.passed)
            state = .passing
            return .deliver(verifiesSessions: false)
        }
        guard canReplay else {
            conclude(.notReplayable)
            end()
            return .giveUp(slot: slot)
        }
        // Another scope means another session: the new session for the smaller scope says nothing about it.
        if mayRepeat { establishedSlot = nil }
        rounds += 1
        state = .settling(then: .logIn(slot: slot), swallowed: 0)
        return .discard
    }

    /// Hands the connection over after a 101 that was asked for.
    package mutating func switched() -> AnswerAction {
        guard case .sending = state else { return misused("switched", .wait) }
        tried.recordAll(.accepted)
        end()
        return .handOver
    }

    /// Ends the exchange, because the request was answered from the sessions, without the upstream.
    package mutating func answeredLocally() {
        guard case .sending = state else { return misused("answeredLocally", ()) }
        end()
    }

    // MARK: Ends

    /// Counts discarded bytes of an answer. A connection is not worth reading one longer than `limit` to its end.
    package mutating func swallowed(_ count: Int, limit: Int) -> EndAction {
        guard case .settling(let next, let before) = state else { return misused("swallowed", .wait) }
        let swallowed = before + count
        guard swallowed > limit else {
            state = .settling(then: next, swallowed: swallowed)
            return .wait
        }
        return answerComplete()
    }

    /// Handles a complete answer while the request's body is still being sent.
    ///
    /// `isRefusal`: the status is 300 or above, after which nothing more is sent (RFC 9112 §9.5).
    package mutating func answerWhole(isRefusal: Bool) -> EndAction {
        guard case .passing = state, !isRefusal else { return answerComplete() }
        state = .finishing
        return .complete
    }

    /// Handles the end of a transfer. `canReplay` as in `sessionOver`; `isIdempotent`: of the method (RFC 9110 §9.2.2).
    package mutating func transferEnded(_ end: TransferEnd, canReplay: Bool, isIdempotent: Bool) -> EndAction {
        switch end {
        case .complete: return answerComplete()
        case .broken(let error, let resend):
            // The server may have counted it as an attempt.
            let canResend = canReplay && resend.allows(isIdempotent: isIdempotent && tried.isEmpty)
            guard case .sending = state, canResend, resends < Self.maxResends else { return endFailed(error) }
            resends += 1
            return .send
        case .withdrawn(let error):
            guard withdrawals < Self.maxWithdrawals else { return endFailed(error) }
            withdrawals += 1
            return sendOtherwise(canReplay: canReplay)
        case .lost(let error): return endFailed(error)
        case .expectationRefused:
            expectsContinue = false
            return sendOtherwise(canReplay: canReplay)
        case .unbound:
            // The credential was not checked, so nothing is known about it.
            tried.recordAll(.undecided)
            omitsConnectionCredential = true
            return sendOtherwise(canReplay: canReplay)
        }
    }

    /// Sends the request in another form, because the upstream did not accept the present one.
    private mutating func sendOtherwise(canReplay: Bool) -> EndAction {
        guard case .sending = state else { return misused("transferEnded", .wait) }
        return canReplay ? .send : endFailed(.bodyNotReplayable)
    }

    /// Continues after a complete answer whose transfer has ended or will be ended.
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
        case .examining, .sending:
            // libcurl reported completion without a head, which HTTP does not allow.
            return endFailed(.answerWithoutHead)
        case .ended, .holding, .idle, .looking, .reading, .waiting:
            return misused("answerComplete", .wait)
        }
    }

    private mutating func endFailed(_ error: ExchangeError) -> EndAction { failed(error).afterTransfer }

    /// Ends the exchange: its transfer broke, a time limit passed, or a session is unusable.
    package mutating func failed(_ error: ExchangeError) -> BreakAction {
        switch state {
        case .ended: return misused("failed", .wait)
        case .passing:
            end()
            return .truncate(error)
        case .finishing:
            // The caller has its answer; the fate of the remaining body does not change it.
            end()
            return .finish
        case .holding, .idle, .examining, .looking, .reading, .sending, .settling, .waiting:
            end(error.kind == .upstreamTimeout ? .timedOut : .lost)
            return .fail(error)
        }
    }

    /// Ends the exchange, because the caller went away.
    package mutating func cancelled() {
        guard !state.hasEnded else { return misused("cancelled", ()) }
        end(.abandoned)
    }

    /// Returns the meaning of the expired timer.
    package mutating func timerExpired() -> TimerAction {
        switch state {
        case .ended: misused("timerExpired", .wait)
        case .reading: .readBody
        case .examining: .examineBody
        case .holding: .keepSession
        case .looking: .endLook
        case .waiting: .timeOut(isWaiting: true)
        case .finishing, .idle, .passing, .sending, .settling: .timeOut(isWaiting: false)
        }
    }

    private mutating func end(_ trial: UnansweredTrial? = nil) {
        state = .ended
        tried.recordEnd(trial)
        conclude(.failed)
    }

    /// Concludes the open challenge, if any, with `outcome`.
    mutating func conclude(_ outcome: ChallengeCount.Outcome) {
        guard let slot = challengedSlot else { return }
        challengedSlot = nil
        concluded = ConcludedChallenge(slot: slot, outcome: outcome)
    }

    mutating func misused<Action>(_ event: StaticString, _ nothing: Action) -> Action {
        misuses += 1
        assert(!trapsMisuse, "ExchangeMachine: \(event) is not allowed now")
        return nothing
    }
}
