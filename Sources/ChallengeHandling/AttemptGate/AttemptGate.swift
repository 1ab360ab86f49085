// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import Secrets

/// Single decision point for sending a credential's value.
///
/// For a refusal, it also gives the reason, the end and the remedy. It is asked twice: an exchange that needs a session calls
/// `requestSession` (log in, wait for the running login, use this session, or refuse), and a login that is about to send a value
/// calls `refusal(_:)`. Both report the result once. No other code remembers that something must not be tried. Its parts:
///
/// - `SessionTable`: one login at a time per key and its siblings, generations, back-off, unverified sessions;
/// - `AttemptRecord`, which is stored: latches, acceptances, steps of one-time passwords;
/// - `SharedLatches`: latches shared with other nodes;
/// - `ResourceRefusals`: resources that refuse a session that works elsewhere;
/// - `RejectedAnswers`: answers that come from no stored credential;
/// - `AttemptRefusal`: a refusal, including kept attempts, with its only wording.
///
/// A value without I/O. Times are in ms since 1970. Changes that must be on disk before a caller is notified are returned as an
/// `AttemptChange`.
package struct AttemptGate<Waiter: Sendable & Equatable>: Sendable {
    /// Sessions and running logins.
    package var sessions: SessionTable<Waiter>
    /// State that survives restarts.
    package private(set) var record: AttemptRecord
    /// Latches shared between nodes.
    package var shared = SharedLatches()
    /// Resources that refuse sessions.
    package var refusals = ResourceRefusals()
    /// Version of the configuration: submissions with another one begin the budget anew.
    package var configuration = ""
    private var answers = RejectedAnswers()
    /// Acceptances as last stored.
    private var storedAcceptances: AcceptanceTable

    /// Minimum interval between writes of new addresses of one value, in ms.
    private static var rewriteAfter: Int64 { 60_000 }

    /// Creates a gate without sessions, from its stored record.
    package init(limits: SessionLimits = SessionLimits(), record: AttemptRecord = AttemptRecord()) {
        sessions = SessionTable(limits: limits)
        self.record = record
        storedAcceptances = record.acceptances
    }

    /// Merges the stored record, which includes changes of other processes.
    ///
    /// `changes` were made since then and are not stored yet.
    package mutating func merge(_ stored: AttemptRecord, then changes: [AttemptChange] = []) {
        record.merge(stored, then: changes)
        storedAcceptances = stored.acceptances
    }
}

// Sessions.
extension AttemptGate {
    /// Ends the login of `key`, and returns the waiters to notify; `chance` is a random number in 0..<1.
    ///
    /// `value`: the value that the session sends, if any. One that a server has accepted where it had asked needs no
    /// trial (CONTRIBUTING, rule 4).
    package mutating func finish(
        _ key: SessionKey, with result: Result<Session, LoginFailure>, sending value: AttemptDigests? = nil, now: Int64,
        chance: Double
    ) -> [(waiter: Waiter, outcome: SessionTable<Waiter>.Outcome)] {
        var isAccepted = false
        if case .success(let session) = result, let use = session.use, let value {
            isAccepted = acceptance(use.key, value)?.wasAsked == true
        }
        return sessions.finish(key, with: result, isAccepted: isAccepted, now: now, chance: chance)
    }

    /// Requests the session of `key` for an exchange.
    ///
    /// `rejected` is the generation that the upstream has just refused. `refusal` is the use that a resource refused:
    /// it leads to one login for this resource, not to a third. `address` as in `SessionTable.request`.
    package mutating func requestSession(
        _ key: SessionKey, rejected: UInt64?, after refusal: RefusedUse? = nil, waiter: Waiter, address: String? = nil,
        now: Int64
    ) -> SessionTable<Waiter>.Answer {
        let answer = sessions.request(key, rejected: rejected, waiter: waiter, address: address, now: now)
        if answer == .logIn, let refusal { refusals.recordLogin(after: refusal, now: now) }
        return answer
    }

    /// Requests the confirmation of a session for an exchange.
    ///
    /// `refusal` is the use that led to it. If a confirmation has found meanwhile that the refusal concerns the resource, no other
    /// follows. This is asked in the same change: between two changes, another worker may end that confirmation.
    package mutating func requestConfirmation(
        of key: SessionKey, generation: UInt64, after refusal: RefusedUse?, waiter: Waiter, now: Int64
    ) -> SessionTable<Waiter>.ConfirmationAnswer {
        if let refusal, passesChallenge(at: refusal.key, generation: refusal.generation, now: now) { return .keep }
        return sessions.requestConfirmation(of: key, generation: generation, waiter: waiter, now: now)
    }

