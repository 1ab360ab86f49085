// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@testable import Admin

@Suite("The status page")
struct StatusPageTests {
    private static let hostile = "<script>alert('x')</script> \"&\u{202E}"

    private func html(
        _ states: [SessionState] = [], _ conversations: [ConversationRecord] = [],
        _ intervals: [ProxyHistory.Interval] = []
    ) -> String {
        StatusPage(report: .of(states), conversations: conversations, intervals: intervals).html(nonce: "n0")
    }

    private func record(_ text: String, failure: LoginFailure? = nil) -> ConversationRecord {
        let key = SessionKey(
            origin: Origin(scheme: .https, host: "secret.example"), challenge: "pin", credential: "ann")
        return ConversationRecord(
            key: key, cause: .request, beganAt: 90_000, steps: [.init(after: 12, text: text)], took: 4200,
            failure: failure)
    }

    @Test("the status page shows the state of each login and the problems")
    func logins() {
        let page = html([.held(until: 130_000), .loggingIn(waiters: 3), .down])
        #expect(page.contains("session held") && page.contains("for 60 s, renews in 12 s, ends in 30 s"))
        #expect(page.contains("logging in") && page.contains("3 wait"))
        #expect(page.contains("<h2>What is wrong</h2>") && page.contains("bank/pin: login-rejected: The PIN"))
        #expect(page.contains("not ready") && page.contains("<title>! Countersign</title>"))
        #expect(html([.cold]).contains("no session yet") && !html([.cold]).contains("What is wrong"))
    }

    @Test("the status page shows every reason against readiness")
    func wrong() {
        var report = MetricsReport.of([.down])
        report.health.checks["ledger"] = CheckReading(.down("it answered 503"), since: 0)
        report.health.isAccepting = false
        let page = StatusPage(report: report, conversations: [], intervals: []).html(nonce: "n0")
        let reasons = HealthDocument(.ready, of: report.health).reasons
        #expect(reasons.count == 3 && page.contains("<li>ledger: its check failed: it answered 503</li>"))
        #expect(page.contains("<li>listeners: the daemon is shutting down</li>"))
    }

    @Test("the status page says how to open a latch, and shows neither secrets nor addresses")
    func latches() {
        let page = html([.held(until: nil)], [record("preauthorize: 401")])
        #expect(page.contains("<code>countersign unlatch pin</code>"))
        #expect(!page.contains("token-value") && !page.contains("secret.example"))
    }

    @Test(
        "latches and sessions with any time are shown on every page and in the metrics",
        arguments: [Int64.min, .max, 0])
    func ends(moment: Int64) {
        var report = MetricsReport.of([.held(until: moment == 0 ? nil : moment), .held(until: .max)])
        report.health.latches = [
            ClosedLatch(
                Latch(reason: .rejected, closedAt: moment, opensAt: 0 &- moment), challenge: "pin", key: nil)
        ]
        for now in [Int64.min, 0, .max] {
            report.health.now = now
            let page = StatusPage(report: report, conversations: [record("x")], intervals: []).html(nonce: "n0")
            #expect(page.contains("countersign unlatch pin"))
            #expect(
                !report.health.json(HealthDocument(.ready, of: report.health), isVerbose: true).serialized().isEmpty)
            #expect(report.text(.openMetrics).hasSuffix("# EOF\n"))
        }
    }

    @Test("the status page shows login conversations, with any text of the server escaped")
    func conversations() {
        let failure = LoginFailure(.rejected, challenge: "pin", detail: Self.hostile)
        let page = html([], [record(Self.hostile, failure: failure), record("token: 200")])
        #expect(page.contains("<time>+12 ms</time>") && page.contains("request, 10 s ago, took 4.2 s"))
        #expect(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &quot;&amp;\u{FFFD}"))
        #expect(page.components(of: "<script nonce=") == 1 && page.components(of: "alert('x')") == 0)
    }

    @Test("the status page has no external resources")
    func selfContained() {
        let page = html([.cold])
        for sign in ["http:", "https:", "src=", "url(", "@import", " style=", " onclick="] {
            #expect(!page.contains(sign), "\(sign)")
        }
        #expect(page.contains("<style nonce=\"n0\">") && page.contains("<script nonce=\"n0\">"))
        #expect(StatusPage.policy(nonce: "n0").contains("default-src 'none'"))
    }

    @Test("each tag of the status page is closed")
    func balance() {
        let page = html(
            [.held(until: 130_000), .loggingIn(waiters: 1), .down, .cold], [record("a", failure: nil)],
            [
                .init(end: 1, rate: 3, median: 64, percentile99: 128),
                .init(end: 2, rate: 0, median: nil, percentile99: nil),
            ]
        ).replacing(PageAssets.script.description, with: "")
        for tag in [
            "div", "section", "article", "table", "thead", "tbody", "tr", "td", "th", "ol", "ul", "li", "details", "p",
            "h1", "h2", "h3", "b", "code", "span", "svg", "main", "header", "summary", "time", "body", "html", "dl",
            "dt", "dd",
        ] {
            let opened = page.components(of: "<\(tag)>") + page.components(of: "<\(tag) ")
            #expect(opened == page.components(of: "</\(tag)>"), "\(tag)")
        }
    }
}

@Suite("The history of the proxy")
struct ProxyHistoryTests {
    @Test("the history of the proxy is sampled at its interval, and starts over if the clock is set back")
    func pace() {
        let history = ProxyHistory()
        for now in stride(from: Int64(0), through: 20_000, by: 1000) { history.add(ProxyReading(), now: now) }
        #expect(history.intervals.map(\.end) == [5000, 10_000, 15_000, 20_000])
        #expect(history.intervals.allSatisfy { $0.rate == 0 && $0.median == nil })
        history.add(ProxyReading(), now: 100)
        #expect(history.intervals.isEmpty)
    }

    @Test("the history of the proxy covers ten minutes")
    func bound() {
        let history = ProxyHistory()
        for now in stride(from: Int64(0), through: 2_000_000, by: 5000) { history.add(ProxyReading(), now: now) }
        #expect(history.intervals.count == 120)
    }

    @Test("a percentile is the bound of the bucket in which its share is reached")
    func shares() {
        var counts = [UInt64](repeating: 0, count: LatencyHistogram.bounds.count + 1)
        #expect(ProxyHistory.bound(of: counts, share: 0.5) == nil)
        counts[0] = 98
        counts[3] = 2
        #expect(ProxyHistory.bound(of: counts, share: 0.5) == 64)
        #expect(ProxyHistory.bound(of: counts, share: 0.99) == 512)
        counts[counts.count - 1] = 1000
        #expect(ProxyHistory.bound(of: counts, share: 0.99) == LatencyHistogram.bounds.last)
    }
}

extension String {
    fileprivate func components(of sign: String) -> Int {
        split(separator: sign, omittingEmptySubsequences: false).count - 1
    }
}
