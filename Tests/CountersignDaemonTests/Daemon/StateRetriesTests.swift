// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import CountersignDaemon

@Suite("State that the disk has refused")
struct StateRetriesTests {
    @Test("is written again after a second, then after twice the pause each time, and at most every five minutes")
    func pauses() {
        var retries = StateRetries()
        var attempts: [Int64] = []
        for now in stride(from: Int64(0), through: 2_000_000, by: 1_000)
        where retries.isDue(hasUnwritten: true, now: now) {
            attempts.append(now)
        }
        #expect(attempts.prefix(5) == [1_000, 3_000, 7_000, 15_000, 31_000])
        #expect(attempts.suffix(2).last.map { $0 - attempts[attempts.count - 2] } == StateRetries.longestPause)
    }

    @Test("is not written again once it is written, and the next failure begins with a second")
    func over() {
        var retries = StateRetries()
        for now: Int64 in [0, 1_000, 3_000] { _ = retries.isDue(hasUnwritten: true, now: now) }
        let written = retries.isDue(hasUnwritten: false, now: 100_000)
        let failed = retries.isDue(hasUnwritten: true, now: 100_000)
        let early = retries.isDue(hasUnwritten: true, now: 100_999)
        let again = retries.isDue(hasUnwritten: true, now: 101_000)
        #expect([written, failed, early, again] == [false, false, false, true])
    }
}