    /// Ends the confirmation of a session, and returns the waiters to notify.
    ///
    /// `refusal` is the use that led to it. If the session works, the refusal concerns the resource, for all that wait and all that
    /// come: no other confirmation follows for it.
    package mutating func confirmSession(
        _ key: SessionKey, generation: UInt64, _ confirmation: SessionConfirmation, after refusal: RefusedUse?,
        now: Int64
    ) -> [(waiter: Waiter, outcome: SessionTable<Waiter>.Outcome)] {
        let outcomes = sessions.confirm(key, generation: generation, confirmation, now: now)
        if confirmation == .stillGood, let refusal, sessions.held(key)?.generation == generation {
            refusals.recordRefusal(refusal, now: now)
        }
        return outcomes
    }

    /// Returns true if a challenge at `resource` must be passed to the caller.
    ///
    /// `generation` is that of the request's session, 0 without one. A request that was sent without a session while one was being
    /// established or confirmed is repeated with the held session. The refusal of a credential that was not accepted since its
    /// login is examined, because a wrong value would otherwise be sent again and again to a resource that refused the previous one.
    package mutating func passesChallenge(at resource: ResourceKey, generation: UInt64, now: Int64) -> Bool {
        guard refusals.passesChallenge(at: resource, generation: generation, now: now) else { return false }
        return generation == 0
            ? !sessions.hasSession(for: resource.session)
            : !sessions.lacksAcceptance(resource.session, generation: generation)
    }
}

// Values.
extension AttemptGate {
    /// Returns the reason why a value must not be sent; see `AttemptControl.refusal(of:remaining:keeping:now:)`.
    package func refusal(
        _ key: LatchKey, _ value: AttemptDigests, remaining: SecurityCheckChallenge.RemainingAttempts = .unknown,
        keeping: Int = 0, now: Int64
    ) -> AttemptRefusal? {
        if let latch = record.latches.closedLatch(key, digest: value.own, now: now) ?? shared.latch(value, now: now) {
            return AttemptRefusal(.latched(latch), key)
        }
        return remaining.isKept(by: keeping) ? AttemptRefusal(.attemptsKept(remaining, keeping: keeping), key) : nil
    }

    /// Records the current value of the credential of `key`, for the list of other nodes' latches.
    package mutating func recordValue(_ value: AttemptDigests, of key: LatchKey) { shared.recordValue(value, of: key) }

    /// Returns the acceptance of a value, if there is one.
    package func acceptance(_ key: LatchKey, _ value: AttemptDigests) -> Acceptance? {
        record.acceptances.acceptance(key, digest: value.own)
    }

    /// Returns the pause of a value that was submitted without a clear outcome; see `AttemptControl.pause(of:now:)`.
    package func pause(_ key: LatchKey, _ value: AttemptDigests, now: Int64) -> AttemptRefusal? {
        guard acceptance(key, value) == nil, let count = record.submissions.submissions(key, digest: value.own),
            count.configuration == configuration, count.next > now
        else { return nil }
        return AttemptRefusal(.submitted(count), key)
    }

    /// Counts a submission; see `AttemptControl.recordSubmission(of:isSent:now:)`. Returns the change to store first.
    package mutating func recordSubmission(
        of key: LatchKey, _ value: AttemptDigests, isSent: Bool, now: Int64
    ) -> AttemptChange? {
        guard acceptance(key, value) == nil else { return nil }
        let known = record.submissions.submissions(key, digest: value.own)
            .flatMap { $0.configuration == configuration ? $0 : nil }
        var count =
            known?.adding(at: now)
            ?? SubmissionTable.Count(submissions: 1, last: now, configuration: configuration)
        if !isSent {
            guard let known else { return nil }
            count = SubmissionTable.Count(submissions: known.submissions - 1, last: 0, configuration: configuration)
        }
        let change = AttemptChange.count(key, digest: value.own, count.submissions > 0 ? count : nil)
        record.apply(change)
        return change
    }

    /// Returns the forms with which values of a credential were accepted; see `AttemptControl.acceptedForms(ofCredential:)`.
    package func acceptedForms(ofCredential name: String) -> [(key: LatchKey, form: AcceptedForm)] {
        record.acceptances.forms(ofCredential: name)
    }

