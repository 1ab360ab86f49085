// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPTypes
internal import Proxy
internal import Secrets

/// The status page of an invented morning, the same in every run: an upstream that is well, one that cannot be reached, one whose
/// credential was rejected, and one with trouble three weeks ago.
enum SamplePage {
    /// 2026-11-26 14:03:07 UTC.
    private static let now: Int64 = 1_795_701_787_000
    private static let day: Int64 = 86_400_000

    /// Returns the document.
    static func html() -> String {
        let history = history()
        let page = StatusPage(
            report: report(history.last), conversations: conversations, intervals: history.log.intervals,
            recent: history.log.recent,
            places: [
                "bank": UpstreamPlace(url: "https://bank.example.com/api/", listeners: ["127.0.0.1:8080"]),
                "ledger": UpstreamPlace(url: "http://10.0.4.17:9302/", listeners: ["127.0.0.1:8080 /ledger/"]),
                "mail": UpstreamPlace(url: "https://mail.example.com/", listeners: ["unix:/run/countersign/mail.sock"]),
                "reports": UpstreamPlace(url: "https://reports.example.com/", listeners: ["127.0.0.1:8081"]),
            ])
        return page.html(nonce: "sample")
    }

    /// Twelve minutes of samples, with a pause in the middle.
    private static func history() -> (log: ProxyHistory, last: ProxyReading) {
        let log = ProxyHistory()
        let (bank, mail, reports) = (
            UpstreamMeter(name: "bank"), UpstreamMeter(name: "mail"), UpstreamMeter(name: "reports")
        )
        var begun: UInt64 = 0
        var replies: [LocalReplyCount: UInt64] = [:]
        func reading() -> ProxyReading {
            var reading = ProxyReading()
            reading.workers = [
                WorkerReading(
                    number: 0, begunExchanges: begun, upstreams: [bank.reading, mail.reading, reports.reading],
                    replies: replies)
            ]
            (reading.connections, reading.connectionLimit) = (12, 1024)
            (reading.exchanges, reading.exchangeLimit) = (3, 4096)
            return reading
        }
        func fail(_ upstream: String, _ code: LocalReply.Code, _ status: Int, _ count: UInt64) {
            replies[LocalReplyCount(upstream: upstream, code: code, status: status), default: 0] += count
            begun += count
        }
        func answer(_ meter: UpstreamMeter, _ status: Int, milliseconds: UInt64, _ count: Int) {
            for _ in 0..<count { meter.ended(.response(status: status), whole: milliseconds * 1_000_000, own: 200_000) }
            begun += UInt64(count)
        }
        fail("reports", .upstreamUnreachable, 502, 9)
        log.add(reading(), now: now - 21 * day)
        answer(reports, 200, milliseconds: 40, 210)
        log.add(reading(), now: now - 20 * day)
        for step in 0..<144 {
            let isPause = (70..<90).contains(step)
            let wave = abs(step % 40 - 20)
            if !isPause {
                answer(bank, 200, milliseconds: 7, 20 + 3 * wave)
                answer(bank, 200, milliseconds: step % 24 == 5 ? 100 : 14, 2)
                if step % 12 == 0 { answer(bank, 404, milliseconds: 6, 1) }
                if step < 60 { answer(mail, 200, milliseconds: 25, 2) }
            }
            if step == 20 { fail("bank", .upstreamTimeout, 504, 1) }
            if step > 110, step % 3 == 1 { fail("ledger", .upstreamUnreachable, 502, 5) }
            if step > 60, step % 20 == 10 {
                fail("mail", step == 70 ? .loginRejected : .loginLatched, step == 70 ? 502 : 503, 1)
            }
            log.add(reading(), now: now - Int64(143 - step) * 5000 - 2000)
        }
        return (log, reading())
    }

    private static func report(_ reading: ProxyReading) -> MetricsReport {
        let rejected = LoginFailure(
            .rejected, challenge: "mail-form",
            detail: "The server rejected the credential \"mail\". Store the right value; it is noticed.")
        var health = HealthReport(
            isAccepting: true, upstreams: ["bank", "ledger", "mail", "reports"],
            logins: [
                .init(
                    upstream: "bank", challenge: "bank-pin", credential: "bank-pin", scope: "",
                    sessionState: held("bank-pin", since: now - 3 * 3_600_000, until: now + 14 * day + 3_600_000)),
                .init(
                    upstream: "ledger", challenge: "ledger-key", credential: "ledger-key", scope: "",
                    sessionState: held("ledger-key", since: now - 6 * day, until: nil)),
                .init(
                    upstream: "mail", challenge: "mail-form", credential: "mail", scope: "",
                    sessionState: .failing(rejected)),
            ],
            latches: [
                ClosedLatch(
                    Latch(reason: .rejected, closedAt: now - 6 * 60_000, opensAt: nil), challenge: "mail-form",
                    key: LatchKey(
                        origin: Origin(scheme: .https, host: "mail.example.com"), challenge: "mail-form",
                        credential: "mail"))
            ], figures: [:], now: now, version: "1.0.0")
        health.checks["bank"] = CheckReading(.up, since: now - 6 * day)
        var process = ProcessReading.now(startedAt: now - 21 * day)
        process.residentBytes = 27_400_000
        var reload = ReloadReading(startedAt: now - 21 * day)
        reload.record(refusal: nil, now: now - 2 * 3_600_000)
        return MetricsReport(
            health: health, proxy: reading, logins: LoginReading(), replay: nil, process: process, reload: reload)
    }

    private static func key(_ challenge: String) -> SessionKey {
        SessionKey(
            origin: Origin(scheme: .https, host: "bank.example.com"), challenge: challenge, credential: challenge)
    }

    private static func held(_ challenge: String, since: Int64, until end: Int64?) -> SessionState {
        var table = SessionTable<Int>()
        let key = key(challenge)
        _ = table.request(key, rejected: nil, waiter: 1, now: since)
        let session = Session(
            fields: [InjectedField(name: .authorization, value: Secret("token-value"))], expiresAt: end)
        _ = table.finish(key, with: .success(session), now: since, chance: 0)
        return table.state(of: key, now: now)
    }

    private static var conversations: [ConversationRecord] {
        [
            ConversationRecord(
                key: key("mail-form"), cause: .request, beganAt: now - 6 * 60_000,
                steps: [
                    .init(after: 0, text: "GET https://mail.example.com/login: 200, a login form"),
                    .init(after: 42, text: "POST https://mail.example.com/login: 200, the login form again"),
                ], took: 87,
                failure: LoginFailure(.rejected, challenge: "mail-form", detail: "The server rejected the credential.")),
            ConversationRecord(
                key: key("bank-pin"), cause: .request, beganAt: now - 3 * 3_600_000,
                steps: [.init(after: 0, text: "preauthorize: 401"), .init(after: 1250, text: "preauthorize: 200")],
                took: 1400),
        ]
    }
}
