// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

@testable import ChallengeClient

private typealias Machine = ExchangeMachine

@Suite("The course of an exchange")
struct ExchangeMachineTests {
    private let lost = ExchangeError(.upstreamUnreachable, detail: "lost")

    @Test("an answer that is not a challenge passes, and verifies the sessions")
    func passes() {
        var machine = Machine()
        expect(machine.start(missing: nil), .send)
        expect(machine.head(.pass), .deliver(verifiesSessions: true))
        expect(machine.complete(), .finish)
        expect(machine.state, .ended)
    }

    @Test("an answer of a server in trouble passes, and verifies no session", arguments: [408, 429, 500, 503])
    func trouble(status: Int) {
        var machine = Machine()
        _ = machine.start(missing: nil)
        expect(machine.head(.pass, status: status), .deliver(verifiesSessions: false))
    }

    @Test("a switch to another protocol is the end of the exchange")
    func switches() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        expect(machine.switched(), .handOver)
        expect(machine.state, .ended)
    }

    @Test("a request that may be sent again survives some connections that end before its answer")
    func connectionEnded() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        for _ in 0..<Machine.maxResends { expect(machine.ended(.broken(lost, resend: .always)), .send) }
        expect(machine.ended(.broken(lost, resend: .always)), .fail(lost))
    }

    @Test("a request is sent in the end, however often its sessions end before that, unless it never comes to it")
    func withdrawn() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        for _ in 0..<Machine.maxWithdrawals { expect(machine.ended(.withdrawn(.outrun)), .send) }
        // Withdrawn sessions do not count as connections that ended.
        for _ in 0..<Machine.maxResends { expect(machine.ended(.broken(lost, resend: .always)), .send) }
        expect(machine.ended(.withdrawn(.outrun)), .fail(.outrun))
    }

    @Test("a request goes again after a lost connection only where that does no harm and its body is held")
    func resends() {
        let cases: [(FailureMeaning.Resend, canReplay: Bool, isIdempotent: Bool, Bool)] = [
            (.always, true, false, true), (.always, false, true, false), (.ifIdempotent, true, true, true),
            (.ifIdempotent, true, false, false), (.ifIdempotent, false, true, false), (.never, true, true, false),
        ]
        for (resend, canReplay, isIdempotent, goesAgain) in cases {
            var machine = Machine()
            _ = machine.start(missing: nil)
            let action = machine.transferEnded(
                .broken(lost, resend: resend), canReplay: canReplay, isIdempotent: isIdempotent)
            expect(action, goesAgain ? .send : .fail(lost), "\(resend), \(canReplay), \(isIdempotent)")
        }
    }

    @Test("an answer or a body that is of no use fails the exchange, however harmless its request")
    func useless() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        expect(machine.ended(.lost(.bodyLost)), .fail(.bodyLost))
    }

    @Test("a challenge is read to its end, answered, and the request is sent again")
    func challenged() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        expect(machine.head(.challenged()), .discard)
        expect(machine.complete(), .logIn(slot: 0))
        expect(machine.ready(), .send)
        expect(machine.takeConcludedChallenge(), .init(slot: 0, outcome: .answered))
        expect(machine.head(.pass), .deliver(verifiesSessions: true))
        expect(machine.takeConcludedChallenge(), nil)
    }

    @Test(
        "a stale session leads to a new login, and counts as new only if the server says nothing else")
    func stale() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        for mayRepeat in [false, true] {
            expect(machine.head(.stale, slot: 1) { $0.mayRepeat = mayRepeat }, .discard)
            expect(machine.complete(), .logIn(slot: 1))
            expect(machine.ready(), .send)
        }
        expect(machine.head(.stale, slot: 1), .deliver(verifiesSessions: false))
        expect(machine.takeConcludedChallenge(), .init(slot: 1, outcome: .passed))
    }

    @Test("an answer is examined once: what its beginning leaves open passes")
    func looks() {
        for isChallenge in [true, false] {
            var machine = Machine()
            _ = machine.start(missing: nil)
            expect(machine.head(.needsBody), .examineBody)
            expect(machine.state, .examining)
            if isChallenge {
                expect(machine.head(.challenged(), slot: 1), .discard)
                expect(machine.complete(), .logIn(slot: 1))
            } else {
                expect(machine.head(.needsBody), .deliver(verifiesSessions: false))
            }
        }
    }

    @Test("a connection lost in the middle of a challenge is not followed by a replay")
    func lostWhileSettling() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        _ = machine.head(.challenged())
        expect(machine.ended(.broken(lost, resend: .always)), .fail(lost))
        expect(machine.takeConcludedChallenge(), .init(slot: 0, outcome: .failed))
    }

    @Test("a refusal in spite of a session just established goes to the caller")
    func refusedAfterLogin() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        machine.goRound()
        expect(machine.head(.challenged()), .deliver(verifiesSessions: false))
    }

    @Test("a session that another exchange had established does not count as new")
    func olderSession() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        machine.goRound(isNew: false)
        expect(machine.head(.challenged()), .discard)
    }

    @Test("a session for a larger scope that another exchange had established does not count as new")
    func olderSessionOfLargerScope() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        machine.goRound()
        machine.goRound(mayRepeat: true, isNew: false)
        expect(machine.head(.challenged()), .discard)
    }

    @Test("a scope that grows with every answer ends after eight rounds")
    func endlessScopes() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        for _ in 0..<Machine.maxRounds { machine.goRound(mayRepeat: true) }
        expect(machine.head(.challenged()) { $0.mayRepeat = true }, .deliver(verifiesSessions: false))
        expect(machine.rounds, Machine.maxRounds)
    }

    @Test("seven conflicts are sent again, the eighth goes to the caller")
    func conflicts() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        for _ in 0..<Machine.maxConflicts {
            expect(machine.head(.replay), .discard)
            expect(machine.complete(), .send)
        }
        expect(machine.head(.replay), .deliver(verifiesSessions: false))
    }

    @Test("a conflict for a body that is no longer held goes to the caller")
    func conflictUnreplayable() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        expect(machine.head(.replay) { $0.canReplay = false }, .deliver(verifiesSessions: false))
    }

    @Test("a challenge for a body that is no longer held ends the exchange, and names the session to establish")
    func notReplayable() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        expect(machine.head(.challenged(), slot: 3) { $0.canReplay = false }, .giveUp(slot: 3))
        expect(machine.takeConcludedChallenge(), .init(slot: 3, outcome: .notReplayable))
        expect(machine.state, .ended)
    }

    @Test("sessions needed first are established one after the other before anything is sent")
    func ahead() {
        var machine = Machine()
        expect(machine.start(missing: 0), .logIn(slot: 0))
        expect(machine.ready(missing: 1), .logIn(slot: 1))
        expect(machine.askAgain(), .logIn(slot: 1))
        expect(machine.ready(), .send)
    }

    @Test("a login that fails ends the exchange with its reason")
    func loginFails() {
        var machine = Machine()
        _ = machine.start(missing: 0)
        expect(machine.sessionFailed(lost), .fail(lost))
        expect(machine.state, .ended)
    }

    @Test("a break after the head truncates, and one after the whole answer changes nothing")
    func truncated() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        _ = machine.head(.pass)
        expect(machine.failed(lost), .truncate(lost))
        var other = Machine()
        _ = other.start(missing: nil)
        _ = other.head(.pass)
        expect(other.answerWhole(isRefusal: false), .complete)
        expect(other.failed(lost), .finish)
    }

    @Test("a whole refusal ends the exchange although the request's body still comes")
    func wholeRefusal() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        _ = machine.head(.pass, status: 413)
        expect(machine.answerWhole(isRefusal: true), .finish)
    }

    @Test("an end without a head is a protocol error")
    func noHead() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        expect(machine.complete(), .fail(.answerWithoutHead))
    }

    @Test("a challenge is read over up to a limit, and a longer one is cut off")
    func swallows() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        _ = machine.head(.challenged(), slot: 2)
        expect(machine.swallowed(60, limit: 100), .wait)
        expect(machine.swallowed(40, limit: 100), .wait)
        expect(machine.swallowed(1, limit: 100), .logIn(slot: 2))
    }

    // MARK: The body

    @Test("a body is read for its digest, in turns and as it comes, before the request is sent")
    func digests() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        machine.bodyIsUnread()
        expect(machine.timerExpired(), .readBody)
        expect(machine.bodyRead(.more), .readMore)
        expect(machine.bodyRead(.needsInput), .askCaller)
        expect(machine.bodyRead(.done), .send)
        expect(machine.state, .sending)
        machine.bodyIsUnread()
        expect(machine.bodyRead(.lost), .refuse)
    }

    @Test("a session that ends before the request is sent with it is established again, but not without end")
    func sessionIsOver() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        machine.bodyIsUnread()
        expect(machine.bodyRead(.done), .send)
        for _ in 0..<Machine.maxRounds {
            expect(machine.sessionIsOver(1, login: "key"), .logIn(slot: 1))
            expect(machine.state, .waiting(slot: 1))
            expect(machine.sessionReady(.init(isNew: false), missing: nil), .send)
        }
        let last = machine.sessionIsOver(1, login: "key")
        guard case .fail = last else { return #expect(Bool(false), "\(last)") }
        expect(machine.state, .ended)
    }

    @Test(
        "an upstream that says 100 honors an expectation, one that lets the wait pass does not, and each is asked once")
    func expectation() {
        let cases: [(asks: Bool, wasContinued: Bool, hasWaited: Bool, Bool?)] = [
            (false, true, true, nil), (true, true, true, true), (true, true, false, true), (true, false, true, false),
            (true, false, false, nil),
        ]
        for (asks, wasContinued, hasWaited, isHonored) in cases {
            var machine = Machine(expectsContinue: asks)
            _ = machine.start(missing: nil)
            machine.requestIsSent()
            expect(machine.bodyIsTaken(wasContinued: wasContinued, hasWaited: hasWaited), isHonored)
            expect(machine.bodyIsTaken(wasContinued: true, hasWaited: true), nil)
        }
    }

    @Test("a request whose expectation is refused goes again without it, if its body is held")
    func expectationRefused() {
        var machine = Machine(expectsContinue: true)
        _ = machine.start(missing: nil)
        expect(machine.ended(.expectationRefused), .send)
        expect(machine.expectsContinue, false)
        var other = Machine(expectsContinue: true)
        _ = other.start(missing: nil)
        let action = other.transferEnded(.expectationRefused, canReplay: false, isIdempotent: true)
        expect(action, .fail(.bodyNotReplayable))
    }
}
