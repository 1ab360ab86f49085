// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

/// Each row of the table of states, and the trace of the sample adapter.
@Suite("the states of a security check")
struct SecurityCheckStateTests {
    private let check = SecurityCheck.pinCodeAttempts()
    private let right: JSON = ["pin": "1234"]
    private let wrong: JSON = ["pin": "0000"]
    private let blocked = SecurityCheckState.Outcome.failure(["failure": "Account blocked"])

    private func challenge(_ remaining: Int64, _ message: String? = nil) -> SecurityCheckState.Outcome {
        .challenge(
            ["errorMsg": message.map(JSON.string) ?? .null, "remainingAttempts": .integer(remaining)],
            remaining: remaining)
    }

    private let hint = "Pin code is not valid. Hint: 1234"

    /// Returns a check after these answers at time 0.
    private func state(after answers: [JSON?], _ check: SecurityCheck? = nil) -> SecurityCheckState {
        var state = SecurityCheckState()
        for answer in answers { _ = state.handle(answer, for: check ?? self.check, now: 0) }
        return state
    }

    @Test("expired, no answer: a challenge with the full count")
    func expiredBare() {
        var state = SecurityCheckState()
        #expect(state.handle(nil, for: check, now: 0) == challenge(3))
    }

    @Test("expired, wrong answer: one attempt is used at once")
    func expiredWrong() {
        var state = SecurityCheckState()
        #expect(state.handle(wrong, for: check, now: 0) == challenge(2, hint))
    }

    @Test("expired, wrong answer, one attempt in all: blocked at once")
    func expiredWrongSingle() {
        var state = SecurityCheckState()
        let check = SecurityCheck.pinCodeAttempts(SecurityCheck.Properties(maxAttempts: 1, blocked: 60))
        #expect(state.handle(wrong, for: check, now: 0) == blocked)
    }

    @Test("attempting, no answer: the counter stays")
    func attemptingBare() {
        var state = state(after: [wrong])
        #expect(state.handle(nil, for: check, now: 0) == challenge(2, hint))
        #expect(state.handle(nil, for: check, now: 0) == challenge(2, hint))
    }

    @Test("attempting, wrong, some left: one fewer")
    func attemptingWrong() {
        var state = state(after: [nil, wrong])
        #expect(state.handle(wrong, for: check, now: 0) == challenge(1, hint))
    }

    @Test("attempting, wrong, none left, with a time to block: failure")
    func attemptingToBlocked() {
        var state = state(after: [wrong, wrong])
        #expect(state.handle(wrong, for: check, now: 0) == blocked)
    }

    @Test("attempting, wrong, none left, without a time to block: a fresh challenge with the full count")
    func defaultConfiguration() {
        let check = SecurityCheck.pinCodeAttempts(SecurityCheck.Properties())
        var state = SecurityCheckState()
        #expect(state.handle(nil, for: check, now: 0) == challenge(1))
        for _ in 0..<5 { #expect(state.handle(wrong, for: check, now: 0) == challenge(1, hint)) }
        #expect(state.handle(right, for: check, now: 0) == .success(.empty))
    }

    @Test("blocked: failure whatever comes, even the right answer, until the time is over; then expired")
    func blockedTime() {
        var state = state(after: [wrong, wrong, wrong])
        #expect(state.handle(right, for: check, now: 0) == blocked)
        #expect(state.handle(nil, for: check, now: 59_999) == blocked)
        #expect(state.isBlocked(for: check, now: 59_999))
        #expect(!state.isBlocked(for: check, now: 60_000))
        #expect(state.handle(nil, for: check, now: 60_000) == challenge(3))
    }

    @Test("blocked: credentials are not looked at")
    func blockedLooksAway() {
        var state = state(after: [wrong, wrong, wrong])
        var check = check
        check.validate = { _ in
            Issue.record("the answer was looked at")
            return .right(.empty)
        }
        #expect(state.handle(right, for: check, now: 1) == blocked)
    }

    @Test("a right answer succeeds from every state but blocked")
    func rightAnswer() {
        for answers in [[], [nil], [wrong, wrong], [right]] as [[JSON?]] {
            var state = state(after: answers)
            #expect(state.handle(right, for: check, now: 0) == .success(.empty))
        }
    }

    @Test("success, no answer: success until its time is over")
    func successTime() {
        var state = state(after: [right])
        #expect(state.handle(nil, for: check, now: 59_999) == .success(.empty))
        #expect(state.secondsLeft(for: check, now: 45_000) == 15)
        #expect(state.isSuccess(for: check, now: 59_999))
        #expect(!state.isSuccess(for: check, now: 60_000))
        #expect(state.handle(nil, for: check, now: 60_000) == challenge(3))
    }

    @Test("success, wrong answer: the success is lost and one attempt used")
    func successWrong() {
        var state = state(after: [right])
        #expect(state.handle(wrong, for: check, now: 0) == challenge(2, hint))
        #expect(!state.isSuccess(for: check, now: 0))
    }

    @Test("attempting: the counter restarts when the window from the first challenge is over")
    func attemptingWindow() {
        var state = state(after: [nil])
        #expect(state.handle(wrong, for: check, now: 100_000) == challenge(2, hint))
        #expect(state.handle(nil, for: check, now: 119_999) == challenge(2, hint))
        #expect(state.handle(nil, for: check, now: 120_000) == challenge(3))
    }

    @Test("a remembered user succeeds without a challenge, counted from the login; logout forgets him")
    func rememberMe() {
        let check = SecurityCheck.userLogin(SecurityCheck.Properties(maxAttempts: 3, success: 60, rememberMe: 600))
        let answer: JSON = ["username": "ann", "password": "ann", "rememberMe": true]
        var state = state(after: [answer], check)
        guard case .success(let details) = state.handle(nil, for: check, now: 300_000) else {
            Issue.record("a challenge in spite of the memory")
            return
        }
        #expect(details["user"]?["id"] == "ann")
        #expect(state.handle(nil, for: check, now: 539_000) == .success(details))
        // The success of 539 s came from the memory, which it did not renew.
        #expect(state.handle(nil, for: check, now: 600_000) == challenge(3))
        var other = self.state(after: [answer], check)
        other.logout()
        #expect(other.handle(nil, for: check, now: 1) == challenge(3))
        var late = self.state(after: [answer], check)
        #expect(late.handle(nil, for: check, now: 600_000) == challenge(3))
    }

    @Test("logout: expired, from every state")
    func logout() {
        for answers in [[right], [wrong], [wrong, wrong, wrong]] as [[JSON?]] {
            var state = state(after: answers)
            state.logout()
            #expect(state.handle(nil, for: check, now: 0) == challenge(3))
        }
    }

    @Test("the trace of the sample: 3, 2, 1, blocked, blocked though right, after its time 3 again")
    func trace() {
        var state = SecurityCheckState()
        #expect(state.handle(nil, for: check, now: 0) == challenge(3))
        #expect(state.handle(wrong, for: check, now: 1000) == challenge(2, hint))
        #expect(state.handle(wrong, for: check, now: 2000) == challenge(1, hint))
        #expect(state.handle(wrong, for: check, now: 3000) == blocked)
        #expect(state.handle(right, for: check, now: 4000) == blocked)
        #expect(state.handle(nil, for: check, now: 63_000) == challenge(3))
    }
}
