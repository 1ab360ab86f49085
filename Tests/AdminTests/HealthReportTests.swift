// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

extension HealthReport {
    /// Returns a report with one login for each of `states`, at upstream `bank`.
    static func of(_ states: [SessionState], isAccepting: Bool = true) -> HealthReport {
        HealthReport(
            isAccepting: isAccepting, upstreams: ["bank", "ledger"],
            logins: states.map { Login(upstream: "bank", challenge: "pin", scope: "pay", sessionState: $0) },
            latches: [
                ClosedLatch(
                    Latch(reason: .rejected, closedAt: 5_000, opensAt: nil), challenge: "pin",
                    key: LatchKey(
                        origin: Origin(scheme: .https, host: "bank"), challenge: "pin", credential: "ann"))
            ], figures: ["exchanges": 7], now: 100_000, version: "1.2")
    }
}

extension HealthReport {
    /// Returns the document of `/readyz`.
    func ready(isVerbose: Bool) -> JSONValue { json(HealthDocument(.ready, of: self), isVerbose: isVerbose) }
}

extension UnwrittenState {
    /// A latch that a full disk has refused.
    static let full = UnwrittenState(
        [
            .close(
                LatchKey(origin: Origin(scheme: .https, host: "bank"), challenge: "pin", credential: "ann"),
                digest: [1],
                Latch(reason: .rejected, closedAt: 5_000, opensAt: nil))
        ], directory: "/var/lib/x", reason: "cannot write /var/lib/x/latches.sealed: No space left on device")
}

extension SessionState {
    static let down = SessionState.failing(LoginFailure(.rejected, challenge: "pin", detail: "The PIN was wrong."))

    static let retrying = SessionState.loggingIn(
        waiters: 2, after: LoginFailure(.rejected, challenge: "pin", detail: "The PIN was wrong."))

    /// Returns a session held since second 40, until `end` if given.
    static func held(until end: Int64?) -> SessionState {
        var table = SessionTable<Int>()
        let key = SessionKey(
            origin: Origin(scheme: .https, host: "secret.example"), challenge: "pin", credential: "ann")
        _ = table.request(key, rejected: nil, waiter: 1, now: 40_000)
        let session = Session(
            fields: [InjectedField(name: .authorization, value: Secret("token-value"))], expiresAt: end)
        _ = table.finish(key, with: .success(session), now: 40_000, chance: 0)
        return table.state(of: key, now: 41_000)
    }
}

@Suite("The health report")
struct HealthReportTests {
    @Test("the daemon is ready while it accepts and no login fails; a login not needed yet is not a failure")
    func readiness() {
        #expect(HealthReport.of([]).isReady)
        #expect(HealthReport.of([.cold, .loggingIn(waiters: 3), .held(until: nil)]).isReady)
        #expect(!HealthReport.of([.held(until: nil), .down]).isReady)
        #expect(!HealthReport.of([.held(until: nil), .retrying]).isReady)
        #expect(!HealthReport.of([], isAccepting: false).isReady)
    }

    @Test("a report of N upstreams with a login each costs N times one")
    func growth() {
        let isLinear = growsLinearly(from: 100) { count in
            let names = (0..<count).map { "upstream-\($0)" }
            let report = HealthReport(
                isAccepting: true, upstreams: names,
                logins: names.map {
                    HealthReport.Login(upstream: $0, challenge: "pin", scope: "", sessionState: .cold)
                },
                latches: [], figures: [:], now: 0, version: "1")
            _ = report.ready(isVerbose: true)
        }
        #expect(isLinear)
    }

