// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

@testable import ChallengeClient

/// What may follow what, whatever the upstream, the logins and the callers do.
private struct Watch {
    var sends = 0
    var deliveries = 0
    var terminals = 0
    /// True while a transfer carries the request and its answer is not over.
    var isRunning = false
    /// The unverified sessions that are tried and not judged.
    var tried: Set<Int> = []

    mutating func send() {
        #expect(deliveries == 0, "sent again after an answer had gone out")
        #expect(!isRunning, "sent again before the answer was complete")
        sends += 1
        isRunning = true
    }

    mutating func deliver() {
        #expect(isRunning, "delivered without a transfer")
        deliveries += 1
    }

    mutating func end(delivered: Int) {
        #expect(deliveries == delivered, "ended as what it is not")
        terminals += 1
        isRunning = false
    }

    func hold() {
        #expect(deliveries <= 1)
        #expect(terminals <= 1)
        // One at the beginning, one per round and per conflict, and those whose connections had ended.
        #expect(
            sends <= 3 + ExchangeMachine.mostRounds + ExchangeMachine.mostConflicts + ExchangeMachine.mostResends)
    }
}

/// One exchange at the hands of peers that do what a seed says.
private struct Play: ~Copyable {
    var machine = ExchangeMachine(expectsContinue: true)
    var watch = Watch()
    var random: SplitMix
    let lost = ExchangeError(.upstreamUnreachable, detail: "lost")

    init(seed: UInt64) { random = SplitMix(state: seed) }

    mutating func run() {
        perform(machine.start(missing: slot()))
        var steps = 0
        while !machine.state.hasEnded, steps < 400 {
            steps += 1
            step()
            settle()
            watch.hold()
        }
        #expect(steps < 400, "it goes on and on")
        #expect(watch.terminals == 1)
        #expect(watch.tried.isEmpty, "a session that was tried is never judged")
        let (rounds, misuses) = (machine.rounds, machine.misuses)
        #expect(rounds <= ExchangeMachine.mostRounds)
        #expect(misuses == 0)
    }

    private mutating func settle() {
        while let judgement = machine.takeJudgement() {
            #expect(watch.tried.remove(judgement.slot) != nil, "a session is judged that is not tried")
        }
        _ = machine.takeConcludedChallenge()
    }

    private mutating func step() {
        if chance(40) {
            perform(machine.failed(lost))
            return
        }
        switch machine.state {
        case .idle, .ended: break
        case .waiting(let slot): answerLogin(slot)
        case .reading: read()
        case .sending: answer()
        case .looking: perform(machine.headReceived(answer(withBody: true)))
        case .holding(let slot): confirm(slot)
        case .settling:
            if chance(3) {
                let action = machine.swallowed(Int.random(in: 1...100, using: &random), limit: 100)
                // A longer one is cut off.
                if action != .wait { watch.isRunning = false }
                perform(action)
            } else {
                end(chance(10) ? .broken(lost, resend: .always) : .complete)
            }
        case .passing:
            if chance(3) { perform(machine.answerWhole(isRefusal: chance(2))) } else { end(.complete) }
        case .finishing: end(chance(3) ? .broken(lost, resend: .never) : .complete)
        }
    }

