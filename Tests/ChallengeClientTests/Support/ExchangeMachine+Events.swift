// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import ChallengeClient

extension ExchangeMachine {
    /// Passes a head to the machine, as the examination does.
    mutating func head(
        _ challenge: Challenge, slot: Int = 0, status: Int = 200, _ change: (inout ExaminedAnswer) -> Void = { _ in }
    ) -> AnswerAction {
        var answer = ExaminedAnswer(challenge, slot: slot, status: status)
        change(&answer)
        return headReceived(answer)
    }

    mutating func ended(_ end: TransferEnd) -> EndAction {
        transferEnded(end, canReplay: true, isIdempotent: true)
    }

    mutating func complete() -> EndAction { ended(.complete) }

    mutating func ready(
        missing: Int? = nil, isUnverified: Bool = false, isHidden: Bool = false, login: String = ""
    ) -> BeginAction {
        sessionReady(
            ReadySession(isNew: true, isUnverified: isUnverified, isHidden: isHidden, login: login), missing: missing)
    }

    /// Passes a challenge of slot 0, and then its session.
    mutating func goRound(mayRepeat: Bool = false, isNew: Bool = true) {
        expect(head(.challenged()) { $0.mayRepeat = mayRepeat }, .discard)
        expect(complete(), .logIn(slot: 0))
        expect(sessionReady(ReadySession(isNew: isNew), missing: nil), .send)
    }

    /// Starts a request that carries an unverified session.
    mutating func tryOut(_ slot: Int) {
        expect(start(missing: slot), .logIn(slot: slot))
        expect(ready(isUnverified: true), .send)
    }
}

/// Compares a value with the expected one. `#expect` copies what it shows, and a machine cannot be copied.
func expect<Value: Equatable>(
    _ value: Value, _ expected: Value, _ comment: @autoclosure () -> Comment? = nil,
    at location: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, comment(), sourceLocation: location)
}
