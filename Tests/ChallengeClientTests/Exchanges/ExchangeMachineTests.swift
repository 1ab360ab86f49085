// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Testing

@Suite("The course of an exchange")
struct ExchangeMachineTests {
    var machine = ExchangeMachine()

    @Test("an answer that is no challenge passes")
    mutating func passes() {
        #expect(machine.start(missing: nil) == .send)
        #expect(machine.headReceived(.pass, canReplay: true) == .deliver)
        #expect(machine.answerComplete() == .finish)
        #expect(machine.answerComplete() == .doNothing)
    }

    @Test("a switch to another protocol is the end of the exchange")
    mutating func switches() {
        #expect(machine.switched() == .doNothing)
        _ = machine.start(missing: nil)
        #expect(machine.switched() == .handOver)
        #expect(machine.hasEnded)
        #expect(machine.answerComplete() == .doNothing)
    }

    @Test("a request that may be sent again survives some connections that end before its answer")
    mutating func connectionEnded() {
        let error = ExchangeError(.upstreamUnreachable, detail: "gone")
        var other = machine
        _ = machine.start(missing: nil)
        for _ in 0..<ExchangeMachine.mostResends {
            #expect(machine.connectionEnded(error, canResend: true) == .send)
        }
        #expect(machine.connectionEnded(error, canResend: true) == .fail(error))
        _ = other.start(missing: nil)
        #expect(other.connectionEnded(error, canResend: false) == .fail(error))
        #expect(other.connectionEnded(error, canResend: true) == .doNothing)
    }

    @Test("a challenge is swallowed, answered after its end, and the request is sent again")
    mutating func challenged() {
        _ = machine.start(missing: nil)
        #expect(machine.headReceived(.challenged(), canReplay: true) == .discard)
        #expect(machine.answerComplete() == .win(slot: 0))
        #expect(machine.sessionReady(missing: nil, wonNow: true) == .send)
        #expect(machine.headReceived(.pass, canReplay: true) == .deliver)
    }

    @Test("a session that the server calls too old is won anew, and counts as just won only if nothing else is said")
    mutating func stale() {
        _ = machine.start(missing: nil)
        for mayRepeat in [false, true] {
            #expect(machine.headReceived(.stale, slot: 1, mayRepeat: mayRepeat, canReplay: true) == .discard)
            #expect(machine.answerComplete() == .win(slot: 1))
            #expect(machine.sessionReady(missing: nil, wonNow: true) == .send)
        }
        #expect(machine.headReceived(.stale, slot: 1, canReplay: true) == .deliver)
    }

    @Test("an answer is looked at once: what its beginning leaves open passes")
    mutating func looks() {
        _ = machine.start(missing: nil)
        #expect(machine.headReceived(.needsBody, canReplay: true) == .look)
        #expect(machine.isLooking)
        var other = machine
        #expect(machine.headReceived(.challenged(), slot: 1, canReplay: true) == .discard)
        #expect(machine.answerComplete() == .win(slot: 1))
        #expect(other.headReceived(.needsBody, canReplay: true) == .deliver)
    }

    @Test("a connection lost in the middle of a challenge is not followed by a replay")
    mutating func lostWhileSettling() {
        let lost = ExchangeError(.upstreamUnreachable, detail: "lost")
        _ = machine.start(missing: nil)
        _ = machine.headReceived(.challenged(), canReplay: true)
        #expect(machine.failed(lost) == .fail(lost))
        #expect(machine.sessionReady(missing: nil, wonNow: true) == .doNothing)
    }

    @Test("a refusal in spite of a session just won goes to the caller")
    mutating func refusedAfterWinning() {
        _ = machine.start(missing: nil)
        _ = machine.headReceived(.challenged(), canReplay: true)
        _ = machine.answerComplete()
        _ = machine.sessionReady(missing: nil, wonNow: true)
        #expect(machine.headReceived(.challenged(), canReplay: true) == .deliver)
    }

    @Test("a session that another exchange had won before does not count as just won")
    mutating func olderSession() {
        _ = machine.start(missing: nil)
        _ = machine.headReceived(.challenged(), canReplay: true)
        _ = machine.answerComplete()
        _ = machine.sessionReady(missing: nil, wonNow: false)
        #expect(machine.headReceived(.challenged(), canReplay: true) == .discard)
    }

