// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One transmission of a credential's value to a server, until its verdict is known to the daemon or lost.
final class Attempt {
    private unowned let account: Account
    let value: String
    let isRight: Bool
    /// The step in which it was sent.
    let sentAt: Int
    private var isOver = false
    /// The time at which the daemon had the judgement, in ms since 1970; `nil` if it has none.
    private(set) var deliveredAt: Int64?
    /// True if the judgement locks the account.
    var locks = false

    init(_ account: Account, value: String, isRight: Bool, sentAt: Int) {
        self.account = account
        self.value = value
        self.isRight = isRight
        self.sentAt = sentAt
    }

    /// Notes that the daemon has the judgement.
    func isDelivered() {
        end {
            deliveredAt = account.simulation.now
            account.judged(self)
        }
    }

    /// Notes that the daemon does not know the judgement.
    func isLost() { end { account.lost(self) } }

    /// Records that no request has been waiting for the verdict for a while.
    func isAbandoned() { end { account.abandoned(self) } }

    /// Records that the verdict proves nothing: the resource refuses every caller.
    func isMoot() { end { account.passed(self) } }

    private func end(_ body: () -> Void) {
        guard !isOver else { return }
        isOver = true
        body()
    }
}

/// The times at which values are sent: the judge of rule 1 for a value that no server has accepted, and of rule 3 for the pauses after
/// unknown outcomes, or of rule 4 for the number of trials.
final class AttemptWatch {
    private struct Loss {
        var value: String
        var at: Int64
        /// The number of losses in a row.
        var count: Int
    }

    /// The shortest pause after the first unknown outcome in ms: half of a second, and then twice as much each time.
    private static let firstPause: Int64 = 500
    private static let mostDoublings = 6
    /// The time in ms after which another request tries a value whose trial has no answer.
    static let silence: Int64 = 2_000
    /// The most trials without an answer in a minute (rule 4), and one that may have been under way.
    private static let mostTrials = 5
    /// The shortest time limit of a request, in ms.
    private static let shortestLimit: Int64 = 4_000

    private unowned let simulation: Simulation
    /// The step in which the daemon knew that a value is accepted.
    private var acceptances: [String: Int] = [:]
    /// The step of the last end of an attempt with a value.
    private var ends: [String: Int] = [:]
    /// The step in which a latch last closed for a value.
    private var latches: [String: Int] = [:]
    /// The last attempts without a known outcome, by account.
    private var losses: [String: Loss] = [:]
    /// The times of the trials without an answer, by account.
    private var trials: [String: [Int64]] = [:]

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Judges an attempt that reaches a server, sent at `step`; `isAlone`: no other with the value is under way.
    func arrives(_ value: String, of account: Account, sentAt step: Int, isAlone: Bool) {
        // Each challenge may find out by itself that a value is wrong.
        guard account.challenges == 1 else { return }
        let wasAccepted = acceptances[value].map { $0 <= step } ?? false
        // One that was given up may still reach the server.
        let isLate =
            simulation.now - simulation.time(of: step) >= Self.shortestLimit
            || simulation.logins.wasLate(account.name, since: simulation.time(of: step))
        let overlaps = !account.ridesOnRequests && ends[value, default: 0] > step
        if simulation.isStormy, !wasAccepted, !isLate, !isAlone || overlaps {
            simulation.violated("rule 1: a value of \(account.name) that nobody has accepted is sent by two at once")
        }
        // A pause is one of each session.
        guard simulation.protection(ofLogin: account.name)?.hasOneSession == true,
            simulation.challenges(of: account).count == 1
        else { return }
        guard let loss = losses[account.name], loss.value == value else { return }
        if account.ridesOnRequests {
            let sent = simulation.time(of: step)
            let lately = trials[account.name, default: []].filter { $0 <= sent && sent - $0 < 60_000 }
            if !wasAccepted, !isLate, lately.count > Self.mostTrials {
                simulation.violated(
                    "rule 4: a value of \(account.name) is tried after \(lately.count) without an answer")
            }
            return
        }
        let pause = Self.firstPause << Int64(min(loss.count - 1, Self.mostDoublings))
        let passed = simulation.time(of: step) - loss.at
        if passed >= 0, passed < pause {
            simulation.violated(
                "rule 3: a value of \(account.name) is sent \(passed) ms after \(loss.count) attempts without an answer"
            )
        }
    }

    /// True while a value is not to be sent for a moment.
    var isPausing: Bool {
        losses.values.contains { simulation.now - $0.at < Self.firstPause << Int64(min($0.count, Self.mostDoublings)) }
    }

    /// Notes the end of an attempt with a known outcome.
    func isJudged(_ value: String, of account: Account, isRight: Bool) {
        ends[value] = simulation.steps
        losses[account.name] = nil
        if isRight { accepted(value) }
    }

    /// Records the end of an attempt whose outcome proves nothing.
    func isMoot(_ value: String) { ends[value] = simulation.steps }

    /// Notes the end of an attempt, sent at `step`, whose outcome the daemon cannot know.
    func isLost(_ value: String, of account: Account, sentAt step: Int) {
        ends[value] = simulation.steps
        // A head is enough for a verdict, whether or not the body arrives.
        guard latches[value, default: 0] <= step else { return }
        // The daemon has given up before, and the pause began then.
        guard simulation.now - simulation.time(of: step) < Self.shortestLimit else {
            losses[account.name] = nil
            return
        }
        let last = losses[account.name].flatMap { $0.value == value ? $0.count : nil } ?? 0
        trials[account.name, default: []].append(simulation.now)
        let loss = Loss(value: value, at: simulation.now, count: last + 1)
        losses[account.name] = loss
        simulation.tell("the judgement of \(account.name) is lost, \(loss.count) in a row")
    }

    /// Notes that a latch has closed for a value.
    func isLatched(_ value: String) { latches[value] = simulation.steps }

    /// Notes that the daemon takes a value as accepted.
    func accepted(_ value: String) { acceptances[value] = acceptances[value] ?? simulation.steps }

    /// Records that an attempt is allowed, with another value or after an operator's command.
    func pauseEnds(of name: String) {
        losses[name] = nil
        trials[name] = nil
    }

    /// Notes that a process has ended, with its pauses.
    func processEnded() {
        losses = [:]
        trials = [:]
    }
}
