// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import ChallengeClient

private typealias Machine = ExchangeMachine

@Suite("The sessions of an exchange machine")
struct ExchangeMachineSessionTests {
    private let lost = ExchangeError(.upstreamUnreachable, detail: "lost")

    @Test("a session that is hidden again before its use is requested again, at most eight times")
    func hidden() {
        var machine = Machine()
        expect(machine.start(missing: 0), .logIn(slot: 0))
        for _ in 0..<Machine.maxRounds { expect(machine.ready(missing: 0, isHidden: true), .logIn(slot: 0)) }
        guard case .fail = machine.ready(missing: 0, isHidden: true) else {
            Issue.record("it goes on for ever")
            return
        }
    }

    @Test("a challenge to a request without the session that was hidden before its use is answered")
    func hiddenBeforeUse() {
        var machine = Machine()
        expect(machine.start(missing: 0), .logIn(slot: 0))
        expect(machine.ready(missing: 0, isHidden: true), .logIn(slot: 0))
        // The next login finds nothing to add, so the request goes without.
        expect(machine.sessionReady(.init(isNew: false), missing: nil), .send)
        expect(machine.head(.challenged()), .discard)
    }

    @Test("a challenge to a session that was awaited, and that another node had established, is answered")
    func takenOver() {
        for isTakenOver in [true, false] {
            var machine = Machine()
            expect(machine.start(missing: 0), .logIn(slot: 0))
            expect(machine.sessionReady(.init(isNew: true, isTakenOver: isTakenOver), missing: nil), .send)
            expect(machine.head(.challenged()), isTakenOver ? .discard : .deliver(verifiesSessions: false))
        }
    }

    @Test("a session that expires the moment it is established does not lead to endless logins")
    func endedAtOnce() {
        var machine = Machine()
        _ = machine.start(missing: 2)
        guard case .fail(let error) = machine.ready(missing: 2, login: "corp") else {
            Issue.record("it would be won again and again")
            return
        }
        #expect(error.detail.contains("The login corp established a session that has expired already."))
    }

    @Test("an answer that may conceal a login page is held until the page came, and then is delivered or a challenge")
    func concealed() {
        for isFound in [false, true] {
            var machine = Machine()
            expect(machine.start(missing: nil), .send)
            expect(machine.head(.pass, slot: 1, status: 304) { $0.concealment = .open }, .look(slot: 1))
            expect(machine.state.heldSlot, 1)
            expect(machine.timerExpired(), .endLook)
            if isFound {
                machine.pageIsFound()
                expect(machine.sessionOver(canReplay: true), .discard)
                expect(machine.complete(), .logIn(slot: 1))
            } else {
                expect(machine.pageIsAbsent(isKnown: true), .deliver(verifiesSessions: false))
                expect(machine.complete(), .finish)
            }
        }
    }

    @Test("an answer that conceals a page verifies the session that the request tries only if the page came")
    func concealedTrial() {
        for isKnown in [false, true] {
            var machine = Machine()
            machine.tryOut(0)
            expect(machine.head(.pass, slot: 1) { $0.concealment = .open }, .look(slot: 1))
            expect(machine.nextVerdict(), nil)
            _ = machine.pageIsAbsent(isKnown: isKnown)
            expect(machine.nextVerdict(), SessionVerdict(slot: 0, result: isKnown ? .accepted : .undecided))
        }
    }

    @Test("a challenge on a session that can be confirmed is held, and passes or is answered once")
    func confirmable() {
        for isOver in [false, true] {
            var machine = Machine()
            _ = machine.start(missing: nil)
            expect(machine.head(.challenged(), slot: 1) { $0.carriesConfirmable = true }, .confirm(slot: 1))
            expect(machine.state.heldSlot, 1)
            guard isOver else {
                expect(machine.sessionKept(), .deliver(verifiesSessions: false))
                expect(machine.takeConcludedChallenge(), .init(slot: 1, outcome: .passed))
                continue
            }
            expect(machine.sessionOver(canReplay: true), .discard)
            expect(machine.complete(), .logIn(slot: 1))
            expect(machine.ready(), .send)
            // The session was just established, so the resource itself refuses.
            expect(
                machine.head(.challenged(), slot: 1) { $0.carriesConfirmable = true }, .deliver(verifiesSessions: false)
            )
        }
    }

