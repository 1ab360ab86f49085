// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import ChallengeClient

private typealias Machine = ExchangeMachine

@Suite("All pairs of a state and an event of an exchange")
struct ExchangeMachinePairTests {
    enum Place: String, CaseIterable {
        case idle, waiting, reading, sending, examining, holding, looking, settling, passing, finishing, ended
    }

    enum Event: String, CaseIterable {
        case start, sessionReady, sessionFailed, askAgain, bodyIsUnread, bodyRead, requestIsSent, bodyIsTaken
        case headReceived, confirmationIsAwaited, sessionKept, sessionOver, sessionRejected, switched, answeredLocally
        case swallowed, answerWhole, transferComplete, transferBroken, transferLost, expectationRefused, unbound
        case failed, cancelled, timerExpired, nextVerdict, takeConcludedChallenge, pageIsAbsent, pageIsFound
    }

    /// Events that any state takes.
    private static let anytime: Set<Event> = [.bodyIsTaken, .nextVerdict, .takeConcludedChallenge]
    /// Events that any state but the last takes.
    private static let beforeEnd: Set<Event> = [.failed, .cancelled, .timerExpired, .transferBroken, .transferLost]
    private static let allowed: [Place: Set<Event>] = [
        .idle: [.start],
        .waiting: [.sessionReady, .sessionFailed, .askAgain],
        .reading: [.bodyRead],
        .sending: [
            .bodyIsUnread, .requestIsSent, .headReceived, .switched, .answeredLocally, .answerWhole, .transferComplete,
            .expectationRefused, .unbound,
        ],
        .examining: [.headReceived, .answerWhole, .transferComplete],
        .holding: [.confirmationIsAwaited, .sessionKept, .sessionOver, .sessionRejected],
        .looking: [.pageIsAbsent, .pageIsFound],
        .settling: [.swallowed, .answerWhole, .transferComplete],
        .passing: [.answerWhole, .transferComplete],
        .finishing: [.answerWhole, .transferComplete],
        .ended: [],
    ]

    @Test("each state takes the events that are its own, and refuses all others unchanged", arguments: Place.allCases)
    func pairs(_ place: Place) {
        for event in Event.allCases {
            var machine = Self.machine(at: place)
            let before = machine.state
            Self.send(event, to: &machine)
            let isAllowed =
                Self.anytime.contains(event) || place != .ended && Self.beforeEnd.contains(event)
                || Self.allowed[place]?.contains(event) == true
            expect(machine.misuses, isAllowed ? 0 : 1, "\(place), \(event)")
            if !isAllowed { expect(machine.state, before, "\(place), \(event)") }
        }
    }

    private static func machine(at place: Place) -> Machine {
        var machine = Machine(expectsContinue: true, trapsMisuse: false)
        if place == .idle { return machine }
        _ = machine.start(missing: place == .waiting ? 0 : nil)
        switch place {
        case .idle, .waiting, .sending: break
        case .reading: machine.bodyIsUnread()
        case .examining: _ = machine.head(.needsBody)
        case .holding: _ = machine.head(.refused)
        case .looking: _ = machine.head(.pass) { $0.concealment = .open }
        case .settling: _ = machine.head(.challenged())
        case .passing: _ = machine.head(.pass)
        case .finishing:
            _ = machine.head(.pass)
            _ = machine.answerWhole(isRefusal: false)
        case .ended: machine.cancelled()
        }
        expect(machine.misuses, 0)
        return machine
    }

    private static func send(_ event: Event, to machine: inout Machine) {
        let error = ExchangeError(.upstreamUnreachable, detail: "lost")
        switch event {
        case .start: _ = machine.start(missing: 1)
        case .sessionReady: _ = machine.ready()
        case .sessionFailed: _ = machine.sessionFailed(error)
        case .askAgain: _ = machine.askAgain()
        case .bodyIsUnread: machine.bodyIsUnread()
        case .bodyRead: _ = machine.bodyRead(.done)
        case .requestIsSent: machine.requestIsSent()
        case .bodyIsTaken: _ = machine.bodyIsTaken(wasContinued: true, hasWaited: false)
        case .headReceived: _ = machine.head(.pass)
        case .confirmationIsAwaited: machine.confirmationIsAwaited()
        case .sessionKept: _ = machine.sessionKept()
        case .sessionOver: _ = machine.sessionOver(canReplay: true)
        case .sessionRejected: _ = machine.sessionRejected(error)
        case .pageIsAbsent: _ = machine.pageIsAbsent(isKnown: true)
        case .pageIsFound: machine.pageIsFound()
        case .switched: _ = machine.switched()
        case .answeredLocally: machine.answeredLocally()
        case .swallowed: _ = machine.swallowed(1, limit: 10)
        case .answerWhole: _ = machine.answerWhole(isRefusal: false)
        case .transferComplete: _ = machine.ended(.complete)
        case .transferBroken: _ = machine.ended(.broken(error, resend: .never))
        case .transferLost: _ = machine.ended(.lost(error))
        case .expectationRefused: _ = machine.ended(.expectationRefused)
        case .unbound: _ = machine.ended(.unbound)
        case .failed: _ = machine.failed(error)
        case .cancelled: machine.cancelled()
        case .timerExpired: _ = machine.timerExpired()
        case .nextVerdict: _ = machine.nextVerdict()
        case .takeConcludedChallenge: _ = machine.takeConcludedChallenge()
        }
    }
}
