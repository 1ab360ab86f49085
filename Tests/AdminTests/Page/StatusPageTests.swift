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

@Suite("The numbers and times of the status page")
struct ReadableTextTests {
    @Test(
        "times on the status page are in readable units",
        arguments: [
            (.min, "0 ms"), (-5, "0 ms"), (850, "850 ms"), (4_250, "4.2 s"), (4_050, "4 s"), (59_000, "59 s"),
            (600_000, "10 min"), (7_500_000, "2 h 5 min"), (7_200_000, "2 h"), (532_800_000, "6 days 4 h"),
            (518_400_000, "6 days"),
            (1_252_800_000, "15 days"), (1_209_576_000, "14 days"),
        ] as [(Int64, String)])
    func times(milliseconds: Int64, text: String) {
        #expect(readableTime(milliseconds: milliseconds) == text)
    }

    @Test(
        "durations of exchanges are in microseconds below 1 ms, then in milliseconds, then in seconds",
        arguments: [
            (0, "0 µs"), (512, "512 µs"), (1024, "1 ms"), (2500, "2.5 ms"), (8192, "8.1 ms"), (16_384, "16 ms"),
            (999_999, "999 ms"), (1_000_000, "1 s"), (8_388_608, "8.3 s"), (67_108_864, "67 s"),
            (.max, "18\u{202F}446\u{202F}744\u{202F}073\u{202F}709 s"),
        ] as [(UInt64, String)])
    func durations(microseconds: UInt64, text: String) {
        #expect(readableTime(microseconds: microseconds) == text)
    }

    @Test(
        "sizes are in bytes, kB, MB and so on",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_567, "1.2 MB"), (28_361_040, "28 MB"),
            (999_999, "999 kB"), (3_000_000_000, "3 GB"), (.max, "18 EB"),
        ] as [(UInt64, String)])
    func sizes(bytes: UInt64, text: String) {
        #expect(readableSize(bytes: bytes) == text)
    }

    @Test(
        "rates have one decimal below 10, and none where it is a zero",
        arguments: [
            (0, "0"), (0.44, "0.4"), (7.5, "7.5"), (9.97, "10"), (1234.4, "1\u{202F}234"), (-1, "0"), (.nan, "0"),
            (.infinity, "1\u{202F}000\u{202F}000\u{202F}000\u{202F}000\u{202F}000"),
        ] as [(Double, String)])
    func rates(rate: Double, text: String) {
        #expect(readableRate(rate) == text)
    }

    @Test(
        "numbers on the status page are in groups of three digits",
        arguments: [(7, "7"), (1234, "1\u{202F}234"), (1_234_567, "1\u{202F}234\u{202F}567")] as [(UInt64, String)])
    func numbers(number: UInt64, text: String) {
        #expect(readableNumber(number) == text)
    }

    @Test("the age of a moment is at least zero")
    func ages() {
        #expect(readableAge(of: 40_000, now: 220_000) == "3 min ago")
        #expect(readableAge(of: .max, now: .min) == "0 ms ago")
        #expect(readableAge(of: .min, now: .max).hasSuffix(" days ago"))
    }
}

@Suite("The plots of the status page")
struct PlotTests {
    private func text(_ plot: Plot) -> String {
        var page = HTMLText()
        plot.write(to: &page)
        return page.text
    }

    @Test("a plot joins its points over gaps, has a scale, and says which time it shows")
    func joins() {
        let points: [Plot.Point] = [
            .init(at: 0, value: 0), .init(at: 150_000, value: 5), .init(at: 300_000, value: nil),
            .init(at: 600_000, value: 10),
        ]
        let text = text(Plot(points: points, now: 600_000, unit: .rate, label: "a < b"))
        #expect(text.contains("aria-label=\"a &lt; b\""))
        #expect(text.contains("class=\"line\" d=\"M0.0 44.0L60.0 24.0L240.0 4.0\""))
        #expect(text.contains("class=\"dots\" d=\"M0.0 44.0h0M60.0 24.0h0M240.0 4.0h0\""))
        #expect(text.contains("<span>10</span><span>5</span><span>0</span>"))
        #expect(text.contains("<span>10 min ago</span><span>now</span>"))
    }

    @Test("a plot has no points of before its window, and none of a number that is not finite")
    func window() {
        let points: [Plot.Point] = [.init(at: 0, value: 50), .init(at: 1, value: .nan), .init(at: 2, value: .infinity)]
        #expect(!text(Plot(points: points, now: 600_001, unit: .rate, label: "")).contains("class=\"line\""))
        #expect(!text(Plot(points: [], now: .min, unit: .time, label: "")).contains("class=\"line\""))
        #expect(text(Plot(points: [.init(at: 9, value: 2)], now: 0, unit: .rate, label: "")).contains("M240.0 4.0h0"))
    }

    @Test(
        "the scale of a plot ends at 1, 2 or 5 times a power of ten",
        arguments: [
            (0, 1, 100), (1, 1, 100), (1.1, 2, 100), (3, 5, 100), (5.1, 10, 100), (130, 200, 200),
            (16_384, 20_000, 20_000), (67_108_864, 100_000_000, 100_000_000),
        ] as [(Double, Double, Double)])
    func scale(most: Double, rate: Double, time: Double) {
        #expect(Plot.scale(upTo: most, .rate) == rate)
        #expect(Plot.scale(upTo: most, .time) == time)
    }

    @Test("the scale of times has units")
    func times() {
        let text = text(Plot(points: [.init(at: 0, value: 16_384)], now: 0, unit: .time, label: ""))
        #expect(text.contains("<span>20 ms</span><span>10 ms</span><span>0</span>"))
    }
}