    @Test("a session for a larger scope that another had won before does not count as just won either")
    mutating func olderSessionOfLargerScope() {
        _ = machine.start(missing: nil)
        _ = machine.headReceived(.challenged(), canReplay: true)
        _ = machine.answerComplete()
        _ = machine.sessionReady(missing: nil, wonNow: true)
        _ = machine.headReceived(.challenged(), mayRepeat: true, canReplay: true)
        _ = machine.answerComplete()
        _ = machine.sessionReady(missing: nil, wonNow: false)
        #expect(machine.headReceived(.challenged(), canReplay: true) == .discard)
    }

    @Test("a scope that grows with every answer ends after eight rounds")
    mutating func endlessScopes() {
        _ = machine.start(missing: nil)
        for _ in 0..<ExchangeMachine.mostRounds {
            #expect(machine.headReceived(.challenged(), mayRepeat: true, canReplay: true) == .discard)
            #expect(machine.answerComplete() == .win(slot: 0))
            #expect(machine.sessionReady(missing: nil, wonNow: true) == .send)
        }
        #expect(machine.headReceived(.challenged(), mayRepeat: true, canReplay: true) == .deliver)
    }

    @Test("seven conflicts are sent again, the eighth goes to the caller")
    mutating func conflicts() {
        _ = machine.start(missing: nil)
        for _ in 0..<7 {
            #expect(machine.headReceived(.replay, canReplay: true) == .discard)
            #expect(machine.answerComplete() == .send)
        }
        #expect(machine.headReceived(.replay, canReplay: true) == .deliver)
    }

    @Test("a challenge for a body that is no longer held fails, and says so")
    mutating func notReplayable() {
        _ = machine.start(missing: nil)
        let action = machine.headReceived(.challenged(), canReplay: false)
        guard case .fail(let error) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(error.kind == .bodyNotReplayable)
        #expect(machine.hasEnded)
    }

    @Test("sessions needed ahead are won one after the other before anything is sent")
    mutating func ahead() {
        #expect(machine.start(missing: 0) == .win(slot: 0))
        #expect(machine.sessionReady(missing: 1, wonNow: true) == .win(slot: 1))
        #expect(machine.sessionReady(missing: nil, wonNow: true) == .send)
    }

    @Test("a login that fails ends the exchange with its reason, once")
    mutating func loginFails() {
        let error = ExchangeError(.loginTimeout, detail: "late")
        _ = machine.start(missing: 0)
        #expect(machine.sessionFailed(error) == .fail(error))
        #expect(machine.sessionFailed(error) == .doNothing)
        #expect(machine.failed(error) == .doNothing)
    }

    @Test("a break after the head truncates")
    mutating func truncated() {
        let error = ExchangeError(.upstreamUnreachable, detail: "lost")
        _ = machine.start(missing: nil)
        _ = machine.headReceived(.pass, canReplay: true)
        #expect(machine.failed(error) == .truncate(error))
    }

    @Test("an end without a head is a protocol error")
    mutating func noHead() {
        _ = machine.start(missing: nil)
        guard case .fail(let error) = machine.answerComplete() else {
            Issue.record("no failure")
            return
        }
        #expect(error.kind == .upstreamProtocol)
    }

    @Test("a session that is hidden again before it could be used is asked for again, at most eight times")
    mutating func hidden() {
        #expect(machine.start(missing: 0) == .win(slot: 0))
        for _ in 0..<ExchangeMachine.mostRounds {
            #expect(machine.sessionReady(missing: 0, wonNow: true, isHidden: true) == .win(slot: 0))
        }
        guard case .fail = machine.sessionReady(missing: 0, wonNow: true, isHidden: true) else {
            Issue.record("it goes on for ever")
            return
        }
    }

    @Test("a session that ends the moment it is won is not won again and again")
    mutating func endedAtOnce() {
        _ = machine.start(missing: 0)
        guard case .fail = machine.sessionReady(missing: 0, wonNow: true) else {
            Issue.record("no failure")
            return
        }
    }
}
