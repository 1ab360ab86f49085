// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@testable import Admin

@Suite("The recent outcomes of exchanges")
struct RecentOutcomesTests {
    private static let minute: Int64 = 60_000

    private func reading(_ statuses: [Int: Int] = [:], unreachable: UInt64 = 0, refused: UInt64 = 0) -> ProxyReading {
        let meter = UpstreamMeter(name: "bank")
        for (status, count) in statuses {
            for _ in 0..<count { meter.ended(.response(status: status), whole: 1, own: 1) }
        }
        var replies: [LocalReplyCount: UInt64] = [:]
        replies[LocalReplyCount(upstream: "bank", code: .upstreamUnreachable, status: 502)] = unreachable
        replies[LocalReplyCount(upstream: "bank", code: .callerNotAllowed, status: 403)] = refused
        var reading = ProxyReading()
        reading.workers = [
            WorkerReading(
                number: 0, begunExchanges: UInt64(statuses.values.reduce(0, +)) + unreachable,
                upstreams: [meter.reading], replies: replies.filter { $0.value > 0 })
        ]
        return reading
    }

    private func html(_ history: ProxyHistory, now: Int64) -> String {
        var report = MetricsReport.of([])
        report.health.now = now
        report.health.latches = []
        return StatusPage(report: report, conversations: [], intervals: [], recent: history.recent)
            .html(nonce: "n0")
    }

    @Test("a count knows its total, its rise of ten minutes, and when it rose last")
    func count() {
        var count = RecentCount()
        #expect(count.update(5, now: 0) == 5 && count.update(5, now: Self.minute) == 0)
        #expect(count.update(7, now: 9 * Self.minute) == 2)
        #expect(count.total == 7 && count.lastAt == 9 * Self.minute)
        #expect(count.recent(now: 9 * Self.minute) == 7)
        #expect(count.recent(now: 10 * Self.minute) == 2)
        #expect(count.recent(now: 19 * Self.minute) == 0)
        #expect(count.update(8, now: 300 * Self.minute) == 1 && count.recent(now: 300 * Self.minute) == 1)
    }

    @Test("a count survives a clock that is set back, and moments at the ends of time")
    func clock() {
        var count = RecentCount()
        for (index, now) in [Int64.max, 0, .min, .max, -1].enumerated() {
            #expect(count.update(UInt64(index) + 1, now: now) == 1)
            #expect(count.recent(now: now) == 1)
        }
    }

    @Test("an upstream fails from its first failure after a good answer to its next good answer")
    func failing() {
        var recent = RecentOutcomes()
        recent.update(reading([200: 4], unreachable: 1), now: 0)
        #expect(recent.failing("bank", now: 0) == nil)
        recent.update(reading([200: 4], unreachable: 3), now: 1000)
        recent.update(reading([200: 4, 503: 1], unreachable: 3), now: 2000)
        recent.update(reading([200: 4, 503: 1], unreachable: 3), now: 3000)
        let failing = recent.failing("bank", now: 5000)
        #expect(failing?.count == 3 && failing?.since == 1000 && failing?.lastAt == 2000 && failing?.name == "5xx")
        #expect(recent.failing("bank", now: 700_000) == nil)
        recent.update(reading([200: 4, 404: 1, 503: 1], unreachable: 3), now: 6000)
        #expect(recent.failing("bank", now: 6000) == nil)
    }

    @Test("a local reply about the caller says nothing of the upstream")
    func callers() {
        var recent = RecentOutcomes()
        recent.update(reading(refused: 9), now: 0)
        #expect(recent.failing("bank", now: 0) == nil)
        recent.update(reading(unreachable: 9, refused: 9), now: 1)
        recent.update(reading(unreachable: 9, refused: 10), now: 2)
        #expect(recent.failing("bank", now: 2)?.count == 9)
    }

    @Test("an upstream that fails every request is listed as a problem from the third failure on")
    func wrong() {
        let history = ProxyHistory()
        history.add(reading(unreachable: 2), now: 1000)
        #expect(!html(history, now: 2000).contains("What is wrong"))
        history.add(reading(unreachable: 61), now: 3000)
        let page = html(history, now: 5000)
        #expect(
            page.contains("<li>bank: every request fails with upstream-unreachable: 61 in 4 s, the last 2 s ago</li>"))
        #expect(page.contains("<span class=\"pill bad\">every request fails</span> <b>bank</b>"))
        #expect(page.contains("id=\"u-bank\" open>") && page.contains("id=\"u-ledger\"><summary>"))
        #expect(!html(history, now: 700_000).contains("What is wrong"))
    }

    @Test("an upstream that readiness already reports is listed once")
    func once() {
        let history = ProxyHistory()
        history.add(reading(unreachable: 61), now: 99_000)
        for (states, check) in [([SessionState.down], CheckReading?.none), ([], CheckReading(.down("503"), since: 0))] {
            var report = MetricsReport.of(states)
            report.health.checks["bank"] = check
            let page = StatusPage(report: report, conversations: [], intervals: [], recent: history.recent)
                .html(nonce: "n0")
            #expect(page.contains("What is wrong") && !page.contains("<li>bank: every request fails"))
        }
    }

    @Test("old trouble has no color of trouble, and each count says when it last rose")
    func old() {
        let history = ProxyHistory()
        history.add(reading(unreachable: 1), now: 0)
        #expect(html(history, now: 1000).contains("<span class=\"pill busy\">last request failed</span>"))
        #expect(html(history, now: 1000).contains("<span class=\"pill bad\">upstream-unreachable</span>"))
        history.add(reading([200: 1], unreachable: 1), now: 2000)
        let page = html(history, now: 21 * 86_400_000)
        #expect(
            page.contains(
                "<span class=\"pill quiet\">upstream-unreachable</span></td><td data-name=\"10 min\">0</td>"))
        #expect(page.contains("no request lately"))
        #expect(page.contains("<td data-name=\"last\">21 days ago</td>"))
        #expect(page.contains("<p class=\"note\">last 21 days ago</p>"))
        #expect(!page.contains("pill bad"))
    }

    @Test("statuses outside 100 to 599 have a name")
    func other() {
        var recent = RecentOutcomes()
        recent.update(reading([999: 1, 204: 2]), now: 0)
        #expect(recent.outcomes(of: "bank").map(\.outcome.name) == ["2xx", "other status"])
        #expect(recent.outcomes(of: "nobody").isEmpty)
    }
}
