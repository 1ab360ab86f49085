// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import TestSupport
import Testing

/// What may follow what, whatever the events are.
private struct Watch {
    var sends = 0
    var wins = 0
    var conflicts = 0
    var deliveries = 0
    var completions = 0
    var terminals = 0
    /// Whether the running transfer has broken.
    var isBroken = false
    /// Whether the present transfer's head has been swallowed and its end not yet reported.
    var isRunning = false

    mutating func note(_ action: ExchangeMachine.Action, after event: String) {
        #expect(terminals == 0 || action == .doNothing, "an action after the end: \(action) after \(event)")
        switch action {
        case .send:
            #expect(!isBroken, "sent again after a broken transfer")
            sends += 1
            isRunning = true
        case .win: wins += 1
        case .deliver:
            #expect(isRunning, "delivered without a transfer")
            deliveries += 1
        case .handOver:
            #expect(isRunning, "handed over without a transfer")
            #expect(deliveries == 0, "handed over in the middle of a response")
            terminals += 1
            isRunning = false
        case .finish, .fail, .truncate:
            if case .fail = action { #expect(deliveries == 0, "failed after the head had gone out") }
            if case .fail = action {} else { #expect(deliveries == 1, "ended a response that had not begun") }
            terminals += 1
            isRunning = false
        case .complete:
            #expect(deliveries == 1, "completed a response that had not begun")
            completions += 1
        case .confirm, .look: #expect(isRunning, "looked without a transfer")
        case .discard, .doNothing: break
        }
        #expect(completions <= 1)
        #expect(deliveries <= 1)
        #expect(terminals <= 1)
        // One at the beginning, one per round, one per conflict.
        #expect(sends <= 1 + ExchangeMachine.mostRounds + ExchangeMachine.mostConflicts)
    }
}

@Suite("The course of an exchange, whatever happens")
struct ExchangeMachineModelTests {
    private let error = ExchangeError(.upstreamUnreachable, detail: "lost")

    @Test("no sequence of events breaks a rule", arguments: 0..<20)
    func anySequence(seed: UInt64) {
        var random = SplitMix(state: seed)
        for _ in 0..<500 {
            var machine = ExchangeMachine()
            var watch = Watch()
            watch.note(machine.start(missing: slot(&random)), after: "start")
            for _ in 0..<Int.random(in: 1...60, using: &random) { step(&machine, &watch, &random) }
            #expect(machine.roundCount <= ExchangeMachine.mostRounds)
            watch.note(machine.failed(error), after: "deadline")
            #expect(machine.hasEnded)
            #expect(watch.terminals == 1)
        }
    }

    /// Events in a likely order, so that exchanges get far.
    @Test("challenges without end come to an end", arguments: 0..<20)
    func stubbornUpstream(seed: UInt64) {
        var random = SplitMix(state: seed)
        for _ in 0..<200 {
            var machine = ExchangeMachine()
            var watch = Watch()
            var action = machine.start(missing: slot(&random))
            var steps = 0
            while !machine.hasEnded {
                steps += 1
                #expect(steps < 200, "it goes on and on")
                guard steps < 200 else { break }
                watch.note(action, after: "step \(steps)")
                switch action {
                case .win(let slot):
                    let again = Bool.random(using: &random) ? slot + 1 : nil
                    action = machine.sessionReady(
                        missing: watch.wins < 4 ? again : nil, wonNow: Bool.random(using: &random))
                case .confirm:
                    action =
                        Bool.random(using: &random) ? machine.sessionKept() : machine.sessionOver(canReplay: true)
                case .look, .send:
                    action = head(&machine, &random, canReplay: true)
                case .discard, .deliver:
                    action = machine.answerComplete()
                case .complete, .doNothing, .fail, .finish, .handOver, .truncate:
                    Issue.record("stuck at \(action)")
                    return
                }
            }
            #expect(action == .finish)
            #expect(machine.roundCount <= ExchangeMachine.mostRounds)
        }
    }

    @Test("a larger scope's session may be older than the one just won")
    func growth() {
        var machine = ExchangeMachine()
        _ = machine.start(missing: nil)
        _ = machine.headReceived(.challenged(), canReplay: true)
        _ = machine.answerComplete()
        _ = machine.sessionReady(missing: nil, wonNow: true)
        #expect(machine.headReceived(.challenged(), mayRepeat: true, canReplay: true) == .discard)
        _ = machine.answerComplete()
        _ = machine.sessionReady(missing: nil, wonNow: false)
        #expect(machine.headReceived(.challenged(), canReplay: true) == .discard)
    }

    @Test("a conflict for a body that is no longer held goes to the caller")
    func conflictUnreplayable() {
        var machine = ExchangeMachine()
        _ = machine.start(missing: nil)
        #expect(machine.headReceived(.replay, canReplay: false) == .deliver)
    }

    @Test("an answer that is held for a session in doubt is delivered, or sent again once after its login")
    func suspect() {
        var machine = ExchangeMachine()
        _ = machine.start(missing: nil)
        #expect(machine.headReceived(.refused, slot: 1, canReplay: false) == .confirm(slot: 1))
        #expect(machine.isHolding)
        #expect(machine.answerComplete() == .doNothing)
        #expect(machine.sessionKept() == .deliver)
        machine = ExchangeMachine()
        _ = machine.start(missing: nil)
        _ = machine.headReceived(.refused, slot: 1, canReplay: true)
        #expect(machine.sessionOver(canReplay: true) == .discard)
        #expect(machine.answerComplete() == .win(slot: 1))
        #expect(machine.sessionReady(missing: nil, wonNow: true) == .send)
        #expect(machine.headReceived(.challenged(), slot: 1, canReplay: true) == .deliver)
    }

    @Test("a session that ended as soon as it was won fails the exchange")
    func endedAtOnce() {
        var machine = ExchangeMachine()
        _ = machine.start(missing: 2)
        guard case .fail = machine.sessionReady(missing: 2, wonNow: true) else {
            Issue.record("it would be won again and again")
            return
        }
        #expect(machine.hasEnded)
    }

    private func step(_ machine: inout ExchangeMachine, _ watch: inout Watch, _ random: inout SplitMix) {
        switch Int.random(in: 0..<14, using: &random) {
        case 12: watch.note(machine.sessionKept(), after: "kept")
        case 13:
            watch.note(machine.sessionOver(canReplay: Bool.random(using: &random)), after: "over")
        case 0: watch.note(machine.sessionReady(missing: slot(&random), wonNow: true), after: "won")
        case 1: watch.note(machine.sessionReady(missing: slot(&random), wonNow: false), after: "found")
        case 2: watch.note(machine.sessionFailed(error), after: "login failed")
        case 3...7:
            let canReplay = Int.random(in: 0..<8, using: &random) > 0
            watch.note(head(&machine, &random, canReplay: canReplay), after: "head")
        case 8:
            watch.note(machine.answerWhole(isRefusal: Bool.random(using: &random)), after: "whole")
        case 9, 10: watch.note(machine.answerComplete(), after: "complete")
        case 11 where Int.random(in: 0..<4, using: &random) == 0:
            watch.note(machine.switched(), after: "switched")
        default:
            guard Int.random(in: 0..<4, using: &random) == 0 else { return }
            watch.isBroken = true
            watch.note(machine.failed(error), after: "broken")
        }
    }

    private func slot(_ random: inout SplitMix) -> Int? {
        Bool.random(using: &random) ? Int.random(in: 0..<3, using: &random) : nil
    }

    /// The answer of a server that is hardly ever content.
    private func head(
        _ machine: inout ExchangeMachine, _ random: inout SplitMix, canReplay: Bool
    ) -> ExchangeMachine.Action {
        let challenge: Challenge =
            switch Int.random(in: 0..<14, using: &random) {
            case 0: .pass
            case 1...3: .replay
            case 4: .stale
            case 10, 11: .needsBody
            case 12, 13: .refused
            default: .challenged()
            }
        return machine.headReceived(
            challenge, slot: Int.random(in: 0..<3, using: &random), mayRepeat: Bool.random(using: &random),
            canReplay: canReplay)
    }
}