    private mutating func answerLogin(_ slot: Int) {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: perform(machine.sessionFailed(lost))
        case 1:
            // As the driver does, which asks at most once before it knows more.
            if chance(2) { perform(machine.askAgain()) }
        case 2...4:
            watch.tried.insert(slot)
            perform(machine.sessionReady(.init(isNew: true, isUnverified: true), missing: other(than: slot)))
        case 5: perform(machine.sessionReady(.init(isNew: true, isHidden: chance(2)), missing: self.slot()))
        default: perform(machine.sessionReady(.init(isNew: chance(2)), missing: other(than: slot)))
        }
    }

    private mutating func read() {
        switch machine.bodyRead([.done, .goOn, .hungry, .lost][Int.random(in: 0..<4, using: &random)]) {
        case .refuse: perform(machine.failed(.bodyNotReplayable))
        case .askCaller, .readOn, .send, .wait: break
        }
    }

    private mutating func answer() {
        switch Int.random(in: 0..<12, using: &random) {
        case 0 where watch.sends == 1: perform(machine.switched())
        case 1: end(.broken(lost, resend: .ifIdempotent))
        case 2: end(.expectationRefused)
        case 3: end(.unbound)
        case 4: end(.lost(lost))
        case 5: end(.complete)
        case 6:
            let (wasContinued, hasWaited) = (chance(2), chance(2))
            _ = machine.bodyIsTaken(wasContinued: wasContinued, hasWaited: hasWaited)
        default: perform(machine.headReceived(answer(withBody: false)))
        }
    }

    /// The answer of a server that is hardly ever content.
    private mutating func answer(withBody: Bool) -> ExaminedAnswer {
        let challenges: [Challenge] = [
            .pass, .replay, .replay, .stale, .needsBody, .refused, .challenged(), .challenged(), .challenged(),
        ]
        var answer = ExaminedAnswer(
            challenges[Int.random(in: 0..<challenges.count, using: &random)],
            slot: Int.random(in: 0..<3, using: &random),
            status: [200, 401, 503][Int.random(in: 0..<3, using: &random)])
        answer.mayRepeat = chance(2)
        answer.isKnownRefusal = chance(9)
        answer.carriesConfirmable = chance(2)
        answer.carriesSpendable = chance(4)
        answer.isHidden = chance(4)
        answer.bindsConnection = chance(4)
        answer.canReplay = !chance(8)
        return answer
    }

    private mutating func confirm(_ slot: Int) {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            machine.confirmationIsAwaited()
            watch.tried.remove(slot)
        case 1: perform(machine.sessionKept())
        case 2: perform(machine.sessionRejected(lost))
        default: perform(machine.sessionOver(canReplay: !chance(4)))
        }
    }

    private mutating func end(_ end: ExchangeMachine.TransferEnd) {
        let wasSending = machine.state == .sending
        watch.isRunning = false
        let action = machine.transferEnded(end, canReplay: !chance(6), isIdempotent: chance(2))
        if action == .send, !wasSending, end != .complete { Issue.record("sent again in the middle of an answer") }
        perform(action)
    }

    // MARK: Actions

    private mutating func perform(_ action: ExchangeMachine.BeginAction) {
        switch action {
        case .fail: watch.end(delivered: 0)
        case .logIn, .wait: break
        case .send: send()
        }
    }

    private mutating func send() {
        watch.send()
        if chance(6) { machine.bodyIsUnread() } else { machine.requestIsSent() }
    }

    private mutating func perform(_ action: ExchangeMachine.AnswerAction) {
        switch action {
        case .deliver: watch.deliver()
        case .giveUp, .handOver: watch.end(delivered: 0)
        case .confirm, .discard, .look, .wait: break
        }
    }

    private mutating func perform(_ action: ExchangeMachine.EndAction) {
        switch action {
        case .complete: #expect(watch.deliveries == 1, "completed a response that had not begun")
        case .fail: watch.end(delivered: 0)
        case .finish, .truncate: watch.end(delivered: 1)
        case .logIn: watch.isRunning = false
        case .send: send()
        case .wait: break
        }
    }

    private mutating func perform(_ action: ExchangeMachine.BreakAction) {
        switch action {
        case .fail: watch.end(delivered: 0)
        case .finish, .truncate: watch.end(delivered: 1)
        case .wait: break
        }
    }

    // MARK: Chance

    /// True once in `count` times.
    private mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    private mutating func slot() -> Int? { chance(2) ? Int.random(in: 0..<3, using: &random) : nil }

    /// Another slot that is missing as well; none that is tried already, as the driver leaves those out.
    private mutating func other(than slot: Int) -> Int? {
        guard let other = self.slot(), other != slot, !watch.tried.contains(other) else { return nil }
        return other
    }
}

@Suite("The course of an exchange, whatever happens")
struct ExchangeMachineModelTests {
    @Test("no sequence of events breaks a rule, and each comes to an end", arguments: 0..<40)
    func anySequence(seed: UInt64) {
        for round in 0..<300 {
            var play = Play(seed: seed &* 1_000_003 &+ UInt64(round))
            play.run()
        }
    }
}
