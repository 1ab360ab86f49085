// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An account at a server, and the daemon's use of it: the judge of rules 1, 3 and 6.
final class Account {
    /// The knowledge of a value that the daemon has sent.
    private struct Record {
        var attempts = 0
        /// Rejections that the daemon has, since the last acceptance.
        var rejections = 0
        /// Attempts whose judgement the daemon cannot know.
        var excuses = 0
        /// These, also of the time before the last latch.
        var allExcuses = 0
        var isAccepted = false
        /// True if the daemon takes it as accepted.
        var isTakenAsGood = false
        /// True if it was accepted, and a latch has closed for it since.
        var isRejected = false
        /// True if the daemon may take the value as accepted, rightly or not: an address without a challenge accepts
        /// anything.
        var mayBeGood = false
        /// True if the server has refused it, anywhere.
        var isRefused = false
        var underWay = 0
        /// The time at which it was last sent, in ms since 1970.
        var lastSent: Int64 = 0
        /// The step from which on attempts count.
        var countedFrom = 0
        /// The time of the last refusal, in ms since 1970.
        var refusedAt: Int64?
        /// The time before which a locked account is left alone, in ms since 1970.
        var lockedUntil: Int64 = 0
    }

    /// The longest time for which a request of a login is under way, in ms.
    private static let wayOfRequest: Int64 = 60_000
    /// The time in ms after which a request may have been given up.
    private static let wayOfLateRequest: Int64 = 4_000
    /// The time after which a wrong value may be tried again, in ms; `nil` for never (`retry-rejected`).
    let retryRejected: Int64?
    /// The shortest time that a locked account is left alone, in ms.
    private static let shortestLock: Int64 = 60_000
    /// The number of challenges that send the credential: each may find out by itself that a value is wrong.
    var challenges = 1
    /// True if a value was sent to an address that does not ask for it: then its acceptance proves nothing.
    private(set) var wasSentUnasked = false

    let simulation: Simulation
    /// The name of the challenge and of its credential.
    let name: String
    /// The value that the server accepts.
    private(set) var right: String
    /// The value in the daemon's store; `nil` if there is none.
    var stored: String? { didSet { simulation.attempts.pauseEnds(of: name) } }
    /// The number of logins that the server has accepted.
    private(set) var logins = 0
    /// The number of sessions that the server has ended.
    var ends = 0 {
        didSet {
            lastEnd = simulation.now
            simulation.sessions.ended(name)
        }
    }
    /// The time of the last of these, in ms since 1970.
    private(set) var lastEnd: Int64 = 0
    /// The time of the last mistake of the server in a login, in ms since 1970.
    private(set) var lastDisturbance: Int64 = 0
    /// The time at which the server last refused a wrong value, in ms since 1970.
    private(set) var lastRefusal: Int64 = 0
    /// True if no login serves any request.
    var isNeverWell = false
    /// True if the present process has logged in.
    var hasLoggedIn = false
    /// True if the present process has the answer to the right value.
    var hasAnswered = false
    /// Number of reasons for one more login: sessions that the daemon may have lost, or wants again.
    var reasons = 1
    /// The daemon's checks of a session that had no usable answer.
    private var failedLooks = 0
    /// The time of the last of these, in ms since 1970.
    private(set) var lastFailedLook: Int64 = 0
    private var logs = 0
    /// The number of logins that the server had accepted when the last one began.
    private var logsBefore = 0
    private var lookups: [String: Int64] = [:]
    /// The time at which an operator last had the daemon drop the session, in ms since 1970.
    private(set) var lastDrop: Int64 = 0
    /// True if the server has forgotten a session during its login, which looks like a password that was never right.
    var isMistaken = false
    /// The time at which the server last got another value, in ms since 1970.
    private(set) var lastChange: Int64 = 0
    /// True if the store ever had another value than the right one.
    private(set) var wasEverWrong = false
    /// True if attempts with the value are sent on requests of callers, one at first and any number once it is
    /// accepted.
    let ridesOnRequests: Bool
    private var records: [String: Record] = [:]
    /// The step in which an operator has opened the latches last.
    private var lastUnlatch = 0
    /// All values that it ever had, or the store.
    private(set) var values: [String] = []