    @Test("the short health document names the problems and their reasons")
    func short() {
        let document = HealthReport.of([.down], isAccepting: false).ready(isVerbose: false)
        #expect(
            document["reasons"] == [
                "listeners: the daemon is shutting down", "bank/pin: login-rejected: The PIN was wrong.",
            ])
        #expect(document["status"] == "not ready" && document["figures"] == nil)
        #expect(HealthReport.of([.cold]).ready(isVerbose: false)["reasons"] == [])
    }

    @Test("the long health document has each login's state and times, the latches and the figures")
    func long() throws {
        let states: [SessionState] = [.cold, .loggingIn(waiters: 3), .down, .held(until: 130_000), .held(until: nil)]
        let document = HealthReport.of(states).ready(isVerbose: true)
        #expect(document["version"] == "1.2")
        #expect(document["figures"] == ["exchanges": 7])
        #expect(document["upstreams"]?["ledger"] == [])
        guard case .array(let logins)? = document["upstreams"]?["bank"] else {
            Issue.record("no logins")
            return
        }
        #expect(logins.map { $0["state"] } == ["cold", "logging-in", "failing", "held", "held"])
        #expect(logins[1]["waiters"] == 3)
        #expect(logins[2]["code"] == "login-rejected")
        #expect(logins[3]["held_seconds"] == 60)
        #expect(logins[3]["expires_in"] == 30)
        #expect(logins[3]["established_at"] == 40 && logins[3]["expires_at"] == 130)
        // A fifth of its lifetime before the end.
        #expect(logins[3]["renews_in"] == 12)
        #expect(logins[3]["renewals"] == 0)
        #expect(logins[4]["expires_in"] == .null)
        #expect(logins[4]["renews_in"] == .null)
        #expect(
            document["latches"] == [
                [
                    "challenge": "pin", "credential": "ann", "reason": "rejected", "closed_at": 5, "opens_at": .null,
                    "detail": """
                    The server rejected the credential "ann" at 1970-01-01 00:00:05 UTC, so it is not sent again. Change the \
                    credential, or run `countersign unlatch pin`.
                    """, "source": .null,
                ]
            ])
    }

    @Test("a login under way after a failure has the failure's reason, in words and as a code")
    func retrying() {
        let document = HealthReport.of([.retrying]).ready(isVerbose: true)
        #expect(document["status"] == "not ready" && document["checks"]?["bank/pin"] == "logging-in")
        #expect(document["reasons"] == ["bank/pin: login-rejected: The PIN was wrong."])
        guard case .array(let logins)? = document["upstreams"]?["bank"] else {
            Issue.record("no logins")
            return
        }
        #expect(logins.first?["code"] == "login-rejected" && logins.first?["waiters"] == 2)
    }

    @Test("a latch that is only in memory is a reason against readiness, in words; a mark of acceptance is only shown")
    func unwritten() throws {
        var report = HealthReport.of([.cold])
        report.unwritten = .full
        let words =
            "a rejected credential is remembered only in memory, because /var/lib/x cannot be written: cannot write "
            + "/var/lib/x/latches.sealed: No space left on device; after a restart it would be sent again"
        #expect(report.ready(isVerbose: false)["reasons"] == [.string("state: \(words)")])
        #expect(report.ready(isVerbose: true)["unwritten_state"] == [.string(words)])
        let key = LatchKey(origin: Origin(scheme: .https, host: "bank"), challenge: "pin", credential: "ann")
        report.unwritten = UnwrittenState(
            [.accept(key, digest: [1], Acceptance(path: nil, at: 0))], directory: "/x", reason: "full")
        #expect(report.isReady && report.ready(isVerbose: false)["checks"]?["state"] == "unwritten")
        #expect(UnwrittenState([], values: 2, directory: "/x", reason: "full")?.sentences.count == 1)
        #expect(UnwrittenState([], directory: "/x", reason: "") == nil)
    }

    @Test("an expired session has 0 seconds left, not a negative number")
    func ended() {
        let document = HealthReport.of([.held(until: 90_000)]).ready(isVerbose: true)
        guard case .array(let logins)? = document["upstreams"]?["bank"] else {
            Issue.record("no logins")
            return
        }
        #expect(logins.first?["expires_in"] == 0)
    }

    @Test("the health report contains neither a token nor the address of an upstream")
    func secrets() {
        let bytes = HealthReport.of([.held(until: nil)]).ready(isVerbose: true).serialized()
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(!text.contains("token-value") && !text.contains("secret.example"))
    }
}