    /// Records the outcome of sending a value, and returns the change to store before a caller is notified.
    package mutating func record(
        _ outcome: AttemptOutcome, of key: LatchKey, _ value: AttemptDigests
    ) -> AttemptChange? {
        let digest = value.own
        let change: AttemptChange
        switch outcome {
        case .accepted(let acceptance): change = .accept(key, digest: digest, acceptance)
        case .forbidden:
            guard acceptance(key, value) != nil else { return nil }
            change = .withdraw(key, digest: digest)
        case .rejected(let latch):
            shared.close(key, value, latch)
            change = .close(key, digest: digest, latch)
        }
        record.apply(change)
        // Stored once per value, then for new addresses, once a minute.
        if case .accepted(let latest) = outcome, let stored = storedAcceptances.acceptance(key, digest: digest) {
            let known = acceptance(key, value) ?? latest
            let isOld = latest.at.saturatingSubtract(stored.at) >= Self.rewriteAfter
            let isMore = isOld && !known.addresses.allSatisfy { stored.has($0) } || stored.form != known.form
            guard isMore || known.wasAsked && !stored.wasAsked else { return nil }
        }
        return change
    }

    /// Merges the records of the session store; a value that another node saw rejected does not count as accepted.
    ///
    /// Returns the challenges whose latches were opened since the last read, and the changes to store.
    package mutating func merge(
        _ attempts: SharedAttempts, now: Int64
    ) -> (opened: Set<String>, changes: [AttemptChange]) {
        let opened = shared.merge(attempts, now: now)
        return (opened, shared.latchedValues(now: now).compactMap { record(.forbidden, of: $0.key, $0.value) })
    }

    /// Uses up a step of a one-time password; see `AttemptControl.use(code:stepEnding:isUsed:now:)`.
    package mutating func use(
        code seed: String, stepEnding end: Int64, isUsed: Bool, now: Int64
    ) -> (usedUntil: Int64?, change: AttemptChange?) {
        var codes = record.codes
        codes.merge(shared.usedCodes)
        codes.removeDistant(now: now)
        if let until = codes.usedUntil(seed, stepEnding: end) { return (until, nil) }
        guard isUsed else { return (nil, nil) }
        let change = AttemptChange.use(seed: seed, end: end, now: now)
        record.apply(change)
        shared.use(seed, stepEnding: end, now: now)
        return (nil, change)
    }
}

// Answers that come from no stored credential.
extension AttemptGate {
    /// Returns the refusal of an answer; see `AttemptControl.refusal(of:to:)`.
    package func refusal(of answer: Secret, to challenge: String) -> AttemptRefusal? {
        answers.contains(answer, to: challenge) ? AttemptRefusal(.answerRejected, challenge: challenge) : nil
    }

    /// Records the outcome of an answer; see `AttemptControl.record(_:to:acceptedAt:)`.
    package mutating func record(_ answer: Secret, to challenge: String, acceptedAt address: WebURL?) {
        if let address {
            answers.accept(answer, to: challenge, at: address)
        } else {
            answers.reject(answer, to: challenge)
        }
    }

    /// Returns the address that accepted an answer; see `AttemptControl.address(accepting:to:)`.
    package func address(accepting answer: Secret, to challenge: String) -> WebURL? {
        answers.address(accepting: answer, to: challenge)
    }
}

// For operators.
extension AttemptGate {
    /// Returns the values that are not sent at `now`, with reasons, without replaced values.
    ///
    /// `isReplaced` returns true if the credential of that name no longer has the value with that digest.
    package func closed(
        now: Int64, isReplaced: (_ digest: [UInt8], _ name: String) -> Bool
    ) -> [ClosedLatch] {
        let own = record.latches.entries.filter {
            $0.latch.isClosed(at: now) && !isReplaced($0.digest, $0.key.credential)
        }
        .map { ClosedLatch($0.latch, challenge: $0.key.challenge, key: $0.key) }
        let challenges = Set(own.map(\.challenge))
        return own + shared.closed(now: now, isReplaced: isReplaced).filter { !challenges.contains($0.challenge) }
    }

    /// Forgets the submissions of a challenge, or of all for nil: its values may be sent at once. Returns the change to store.
    package mutating func renewBudget(of challenge: String?, now: Int64) -> AttemptChange? {
        guard record.submissions.count > 0 else { return nil }
        let change = AttemptChange.renew(challenge: challenge, until: now)
        record.apply(change)
        return change
    }