    @Test("a session in doubt that is over when the body is gone ends the exchange")
    func overWithoutBody() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        _ = machine.head(.refused, slot: 1)
        expect(machine.sessionOver(canReplay: false), .giveUp(slot: 1))
    }

    @Test("a session in doubt whose credential is rejected fails the exchange")
    func rejectedInDoubt() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        _ = machine.head(.refused, slot: 1)
        expect(machine.sessionRejected(lost), .fail(lost))
        expect(machine.takeConcludedChallenge(), .init(slot: 1, outcome: .failed))
    }

    @Test("a session that others use up may be established four times for one exchange")
    func spendable() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        for _ in 0..<Machine.maxSpentSessions {
            expect(machine.head(.challenged()) { $0.carriesSpendable = true }, .discard)
            _ = machine.complete()
            _ = machine.ready()
        }
        expect(machine.head(.challenged()) { $0.carriesSpendable = true }, .deliver(verifiesSessions: false))
    }

    @Test("a challenge to a request that went without a session which was hidden meanwhile is answered again")
    func hiddenMeanwhile() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        machine.goRound()
        expect(machine.head(.challenged()) { $0.isHidden = true }, .discard)
    }

    @Test("NTLM that is asked for only with the body is not tried again")
    func unbound() {
        var machine = Machine()
        _ = machine.start(missing: nil)
        expect(machine.ended(.unbound), .send)
        expect(machine.omitsConnectionCredential, true)
        expect(machine.head(.challenged()) { $0.bindsConnection = true }, .deliver(verifiesSessions: true))
    }

    // MARK: Unverified sessions

    @Test("an unverified session is accepted by any answer but the challenge again, and by none of a server in trouble")
    func judged() {
        let cases: [(Challenge, slot: Int, status: Int, SessionTable<ExchangeTicket>.VerificationResult?)] = [
            (.pass, 0, 200, .accepted), (.pass, 0, 404, .accepted), (.pass, 0, 503, .unanswered(.status(503))),
            (.pass, 0, 429, .unanswered(.status(429))), (.pass, 0, 408, .unanswered(.status(408))),
            (.challenged(), 0, 401, nil), (.challenged(), 1, 401, .accepted),
            (.stale, 0, 401, .outdated), (.stale, 1, 401, .accepted), (.refused, 0, 401, nil),
            (.refused, 1, 401, .accepted), (.needsBody, 0, 200, nil), (.replay, 0, 409, .accepted),
        ]
        for (challenge, slot, status, result) in cases {
            var machine = Machine()
            machine.tryOut(0)
            _ = machine.head(challenge, slot: slot, status: status)
            expect(machine.nextVerdict()?.result, result, "\(challenge), \(slot), \(status)")
        }
    }

    @Test("several unverified sessions of one request each get a verdict")
    func judgedEach() {
        var machine = Machine()
        expect(machine.start(missing: 0), .logIn(slot: 0))
        expect(machine.ready(missing: 1, isUnverified: true), .logIn(slot: 1))
        expect(machine.ready(isUnverified: true), .send)
        expect(machine.head(.challenged(), slot: 1, status: 401), .confirm(slot: 1))
        expect(machine.nextVerdict(), SessionVerdict(slot: 0, result: .accepted))
        expect(machine.nextVerdict(), nil)
        machine.confirmationIsAwaited()
        expect(machine.sessionKept(), .deliver(verifiesSessions: false))
        expect(machine.nextVerdict(), nil)
    }

    @Test("an exchange that ends before its answer leaves its session undecided if nothing was sent, else unanswered")
    func ends() {
        let late = ExchangeError(.upstreamTimeout, detail: "late")
        let ends: [(UnansweredTrial?, (inout Machine) -> Void)] = [
            (.abandoned, { $0.cancelled() }), (.lost, { _ = $0.failed(.bodyLost) }),
            (.timedOut, { _ = $0.failed(late) }),
            (.lost, { _ = $0.ended(.lost(.bodyLost)) }), (nil, { _ = $0.ended(.unbound) }),
        ]
        for (trial, end) in ends {
            for isSent in [false, true] {
                var machine = Machine()
                machine.tryOut(4)
                machine.recordSending(isSent)
                end(&machine)
                let result = trial.flatMap { isSent ? .unanswered($0) : nil } ?? SessionVerdict.Result.undecided
                expect(machine.nextVerdict(), SessionVerdict(slot: 4, result: result))
            }
        }
    }

    @Test("a page that could not be examined leaves its session undecided, for the server has answered")
    func unexamined() {
        var machine = Machine()
        machine.tryOut(0)
        expect(machine.head(.needsBody), .examineBody)
        expect(machine.head(.needsBody), .deliver(verifiesSessions: false))
        machine.recordSending(true)
        expect(machine.complete(), .finish)
        expect(machine.nextVerdict(), SessionVerdict(slot: 0, result: .undecided))
    }

    @Test("a request that tries a credential is resent only if nothing of it was sent: the server may have counted it")
    func resendsOfTrial() {
        let error = ExchangeError(.upstreamUnreachable, detail: "lost")
        var machine = Machine()
        machine.tryOut(0)
        machine.recordSending(false)
        expect(machine.transferEnded(.broken(error, resend: .always), canReplay: true, isIdempotent: true), .send)
        machine.recordSending(true)
        expect(
            machine.transferEnded(.broken(error, resend: .ifIdempotent), canReplay: true, isIdempotent: true),
            .fail(error))
        expect(machine.nextVerdict(), SessionVerdict(slot: 0, result: .unanswered(.lost)))
    }

    @Test("a 101 accepts the unverified session that it answers")
    func switchAccepts() {
        var machine = Machine()
        machine.tryOut(0)
        _ = machine.switched()
        expect(machine.nextVerdict(), SessionVerdict(slot: 0, result: .accepted))
    }
}