@Suite("The documents for health probes")
struct HealthDocumentTests {
    private func report(
        _ states: [SessionState] = [.cold], check: CheckReading.State? = nil, isAlive: Bool = true
    ) -> HealthReport {
        var report = HealthReport.of(states)
        report.isAlive = isAlive
        if let check { report.checks["ledger"] = CheckReading(check, since: 0) }
        return report
    }

    private func json(_ document: HealthDocument) -> JSONValue { .object(document.json) }

    @Test("a health document names each upstream and each challenge with its state")
    func states() {
        let document = json(HealthDocument(.ready, of: report([.held(until: nil)], check: .up)))
        #expect(document["status"] == "ready")
        #expect(document["reasons"] == [])
        #expect(
            document["checks"] == [
                "listeners": "accepting", "bank": "unchecked", "bank/pin": "held", "ledger": "up",
            ])
        #expect(document["excluded"] == nil && document["warnings"] == nil)
    }

    @Test("a failed check of an upstream is a reason against readiness; one that has not run is not")
    func checks() {
        let down = HealthDocument(.ready, of: report(check: .down("it answered 503 instead of 200")))
        #expect(!down.isWell)
        #expect(down.reasons == ["ledger: its check failed: it answered 503 instead of 200"])
        #expect(HealthDocument(.ready, of: report(check: .unknown("not checked yet"))).isWell)
    }

    @Test("/livez checks the loops, /readyz the serving, and /healthz both")
    func questions() {
        let stuck = report([.down], isAlive: false)
        #expect(json(HealthDocument(.alive, of: report([.down])))["status"] == "alive")
        #expect(json(HealthDocument(.alive, of: stuck))["status"] == "not alive")
        #expect(HealthDocument(.ready, of: stuck).reasons.count == 1)
        #expect(json(HealthDocument(.healthy, of: stuck))["status"] == "not healthy")
        #expect(HealthDocument(.healthy, of: stuck).reasons.count == 2)
        #expect(json(HealthDocument(.healthy, of: report()))["status"] == "healthy")
    }

    @Test("of a login with several scopes, a failing one is shown first, then a held one, then a cold one")
    func scopes() {
        let failing = HealthDocument(.ready, of: report([.held(until: nil), .down, .cold]))
        #expect(!failing.isWell && json(failing)["checks"]?["bank/pin"] == "failing")
        let held = HealthDocument(.ready, of: report([.cold, .held(until: nil)]))
        #expect(json(held)["checks"]?["bank/pin"] == "held")
    }

    @Test(
        "a login is excluded from readiness by its name, its challenge's, or its upstream's",
        arguments: ["bank/pin", "pin", "bank"])
    func excluded(name: String) {
        let document = HealthDocument(.ready, of: report([.down]), excluding: [name])
        #expect(document.isWell)
        #expect(json(document)["checks"]?["bank/pin"] == nil)
        guard case .array(let excluded)? = json(document)["excluded"] else {
            Issue.record("nothing is excluded")
            return
        }
        #expect(excluded.contains("bank/pin"))
        #expect(excluded.contains("bank") == (name == "bank"))
    }

    @Test(
        "an unknown name in `exclude` is a warning and excludes nothing", arguments: ["nothing", "", "workers", "Bank"])
    func unknown(name: String) {
        let document = HealthDocument(.ready, of: report([.down]), excluding: [name])
        #expect(!document.isWell)
        guard case .array(let warnings)? = json(document)["warnings"] else {
            Issue.record("no warning")
            return
        }
        #expect(warnings.first?.stringValue?.contains("the checks are listeners, bank, bank/pin, ledger") == true)
    }
}
