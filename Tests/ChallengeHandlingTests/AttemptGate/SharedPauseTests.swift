// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Shared pause after a failed login")
struct SharedPauseTests {
    private let limits = SessionLimits(firstPause: 1_000, longestPause: 60_000)

    private func pause(_ code: LoginFailure.Code, retryIn: Int64? = nil, isCancelled: Bool = false) -> [Int64]? {
        let failure = LoginFailure(
            code, challenge: "bank", detail: "No.", retryAt: retryIn.map { 50_000 + $0 }, isCancelled: isCancelled)
        return limits.sharedPause(after: failure, now: 50_000).map { [$0.first, $0.longest] }
    }

    @Test("the shared pause of an unknown outcome grows from the first pause or the server's time, up to an hour")
    func unknown() {
        for code in [LoginFailure.Code.failed, .timedOut, .upstreamTLS] {
            #expect(pause(code) == [1_000, 60_000])
            #expect(pause(code, retryIn: 90_000) == [90_000, 90_000])
            #expect(pause(code, retryIn: -5) == [1_000, 60_000])
            #expect(pause(code, retryIn: 1 << 40) == [3_600_000, 3_600_000])
        }
    }

    @Test("a locked account is checked rarely by other nodes")
    func locked() {
        for code in [LoginFailure.Code.accountLocked, .attemptsKept] {
            #expect(pause(code) == [5_000, 60_000])
            #expect(pause(code, retryIn: 30_000) == [30_000, 60_000])
        }
    }

    @Test("a rejection is shared for a moment, and a failure of one node alone is not shared")
    func rejected() {
        #expect(pause(.rejected, retryIn: 90_000) == [2_000, 2_000])
        #expect(pause(.latched) == nil)
        #expect(pause(.noCredential) == nil)
        #expect(pause(.failed, isCancelled: true) == nil)
    }
}
