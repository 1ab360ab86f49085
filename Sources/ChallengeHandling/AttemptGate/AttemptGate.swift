// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Secrets

/// The one place that says if a credential's value may be sent, and if not, why, until when, and what opens the way.
///
/// It is asked twice. An exchange that needs a session asks by `ask(for:)`: log in, wait for the login that runs, use this session, or
/// no. A login that is about to send a value asks by `refusal(_:)`. Both tell it once what came of it. Nothing else remembers that
/// something is not to be tried. Its parts:
///
/// - `SessionTable`: one login at a time per key and its siblings, generations, back-off, sessions that nobody has used yet;
/// - `AttemptRecord`, which is kept: latches, marks of acceptance, steps of one-time passwords;
/// - `SharedLatches`: what other nodes were told;
/// - `ResourceRefusals`: resources that refuse a session that serves elsewhere;
/// - `RejectedAnswers`: answers that come from no stored credential;
/// - `AttemptRefusal`: its "no", kept attempts included, in the one wording.
///
/// A value without I/O. Times are milliseconds since 1970. What has to be on disk before anybody is told comes back as an
/// `AttemptChange`.
package struct AttemptGate<Waiter: Sendable & Equatable>: Sendable {
    /// The sessions, and the logins that run.
    package var sessions: SessionTable<Waiter>
    /// The part that is kept across restarts.
    package private(set) var record: AttemptRecord
    /// The latches that nodes share.
    package var shared = SharedLatches()
    /// The resources that refuse sessions.
    package var refusals = ResourceRefusals()
    private var answers = RejectedAnswers()
    /// The marks as they were kept last.
    private var keptMarks: AcceptanceTable

    /// A path of the same value is kept again after an hour at the earliest, in milliseconds.
    private static var rewriteAfter: Int64 { 3_600_000 }

    /// A gate without sessions; `record` is what was kept.
    package init(limits: SessionLimits = SessionLimits(), record: AttemptRecord = AttemptRecord()) {
        sessions = SessionTable(limits: limits)
        self.record = record
        keptMarks = record.acceptances
    }

    /// Takes over what is kept now, other processes' changes included.
    package mutating func merge(_ kept: AttemptRecord, after change: AttemptChange? = nil) {
        record.merge(kept, after: change)
        keptMarks = kept.acceptances
    }
}

// Sessions.
extension AttemptGate {
    /// An exchange needs the session of `key`. `rejected` is the generation that the upstream has just refused; `refusal` the use of it that
    /// a resource refused, which leads to one login there and not to a third.
    package mutating func ask(
        for key: SessionKey, rejected: UInt64?, after refusal: RefusedUse? = nil, waiter: Waiter, now: Int64
    ) -> SessionTable<Waiter>.Answer {
        let answer = sessions.request(key, rejected: rejected, waiter: waiter, now: now)
        if answer == .go, let refusal { refusals.noteLogin(after: refusal, now: now) }
        return answer
    }

    /// Returns whether a challenge at `place`, to a request with the session of `generation` (0: without one), is an answer for the caller.
    ///
    /// A request that went without, as its session was being won or confirmed, goes again with what is held then. The refusal of a session
    /// that nobody has verified is judged: else a wrong value would be sent again and again to a resource that refused the one before.
    package mutating func passes(_ place: ResourceKey, generation: UInt64, now: Int64) -> Bool {
        guard refusals.passes(place, generation: generation, now: now) else { return false }
        return generation == 0
            ? !sessions.isThere(place.session) : !sessions.isUnverified(place.session, generation: generation)
    }
}

// Values.
extension AttemptGate {
    /// Asks if a value may be sent for `key`; see `AttemptControl.refusal(of:remaining:keeping:now:)`.
    package func refusal(
        _ key: LatchKey, _ value: AttemptDigests, remaining: SecurityCheckChallenge.RemainingAttempts = .unknown,
        keeping: Int = 0, now: Int64
    ) -> AttemptRefusal? {
        if let latch = record.latches.closedLatch(key, digest: value.own, now: now) ?? shared.latch(value, now: now) {
            return AttemptRefusal(.latched(latch), key)
        }
        return remaining.isKept(by: keeping) ? AttemptRefusal(.attemptsKept(remaining, keeping: keeping), key) : nil
    }