    init(_ name: String, ridesOnRequests: Bool, in simulation: Simulation) {
        self.simulation = simulation
        self.name = name
        self.ridesOnRequests = ridesOnRequests
        retryRejected = simulation.chance.oneIn(2) ? 60_000 : nil
        right = ""
        right = makeValue()
        stored = right
    }

    /// Returns a new value; every secret contains the mark.
    func makeValue() -> String {
        values.append("\(Simulation.secretMark)\(name)v\(values.count + 1)")
        return values[values.count - 1]
    }

    /// True if the store has the value that the server accepts.
    var isRight: Bool { stored == right }

    /// Notes that the daemon takes the value as accepted that it has looked up: one of the last.
    func isTakenAsGood() {
        for value in simulation.logins.recentValues(of: name) where records[value]?.mayBeGood == true {
            records[value]?.isTakenAsGood = true
            records[value]?.isRejected = false
            simulation.attempts.accepted(value)
        }
    }

    /// Records that a value was sent to an address that does not ask for it.
    func isSentUnasked(_ value: String) {
        wasSentUnasked = true
        records[value, default: Record()].mayBeGood = true
    }

    /// Returns true if the daemon takes the value as accepted, by its own reports.
    func isKnownAsGood(_ value: String) -> Bool { records[value]?.isTakenAsGood ?? false }

    /// Returns true if the server has refused the value.
    func isRefused(_ value: String) -> Bool { records[value]?.isRefused ?? false }

    /// Records that the server has refused a value, rightly or not. `isSeen`: the daemon, not another client, got the
    /// refusal.
    func refuses(_ value: String, isSeen: Bool = true) {
        records[value, default: Record()].isRefused = true
        if isSeen { records[value]?.refusedAt = simulation.now }
        if value == right { wasEverWrong = true }
    }

    /// Returns true if the server has accepted the value, and the daemon knows.
    func isAccepted(_ value: String) -> Bool { records[value]?.isAccepted ?? false }

    /// Notes a mistake of the server in a login.
    func disturbed() { lastDisturbance = simulation.now }

    /// Returns true if a login may have met a mistake of the server, at `time` (ms since 1970) or lately before.
    func isDisturbed(since time: Int64) -> Bool {
        isNeverWell || lastDisturbance > 0 && time - lastDisturbance < Self.pause
    }

    /// The longest pause after a failed login, in ms.
    private static let pause: Int64 = 200_000

    /// Returns true if a part of a page may have been held back since that time, because nobody could say whether it is the login
    /// page's.
    func hasHeldBack(since time: Int64) -> Bool { simulation.weather.troublesLooks && lastFailedLook >= time }

    /// Records a check of a session that had no usable answer.
    ///
    /// `isComparison`: the check was one without the session. If it shows no login page, the daemon gives the session
    /// up.
    func lookFailed(isComparison: Bool) {
        failedLooks += 1
        simulation.sessions.lookFailed(name)
        if isComparison { reasons += 1 }
        lastFailedLook = simulation.now
    }

    /// Notes that a login begins.
    func loginBegan() { logsBefore = logs }

    /// Notes the outcome of a login; `isEmpty`: without a session, as nothing was asked.
    ///
    /// One that the server has accepted may fail after that, and is a reason for another. A value that was accepted once may be
    /// refused twice, and is latched then (rule 3).
    func loginEnded(isEstablished: Bool, isEmpty: Bool) {
        if isEstablished { if !isEmpty { hasLoggedIn = hasAnswered } } else if logs > logsBefore { reasons += 1 }
        guard !ridesOnRequests else { return }
        for (value, record) in records where record.isAccepted && record.rejections > mostRejections + record.allExcuses
        {
            if !mayRetry(record), !simulation.disks.contains(where: { $0.closedAtOpening(self) }),
                !simulation.processes.contains(where: { $0.isLatched(self, value, before: simulation.steps + 1) })
            {
                simulation.violated("rule 3: after \(record.rejections) rejections a value of \(name) is not latched")
            }
        }
    }