    /// Opens all latches of a challenge, or of all for nil. Ends the pauses after its failures if one was closed for a present value.
    ///
    /// `isReplaced` is that of `closed`. `now` is in ms since 1970. Returns the opened latches, and the change to store: another
    /// process may have closed a latch that is known only there.
    package mutating func unlatch(
        _ challenge: String?, now: Int64, isReplaced: (_ digest: [UInt8], _ name: String) -> Bool = { _, _ in false }
    ) -> (opened: OpenedLatches, change: AttemptChange) {
        func isMeant(_ name: String) -> Bool { challenge == nil || name == challenge }
        let own = record.latches.entries.count { isMeant($0.key.challenge) && $0.latch.isClosed(at: now) }
        let present = closed(now: now, isReplaced: isReplaced).count { isMeant($0.challenge) }
        // The clock may have been set back since a latch closed.
        let change = AttemptChange.unlatch(
            challenge: challenge, until: max(now, record.latches.entries.last?.latch.closedAt ?? now))
        // A value that waits after an unclear outcome is blocked as well.
        let waiting = record.submissions.waiting(challenge: challenge, at: now)
        record.apply(change)
        let all = max(own, shared.unlatch(challenge))
        let opened = OpenedLatches(
            present: max(present, answers.unlatch(challenge), waiting), earlier: max(0, all &- present))
        // A login that fails for another reason still does.
        if opened.present > 0 { sessions.forgetFailures(of: challenge) }
        return (opened, change)
    }
}

/// Numbers of latches that an operator has opened.
package struct OpenedLatches: Sendable, Equatable {
    /// Latches of present values, and rejected answers: those that blocked a login.
    package var present = 0
    /// Latches of earlier values of the credentials.
    package var earlier = 0

    /// Creates numbers.
    package init(present: Int = 0, earlier: Int = 0) { (self.present, self.earlier) = (present, earlier) }

    /// True if no latch was closed.
    package var isEmpty: Bool { present == 0 && earlier == 0 }

    /// Returns the sums.
    package static func + (left: OpenedLatches, right: OpenedLatches) -> OpenedLatches {
        OpenedLatches(
            present: left.present &+ right.present, earlier: left.earlier &+ right.earlier)
    }
}

/// Latch that is closed now, for an operator.
package struct ClosedLatch: Sendable, Equatable {
    /// Name of the challenge.
    package let challenge: String
    /// The latch.
    package let latch: Latch
    /// Key of the latch; nil if only other nodes have the value.
    package let key: LatchKey?
    /// Source of the latched value, if known.
    package var source: AnsweringSource?

    /// Creates a closed latch.
    package init(_ latch: Latch, challenge: String, key: LatchKey?) {
        self.latch = latch
        self.challenge = challenge
        self.key = key
    }

    /// Refusal of the value by this latch.
    package var refusal: AttemptRefusal {
        var refusal = AttemptRefusal(.latched(latch), challenge: challenge, key: key)
        refusal.source = source
        return refusal
    }
}

/// Rejected and accepted answers of a program's own challenge handlers, made without a stored credential.
///
/// They exist until the end of the process.
struct RejectedAnswers: Sendable {
    /// Maximum of each kind; beyond it the oldest is dropped.
    private static let limit = 256

    private var rejected: [(challenge: String, answer: Secret)] = []
    private var accepted: [(challenge: String, answer: Secret, address: WebURL)] = []

    /// Returns true if `answer` was rejected before.
    func contains(_ answer: Secret, to challenge: String) -> Bool {
        rejected.contains { $0.challenge == challenge && $0.answer == answer }
    }

    /// Records the rejection of `answer`.
    mutating func reject(_ answer: Secret, to challenge: String) {
        accepted.removeAll { $0.challenge == challenge && $0.answer == answer }
        guard !contains(answer, to: challenge) else { return }
        if rejected.count >= Self.limit { rejected.removeFirst() }
        rejected.append((challenge, answer))
    }

    /// Records the acceptance of `answer` at an address that had required one.
    mutating func accept(_ answer: Secret, to challenge: String, at address: WebURL) {
        accepted.removeAll { $0.challenge == challenge && $0.answer == answer }
        if accepted.count >= Self.limit { accepted.removeFirst() }
        accepted.append((challenge, answer, address.withoutQuery))
    }

    /// Returns the address that last accepted `answer`, if any.
    func address(accepting answer: Secret, to challenge: String) -> WebURL? {
        accepted.last { $0.challenge == challenge && $0.answer == answer }?.address
    }

    /// Removes the rejected answers to `challenge`, or all for nil, and returns their number.
    mutating func unlatch(_ challenge: String?) -> Int {
        let before = rejected.count
        rejected.removeAll { challenge == nil || $0.challenge == challenge }
        return before - rejected.count
    }
}
