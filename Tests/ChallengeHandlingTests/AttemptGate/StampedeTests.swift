// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

@Suite("Login stampedes")
struct StampedeTests {
    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "bank", credential: "pin")

    /// When each of 200 machines begins what `next` says, in milliseconds, by one generator.
    private func times(seed: UInt64, _ next: (inout SessionTable<Int>, inout SplitMix) -> Int64?) -> [Int64] {
        var random = SplitMix(state: seed)
        return (0..<200).compactMap { _ in
            var table = SessionTable<Int>()
            return next(&table, &random)
        }.sorted()
    }

    /// The most of `times` that lie within `span` of each other.
    private func crowd(_ times: [Int64], within span: Int64) -> Int {
        times.map { start in times.count { (start..<start + span).contains($0) } }.max() ?? 0
    }

    /// The first moment at which a login begins again: what is let in then is let in later, too.
    private func firstTry(of table: SessionTable<Int>, after failure: Int64) -> Int64 {
        var (refused, begun) = (failure, failure + 60_001)
        while begun - refused > 1 {
            let middle = (refused + begun) / 2
            var copy = table
            if copy.request(key, rejected: nil, waiter: 1, now: middle) == .logIn {
                begun = middle
            } else {
                refused = middle
            }
        }
        return begun
    }

    @Test("machines whose logins failed together retry at different times", arguments: [1, 2, 5, 12])
    func outage(failures: Int) throws {
        let times = times(seed: 7) { table, random in
            var now: Int64 = 0
            for _ in 0..<failures {
                _ = table.request(key, rejected: nil, waiter: 1, now: now)
                let failure = LoginFailure(.timedOut, challenge: "bank", detail: "")
                _ = table.finish(
                    key, with: .failure(failure), now: now, chance: Double.random(in: 0..<1, using: &random))
                now = firstTry(of: table, after: now)
            }
            return now
        }
        let first = try #require(times.first), last = try #require(times.last)
        #expect(times.count == 200)
        #expect(first >= 500)
        // Half a pause apart, and no tenth of that time sees many of them.
        let width = last - first
        #expect(width >= min(60_000, 1_000 << Int64(failures - 1)) * 2 / 5)
        #expect(crowd(times, within: max(1, width / 10)) < 60)
    }

    @Test(
        "machines whose sessions began together renew them at different times, early enough"
    )
    func renewal() throws {
        for (life, lead) in [(Int64(3_600_000), Int64(30_000)), (50_000, 10_000)] {
            let times = times(seed: 11) { table, random in
                _ = table.request(key, rejected: nil, waiter: 1, now: 0)
                _ = table.finish(
                    key, with: .success(Session(expiresAt: life)), now: 0,
                    chance: Double.random(in: 0..<1, using: &random))
                return table.held(key)?.renewAt
            }
            #expect(times.allSatisfy { (life - lead...life - lead * 3 / 4).contains($0) })
            #expect(crowd(times, within: lead / 40) < 50)
        }
    }

    @Test("a session counts its renewals without a gap, and restarts the count after a gap")
    func renewals() {
        var table = SessionTable<Int>()
        for (now, count) in [(Int64(0), 0), (900, 1), (1_800, 2), (9_000, 0)] {
            _ = table.request(key, rejected: nil, waiter: 1, now: now)
            _ = table.finish(key, with: .success(Session(expiresAt: now + 1_000)), now: now, chance: 0)
            #expect(table.held(key)?.renewals == count)
        }
    }
}