    /// Counts a login that the server accepts: each has a reason (rule 4). Three looks without an answer are one.
    func checkLogins() {
        logs += 1
        let most = reasons + ends + failedLooks / 3
        if logs > most {
            simulation.violated("rule 4: \(logs) logins of \(name), for which there were \(most) reasons")
        }
    }

    /// The server gets another value; the store follows later, if at all.
    func change() {
        lastChange = simulation.now
        right = makeValue()
        reasons += 1
        wasEverWrong = true
    }

    /// The store gets a value.
    func store(_ value: String?) {
        stored = value
        reasons += 1
        if value != right { wasEverWrong = true }
    }

    /// A latch has closed for a value at `time` (ms since 1970), rightly or not: it does not count as accepted any more.
    func rejected(_ value: String, at time: Int64) {
        records[value]?.refusedAt = time
        records[value]?.isRejected = true
        records[value]?.countedFrom = simulation.steps
        records[value]?.attempts = 1
        // An operator's act that is still on its way to the other nodes opens it again.
        let isOpened = simulation.setting.nodes > 1 && time - simulation.time(of: lastUnlatch) < Self.wayToNodes
        records[value]?.excuses = isOpened ? 1 : 0
        simulation.attempts.isLatched(value)
    }

    /// Notes that the daemon has looked the value up.
    func isLookedUp() { if let stored { lookups[stored] = simulation.now } }

    /// The longest way of an operator's act to all nodes, in ms.
    private static let wayToNodes: Int64 = 1_000

    /// Returns true if the daemon has looked a value up so lately that a login with it may be under way.
    func wasUsed(_ value: String) -> Bool { simulation.now - lookups[value, default: 0] < Self.longestLogin }

    /// The longest time of a login with its waiting, in ms.
    private static let longestLogin: Int64 = 70_000

    /// An operator has opened the latches: each value may be tried again.
    func unlatched() {
        simulation.attempts.pauseEnds(of: name)
        lastUnlatch = simulation.steps
        for value in records.keys {
            records[value]?.attempts = 0
            records[value]?.rejections = 0
            records[value]?.lockedUntil = 0
        }
    }

    /// An operator has had the daemon drop the session.
    func dropped() {
        lastDrop = simulation.now
        reasons += 1
        simulation.sessions.ended(name)
        simulation.attempts.pauseEnds(of: name)
    }

    /// A process has ended: facts that it had not stored are unknown to the next.
    func forgotten() {
        for value in records.keys {
            // Perhaps its rejection is not known any more, and that it was accepted before is.
            records[value]?.isRejected = false
            records[value]?.lockedUntil = 0
        }
        excuse()
        // The rejections of one that was accepted before are two, and both may be forgotten.
        for (value, record) in records where record.isAccepted { records[value]?.allExcuses += mostRejections }
    }

    /// Records that the daemon could not keep what it had learned, or did not have to listen.
    func excuse() { for value in records.keys { excuse(value) } }

    private func excuse(_ value: String) {
        records[value]?.excuses += 1
        records[value]?.allExcuses += 1
    }