    /// The credential of `key` has this value here, for what operators see of other nodes' latches.
    package mutating func look(_ key: LatchKey, _ value: AttemptDigests) { shared.look(key, value) }

    /// The mark of a value.
    package func acceptance(_ key: LatchKey, _ value: AttemptDigests) -> Acceptance? {
        record.acceptances.acceptance(key, digest: value.own)
    }

    /// A value was accepted, refused or rejected. Returns what is to be kept before anybody is told.
    package mutating func note(
        _ outcome: AttemptOutcome, _ key: LatchKey, _ value: AttemptDigests
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
        // A mark once for each value; its path when it is an hour old.
        if case .accepted(let mark) = outcome, let kept = keptMarks.acceptance(key, digest: digest) {
            let isOld = mark.at.saturatingSubtract(kept.at) >= Self.rewriteAfter
            guard isOld, kept.path != acceptance(key, value)?.path else { return nil }
        }
        return change
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
    /// See `AttemptControl.refusal(of:to:)`.
    package func refusal(of answer: Secret, to challenge: String) -> AttemptRefusal? {
        answers.contains(answer, to: challenge) ? AttemptRefusal(.answerRejected, challenge: challenge) : nil
    }

    /// See `AttemptControl.note(_:to:acceptedAt:)`.
    package mutating func note(_ answer: Secret, to challenge: String, acceptedAt address: WebURL?) {
        if let address {
            answers.accept(answer, to: challenge, at: address)
        } else {
            answers.reject(answer, to: challenge)
        }
    }

    /// See `AttemptControl.address(accepting:to:)`.
    package func address(accepting answer: Secret, to challenge: String) -> WebURL? {
        answers.address(accepting: answer, to: challenge)
    }
}

// What operators see and do.
extension AttemptGate {
    /// The values that are not sent at `now`, with why; not those that the credentials do not have any more. `isReplaced` says of a value's
    /// digest if the credential of that name has another now.
    package func closed(
        now: Int64, isReplaced: (_ digest: [UInt8], _ name: String) -> Bool
    ) -> [ClosedLatch] {
        let own = record.latches.entries.filter {
            $0.latch.isClosed(at: now) && !isReplaced($0.digest, $0.key.credential)
        }
        .map { ClosedLatch($0.latch, challenge: $0.key.challenge, key: $0.key) }
        let others = shared.closed(now: now, isReplaced: isReplaced).filter { shared in
            !own.contains { $0.challenge == shared.challenge }
        }
        return own + others
    }

    /// An operator opens all latches of a challenge, and ends the pauses after its failures; `nil`: of all challenges. Returns how many
    /// latches there were, and what is to be kept.
    package mutating func unlatch(_ challenge: String?) -> (opened: Int, change: AttemptChange) {
        let before = record.latches.entries.count
        let change = AttemptChange.unlatch(challenge: challenge)
        record.apply(change)
        answers.unlatch(challenge)
        sessions.forgetFailures(of: challenge)
        return (max(before - record.latches.entries.count, shared.unlatch(challenge)), change)
    }
}

/// A latch that is closed now, for an operator.
package struct ClosedLatch: Sendable, Equatable {
    /// The challenge.
    package let challenge: String
    /// The latch.
    package let latch: Latch
    /// The latch's key; `nil` if only other nodes have that value.
    package let key: LatchKey?

    /// A latch.
    package init(_ latch: Latch, challenge: String, key: LatchKey?) {
        self.latch = latch
        self.challenge = challenge
        self.key = key
    }

    /// The gate's answer to whoever would send the value.
    package var refusal: AttemptRefusal { AttemptRefusal(.latched(latch), challenge: challenge, key: key) }
}
