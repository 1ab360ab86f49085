// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import ChallengeClient

@Suite("The trial of a login's User-Agent in the course of an exchange")
struct ExchangeMachineUserAgentTests {
    /// Returns an exchange whose session of slot 0 was established a moment ago, and is used.
    private func established() -> ExchangeMachine {
        var machine = ExchangeMachine()
        expect(machine.start(missing: 0), .logIn(slot: 0))
        expect(machine.sessionReady(.init(isNew: true), missing: nil), .send)
        machine.requestIsSent()
        return machine
    }

    private func challenge(mayBeBound: Bool = true, canReplay: Bool = true) -> ExaminedAnswer {
        var answer = ExaminedAnswer(.challenged(), slot: 0, status: 302)
        (answer.mayBeBound, answer.canReplay, answer.carriesConfirmable) = (mayBeBound, canReplay, true)
        return answer
    }

    @Test("a challenge right after a login leads to one request under the login's, and what it accepts is delivered")
    func accepted() {
        var machine = established()
        expect(machine.headReceived(challenge()), .discard)
        #expect(machine.userAgent == .sent(slot: 0))
        expect(machine.transferEnded(.complete, canReplay: true, isIdempotent: true), .send)
        expect(machine.headReceived(ExaminedAnswer(.pass)), .deliver(verifiesSessions: true))
    }

    @Test("a session that has ended by then is replaced once, and the next refusal is the resource's")
    func renewed() {
        var machine = established()
        _ = machine.headReceived(challenge())
        _ = machine.transferEnded(.complete, canReplay: true, isIdempotent: true)
        expect(machine.headReceived(challenge(mayBeBound: false)), .confirm(slot: 0))
        expect(machine.sessionOver(canReplay: true), .discard)
        #expect(machine.userAgent == .renewed(slot: 0))
        expect(machine.transferEnded(.complete, canReplay: true, isIdempotent: true), .logIn(slot: 0))
        expect(machine.sessionReady(.init(isNew: true), missing: nil), .send)
        expect(machine.headReceived(challenge(mayBeBound: false)), .deliver(verifiesSessions: false))
        #expect(machine.misuses == 0)
    }

    @Test("a session that works elsewhere is the resource's refusal, and nothing is tried again")
    func kept() {
        var machine = established()
        _ = machine.headReceived(challenge())
        _ = machine.transferEnded(.complete, canReplay: true, isIdempotent: true)
        _ = machine.headReceived(challenge(mayBeBound: false))
        expect(machine.sessionKept(mayBeBound: true), .deliver(verifiesSessions: false))
    }

    @Test("a session of before that works elsewhere leads to the same trial")
    func before() {
        var machine = ExchangeMachine()
        expect(machine.start(missing: nil), .send)
        expect(machine.headReceived(challenge()), .confirm(slot: 0))
        expect(machine.sessionKept(mayBeBound: true), .discard)
        expect(machine.transferEnded(.complete, canReplay: true, isIdempotent: true), .send)
        expect(machine.headReceived(ExaminedAnswer(.pass)), .deliver(verifiesSessions: true))
    }

    @Test("without another User-Agent, or without the body, the refusal is delivered as it came")
    func none() {
        for answer in [challenge(mayBeBound: false), challenge(canReplay: false)] {
            var machine = established()
            expect(machine.headReceived(answer), .deliver(verifiesSessions: false))
        }
    }
}