    /// Judges a value that was sent at `step` by the challenge of that name.
    func judge(_ value: String, sentAt step: Int, by challenge: String? = nil) -> Attempt {
        let isRight = value == right
        var record = records[value] ?? Record()
        if mayRetry(record) { (record.attempts, record.rejections) = (0, 0) }
        if record.lockedUntil > simulation.now {
            simulation.violated("rule 3: the account of \(name) is locked, and asked again within a minute")
        } else if record.lockedUntil > 0 {
            record.attempts = 0
        }
        if !isRight, step >= max(lastUnlatch, record.countedFrom) { record.attempts += 1 }
        record.underWay += 1
        // A login or a request that took too long may have left one on its way.
        let isAlone =
            record.underWay == 1 || isManifold || simulation.now - simulation.time(of: step) >= Self.wayOfLateRequest
            || simulation.logins.wasLate(challenge ?? name, since: simulation.now - Self.wayOfRequest)
            || isSecondTrial(record, sentAt: step)
        record.lastSent = simulation.time(of: step)
        if !isAlone {
            if !record.isAccepted, !record.isTakenAsGood {
                simulation.violated("rule 1: \(record.underWay) attempts with a new value of \(name) at once")
            } else if !ridesOnRequests {
                simulation.violated("rule 1: \(record.underWay) logins of \(name) at once")
            }
        }
        let isNew = !record.isAccepted && !record.isTakenAsGood || record.isRejected
        if isNew, !isRight, record.attempts > challenges + record.excuses {
            simulation.violated(
                "rule 3: \(record.attempts) attempts with the wrong value of \(name), \(record.excuses) of them lost")
        }
        if !isNew, !ridesOnRequests, !isRight, record.rejections > mostRejections + record.allExcuses {
            simulation.violated("rule 3: a value of \(name) is sent after \(record.rejections) rejections")
        }
        simulation.attempts.arrives(value, of: self, sentAt: step, isAlone: isAlone)
        let isLatched = simulation.processes.contains {
            $0.isLatched(self, value, by: challenge, since: lastUnlatch, before: step)
        }
        if isLatched {
            simulation.violated("rule 3: a latched value of \(name) is sent")
        }
        if isRight {
            record.mayBeGood = true
        } else {
            record.isRefused = true
            record.refusedAt = simulation.now
            lastRefusal = simulation.now
        }
        records[value] = record
        if isRight { logins += 1 }
        return Attempt(self, value: value, isRight: isRight, sentAt: step)
    }

    /// Returns true if a request tries the value because another one has had no answer for 2 s (rule 4).
    private func isSecondTrial(_ record: Record, sentAt step: Int) -> Bool {
        ridesOnRequests && record.underWay <= 2 && simulation.time(of: step) - record.lastSent >= AttemptWatch.silence
    }

    /// True if each session has a login of its own, unknown to the other nodes.
    private var isManifold: Bool {
        simulation.setting.nodes > 1 && simulation.protection(ofLogin: name)?.hasOneSession == false
    }

    /// Returns true if a wrong value may be tried again by now.
    private func mayRetry(_ record: Record) -> Bool {
        guard let retryRejected, let refusedAt = record.refusedAt else { return false }
        return simulation.now - refusedAt >= retryRejected
    }

    /// The most rejections of a value that was accepted before its last one: each challenge may report twice.
    private var mostRejections: Int { 2 * challenges - 1 }

    // MARK: The ends of attempts

    /// Notes that the daemon has the judgement.
    func judged(_ attempt: Attempt) {
        records[attempt.value]?.underWay -= 1
        if attempt.isRight, !attempt.locks {
            records[attempt.value]?.isAccepted = true
            records[attempt.value]?.isRejected = false
        }
        if attempt.locks { records[attempt.value]?.lockedUntil = simulation.now + Self.shortestLock }
        simulation.attempts.isJudged(attempt.value, of: self, isRight: attempt.isRight && !attempt.locks)
        guard !attempt.locks else { return }
        guard attempt.isRight else {
            records[attempt.value]?.rejections += 1
            return
        }
        hasAnswered = true
        records[attempt.value]?.rejections = 0
    }

    /// Notes that the resource refuses everybody.
    func passed(_ attempt: Attempt) {
        records[attempt.value]?.underWay -= 1
        records[attempt.value]?.isRefused = true
        simulation.attempts.isMoot(attempt.value)
        // That answer may be lost as well.
        if !ridesOnRequests || simulation.weather.hasFaults { excuse(attempt.value) }
    }

    /// Records that no request waits for the verdict any more.
    func abandoned(_ attempt: Attempt) {
        records[attempt.value]?.underWay -= 1
        excuse(attempt.value)
    }

    /// Notes that the daemon cannot know the judgement.
    func lost(_ attempt: Attempt) {
        abandoned(attempt)
        simulation.attempts.isLost(attempt.value, of: self, sentAt: attempt.sentAt)
    }
}
