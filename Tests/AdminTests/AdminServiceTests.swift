// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import ChallengeClient
import ChallengeHandling
import Proxy
import Synchronization
import TestSupport
import Testing

@Suite("The admin listener's service")
struct AdminServiceTests {
    /// Operations that the service has requested.
    private let asked = Notes()
    /// Completion that the service passed with the last unlatching.
    private let kept = Box()

    private final class Box: Sendable {
        let whenStored = Mutex<(@Sendable () -> Void)?>(nil)
    }

    private func service(
        isAlive: Bool = true, states: [SessionState] = [], checks: [String: CheckReading] = [:],
        onThread: LaterAnswer.OnThread? = nil
    ) -> AdminService {
        let (asked, kept) = (asked, kept)
        var report = HealthReport.of(states)
        report.isAlive = isAlive
        report.checks = checks
        return AdminService(
            sources: AdminService.Sources(
                report: { [report] in report }, ask: { $0() },
                metrics: { .of(states) },
                page: { StatusPage(report: .of(states), conversations: [], intervals: []) },
                unlatch: { name, opened, whenStored in
                    asked.add("unlatch \(name)")
                    kept.whenStored.withLock { $0 = whenStored }
                    opened(OpenedLatches(present: 2, earlier: 1))
                },
                dropSessions: { name in
                    asked.add("drop \(name ?? "all")")
                    return 3
                },
                onThread: onThread,
                run: { arguments, done in
                    asked.add(arguments.joined(separator: " "))
                    done(arguments[0] == "doctor" ? CommandOutput(exit: 69, output: "o\n", errors: "e\n") : nil)
                }))
    }

    private func ask(
        _ method: String, _ path: String, _ query: String = "", isUnixSocket: Bool = false,
        of service: AdminService? = nil
    ) -> LocalAnswer {
        (service ?? self.service()).answer(
            LocalRequest(method: method, path: path, query: query, isUnixSocket: isUnixSocket))
    }

    private func json(_ answer: LocalAnswer) -> JSONValue? { JSONValue(parsing: answer.body) }

    @Test(
        "every readable resource of the admin listener is served with GET and HEAD",
        arguments: ["/", "/livez", "/readyz", "/healthz", "/status", "/metrics"],
        ["GET", "HEAD"])
    func read(path: String, method: String) {
        let answer = ask(method, path)
        #expect(answer.status == 200)
        #expect(!answer.body.isEmpty)
    }

    @Test(
        "reports are made on the thread for them, and on no worker",
        arguments: ["/", "/livez", "/readyz", "/healthz", "/status", "/metrics", "/probe"])
    func thread(path: String) throws {
        let service = service { [asked] job in
            asked.add("on the thread")
            job()
        }
        let request = LocalRequest(method: "GET", path: path, query: "", isUnixSocket: false)
        let later = try #require(service.later(request))
        later.begin {}
        let onThread = try #require(later.onThread)
        onThread { _ = later.answer() }
        #expect(asked.all == ["on the thread"])
        #expect(service.later(LocalRequest(method: "GET", path: "/x", query: "", isUnixSocket: false)) == nil)
    }

    @Test("a probe reports the last check of its upstream like Prometheus' blackbox exporter")
    func probe() {
        var up = CheckReading(.up, since: 0)
        (up.askedAt, up.nanoseconds, up.status) = (1_764_000_000_500, 12_500_000, 204)
        var down = up
        (down.state, down.status) = (.down("it did not answer"), nil)
        let service = service(checks: [
            "bank": up, "shop": down, "new one": CheckReading(.unknown("not checked yet"), since: 0),
        ])
        let answer = ask("GET", "/probe", "upstream=bank", of: service)
        #expect(answer.status == 200)
        #expect(answer.contentType.hasPrefix("text/plain; version=0.0.4"))
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(
            text.split(separator: "\n").filter { !$0.hasPrefix("#") } == [
                "probe_success 1", "probe_duration_seconds 0.0125", "probe_http_status_code 204",
                "probe_timestamp_seconds 1764000000.500",
            ])
        #expect(text.contains("# TYPE probe_success gauge\n"))
        let failed = ask("GET", "/probe", "upstream=shop", of: service)
        #expect(failed.status == 200)
        #expect(String(decoding: failed.body, as: UTF8.self).contains("\nprobe_http_status_code 0\n"))
        #expect(String(decoding: failed.body, as: UTF8.self).contains("\nprobe_success 0\n"))
        let unasked = String(decoding: ask("GET", "/probe", "upstream=new%20one", of: service).body, as: UTF8.self)
        #expect(unasked.contains("\nprobe_success 0\n") && unasked.contains("\nprobe_timestamp_seconds 0.000\n"))
    }

    @Test(
        "a probe of no upstream that is checked is 400, with the names of those that are",
        arguments: ["", "upstream=x"])
    func unknownProbe(query: String) {
        let checked = service(checks: ["bank": CheckReading(.up, since: 0), "shop": CheckReading(.up, since: 0)])
        let answer = ask("GET", "/probe", query, of: checked)
        #expect(answer.status == 400)
        #expect(String(decoding: answer.body, as: UTF8.self).contains("Those are bank, shop."))
        #expect(String(decoding: ask("GET", "/probe", query).body, as: UTF8.self).contains("None has one."))
    }

    @Test(
        "another method at the admin listener is 405 with the allowed methods",
        arguments: [
            ("POST", "/", "GET, HEAD"),
            ("POST", "/livez", "GET, HEAD, OPTIONS"), ("DELETE", "/readyz", "GET, HEAD, OPTIONS"),
            ("PUT", "/healthz", "GET, HEAD, OPTIONS"), ("POST", "/metrics", "GET, HEAD"),
            ("POST", "/status", "GET, HEAD"), ("POST", "/probe", "GET, HEAD"), ("get", "/status", "GET, HEAD"),
            ("GET", "/unlatch", "POST"),
            ("HEAD", "/sessions/drop", "POST"), ("PUT", "/sessions/drop", "POST"),
        ])
    func methods(method: String, path: String, allow: String) {
        for isUnixSocket in [false, true] {
            let answer = ask(method, path, "name=pin", isUnixSocket: isUnixSocket)
            #expect(answer.status == 405)
            #expect(answer.fields.contains { $0.name == "Allow" && $0.value == allow })
        }
        #expect(asked.all.isEmpty)
    }

    @Test(
        "an unknown path at the admin listener is 404",
        arguments: ["", "/index.html", "//", "/metrics/", "/livez/", "//livez", "/Livez", "/status%20", "*"])
    func unknown(path: String) {
        let answer = ask("GET", path)
        #expect(answer.status == 404)
        #expect(json(answer)?["code"] == "no-route")
    }

    @Test("a stuck loop makes the daemon not alive, and a failing login makes it not ready")
    func notWell() {
        #expect(ask("GET", "/livez", of: service(isAlive: false)).status == 503)
        let failing = service(states: [.down])
        #expect(ask("GET", "/livez", of: failing).status == 200)
        for path in ["/readyz", "/healthz"] {
            let answer = ask("GET", path, of: failing)
            #expect(answer.status == 503)
            #expect(json(answer)?["status"] == (path == "/readyz" ? "not ready" : "not healthy"))
        }
        #expect(ask("GET", "/status", of: failing).status == 200)
    }

    @Test(
        "the long form of a health answer is sent with `verbose`",
        arguments: ["verbose", "verbose=1", "a=b&verbose", "verbose&a"])
    func verbose(query: String) {
        #expect(json(ask("GET", "/readyz", query))?["figures"] != nil)
    }

    @Test("a probe with OPTIONS gets the same answer as one with GET", arguments: ["/livez", "/readyz", "/healthz"])
    func options(path: String) {
        for service in [service(), service(isAlive: false, states: [.down])] {
            let answer = ask("OPTIONS", path, of: service)
            #expect(answer.status == ask("GET", path, of: service).status)
            #expect(answer.fields.contains { $0.name == "Allow" && $0.value == "GET, HEAD, OPTIONS" })
        }
    }

    @Test(
        "health checks are excluded by name, in one list or repeated, percent-encoded or not",
        arguments: [
            ("exclude=bank/pin", 200), ("exclude=bank%2Fpin", 200), ("exclude=ledger,pin", 200),
            ("exclude=ledger&verbose&exclude=pin", 200), ("exclude=", 503), ("exclude", 503), ("exclude=%zz", 503),
            ("exclude=ledger", 503), ("Exclude=pin", 503),
        ])
    func exclude(query: String, status: Int) {
        #expect(ask("GET", "/readyz", query, of: service(states: [.down])).status == status)
    }

    @Test(
        "the long form of a health answer is sent only with `verbose`, and always at /status",
        arguments: ["", "a", "a=verbose", "verbos", "Verbose"])
    func notVerbose(query: String) {
        #expect(json(ask("GET", "/readyz", query))?["figures"] == nil)
        #expect(json(ask("GET", "/status", query))?["figures"] != nil)
    }

    @Test("changes are accepted over the Unix socket only", arguments: ["/unlatch", "/sessions/drop"])
    func changesElsewhere(path: String) {
        let answer = ask("POST", path, "name=pin")
        #expect(answer.status == 403)
        #expect(json(answer)?["code"] == "caller-not-allowed")
        #expect(asked.all.isEmpty)
    }

    @Test("paths in the steps of logins are shown over the Unix socket only")
    func paths() {
        let key = SessionKey(
            origin: Origin(scheme: .https, host: "bank.example"), challenge: "portal", credential: "ann", scope: "")
        let record = ConversationRecord(
            key: key, cause: .request, beganAt: 0,
            steps: [.init(after: 1, text: "GET https://bank.example/ann/private: 200")],
            failure: LoginFailure(.failed, challenge: "portal", detail: "No form at \"/ann/private\"."))
        let service = AdminService(
            sources: AdminService.Sources(
                report: { .of([]) }, ask: { $0() }, metrics: { .of([]) },
                page: {
                    StatusPage(
                        report: .of([]), conversations: [record], intervals: [],
                        places: ["bank": UpstreamPlace(url: "https://bank.example/own/", listeners: ["unix:/run/a"])])
                }, unlatch: { _, _, _ in }, dropSessions: { _ in 0 }, run: { $1(nil) }))
        let text = { (socket: Bool) in
            String(decoding: ask("GET", "/", isUnixSocket: socket, of: service).body, as: UTF8.self)
        }
        #expect(text(true).contains("<code>https://bank.example/own/</code>"))
        #expect(text(false).contains("<code>https://bank.example/…</code>") && text(false).contains("unix:/run/a"))
        for path in ["/status", "/"] {
            for isUnixSocket in [false, true] {
                let answer = ask("GET", path, isUnixSocket: isUnixSocket, of: service)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(text.contains("portal"))
                #expect(text.contains("ann/private") == isUnixSocket, "\(path)")
                #expect(text.contains("bank.example/…: 200") != isUnixSocket, "\(path)")
            }
        }
    }

    @Test("paths in the reason of a failed login are reported over the Unix socket only")
    func pathsOfFailures() {
        let failure = LoginFailure(.failed, challenge: "pin", detail: "No answer to GET /accounts/ann/private.")
        let failing = [SessionState.failing(failure), .loggingIn(waiters: 0, after: failure)]
        let service = AdminService(
            sources: AdminService.Sources(
                report: { .of(failing) }, ask: { $0() }, metrics: { .of(failing) },
                page: { StatusPage(report: .of(failing), conversations: [], intervals: []) }, unlatch: { _, _, _ in },
                dropSessions: { _ in 0 }, run: { $1(nil) }))
        for (path, query) in [("/readyz", ""), ("/readyz", "verbose"), ("/healthz", ""), ("/status", "")] {
            for isUnixSocket in [false, true] {
                let answer = ask("GET", path, query, isUnixSocket: isUnixSocket, of: service)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(text.contains("No answer to GET") && text.contains("ann/private") == isUnixSocket, "\(path)")
            }
        }
        #expect(!String(decoding: ask("GET", "/", of: service).body, as: UTF8.self).contains("ann/private"))
    }

    @Test("paths of files are reported over the Unix socket only")
    func pathsOfFiles() {
        var report = MetricsReport.of([.cold])
        report.health.unwritten = .full
        let source = AnsweringSource(kind: "the keyring", name: "the keyring /var/lib/x/keyring", change: "Change it.")
        for index in report.health.latches.indices { report.health.latches[index].source = source }
        let service = AdminService(
            sources: AdminService.Sources(
                report: { [report] in report.health }, ask: { $0() }, metrics: { [report] in report },
                page: { [report] in StatusPage(report: report, conversations: [], intervals: []) },
                unlatch: { _, _, _ in }, dropSessions: { _ in 0 }, run: { $1(nil) }))
        for (path, query) in [("/readyz", "verbose"), ("/status", ""), ("/", "")] {
            for isUnixSocket in [false, true] {
                let answer = ask("GET", path, query, isUnixSocket: isUnixSocket, of: service)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(text.contains("remembered only in memory"), "\(path)")
                #expect(text.contains("/var/lib/x") == isUnixSocket, "\(path)")
            }
        }
    }

    @Test("login and doctor are run by the daemon for the Unix socket only, with the arguments that are asked for")
    func commands() throws {
        func later(_ path: String, _ query: String) throws -> LocalAnswer {
            let request = LocalRequest(method: "POST", path: path, query: query, isUnixSocket: true)
            let later = try #require(service().later(request))
            let done = Mutex(false)
            later.begin { done.withLock { $0 = true } }
            #expect(done.withLock { $0 })
            return later.answer()
        }
        let doctor = try later("/doctor", "upstream=a%20b&upstream=--here&path=/x&login=1&json=1")
        #expect(doctor.status == 200 && json(doctor) == ["exit": 69, "output": "o\n", "errors": "e\n"])
        let login = try later("/login", "name=pin&name=other")
        #expect(login.status == 503)
        #expect(asked.all == ["doctor --login --json --path=/x -- a b --here", "login -- pin"])
        for path in ["/login", "/doctor"] {
            #expect(service().later(LocalRequest(method: "POST", path: path, query: "", isUnixSocket: false)) == nil)
            #expect(ask("POST", path).status == 403)
            #expect(ask("GET", path, isUnixSocket: true).status == 405)
        }
    }

    @Test(
        "a command gets no path that no request can have, and the answer is 400 with the reason",
        arguments: [
            "/a%20HTTP/1.1%0D%0AHost:%20x%0D%0A%0D%0APOST%20/transfer", "/a%20b", "/a%0Ab", "/a%00b", "/a%09b",
            "/a%7Fb",
            "/a%C3%A9", "/a%23b", "%0D%0A/x", "/a%25zz", "/a?b%20c", "/a?b%0D%0Ac", "//%0a", "/a%5Cb",
        ])
    func unusablePaths(path: String) throws {
        let query = "upstream=u&path=\(path)"
        let request = LocalRequest(method: "POST", path: "/doctor", query: query, isUnixSocket: true)
        #expect(service().later(request) == nil && asked.all.isEmpty)
        let answer = ask("POST", "/doctor", query, isUnixSocket: true)
        #expect(answer.status == 400)
        let reason = json(answer)?["detail"]?.stringValue ?? ""
        #expect(reason.hasPrefix("The parameter path of /doctor is no path that a request can have."), "\(reason)")
        #expect(ask("POST", "/doctor", query).status == 403)
    }

    @Test("a command gets each path that a request can have, and no unknown parameter or name with a line end")
    func commandParameters() throws {
        func run(_ path: String, _ query: String) throws -> LaterAnswer? {
            let later = service().later(LocalRequest(method: "POST", path: path, query: query, isUnixSocket: true))
            later?.begin {}
            return later
        }
        for (path, wanted) in [
            ("/a%2520b%3Fq=%255B", "/a%20b?q=%5B"), ("x/y", "x/y"), ("/a?b[]=1", "/a?b[]=1"), ("", ""),
        ] {
            _ = try #require(try run("/doctor", "path=\(path)"))
            #expect(asked.all.last == "doctor --path=\(wanted) --")
        }
        for (path, query, words) in [
            ("/doctor", "pth=/x", "/doctor has no such parameter. It has login, json, path, upstream."),
            ("/doctor", "here=1", "no such parameter"), ("/login", "path=/x", "no such parameter"),
            ("/login", "name=a%0Ab", "not a name"), ("/doctor", "upstream=a%00", "not a name"),
            ("/doctor", "upstream=a%C2%9Bb", "not a name"), ("/doctor", "upstream=a&path=/ok&path=/a%20b", "no path"),
        ] {
            #expect(try run(path, query) == nil)
            let answer = ask("POST", path, query, isUnixSocket: true)
            #expect(answer.status == 400)
            #expect(json(answer)?["detail"]?.stringValue?.contains(words) == true, "\(query)")
        }
    }

    @Test("sessions are dropped by the name of their challenge, or all of them")
    func drop() {
        #expect(json(ask("POST", "/sessions/drop", isUnixSocket: true)) == ["dropped": 3])
        #expect(json(ask("POST", "/sessions/drop", "name=pin", isUnixSocket: true)) == ["dropped": 3])
        #expect(json(ask("POST", "/sessions/drop", "x&name=a=b", isUnixSocket: true)) == ["dropped": 3])
        #expect(asked.all == ["drop all", "drop pin", "drop a=b"])
    }

    @Test("a latch is opened by the name of its challenge, which is required")
    func unlatch() {
        func unlatch(_ query: String) -> LocalAnswer? {
            let later = service().later(
                LocalRequest(method: "POST", path: "/unlatch", query: query, isUnixSocket: true))
            later?.begin {}
            return later?.answer()
        }
        #expect(unlatch("name=pin").flatMap(json) == ["opened": 2, "earlier": 1])
        for query in ["", "name", "name=", "other=pin"] { #expect(unlatch(query)?.status == 400) }
        #expect(asked.all == ["unlatch pin"])
    }

    @Test("an unlatching is answered when it is on disk")
    func unlatchedLater() throws {
        let request = LocalRequest(method: "POST", path: "/unlatch", query: "name=pin", isUnixSocket: true)
        let later = try #require(service().later(request))
        let told = Notes()
        later.begin { told.add("kept") }
        #expect(asked.all == ["unlatch pin"])
        #expect(told.all.isEmpty)
        let whenStored = try #require(kept.whenStored.withLock { $0 })
        whenStored()
        #expect(told.all == ["kept"])
        #expect(json(later.answer()) == ["opened": 2, "earlier": 1])
    }

    @Test("an unlatching without a name, or over TCP, opens nothing")
    func unlatchedNothing() throws {
        let nameless = LocalRequest(method: "POST", path: "/unlatch", query: "", isUnixSocket: true)
        let later = try #require(service().later(nameless))
        let told = Notes()
        later.begin { told.add("done") }
        #expect(told.all == ["done"])
        #expect(later.answer().status == 400)
        let other = LocalRequest(method: "POST", path: "/unlatch", query: "name=pin", isUnixSocket: false)
        #expect(service().answer(other).status == 403)
        if service().later(other) != nil { Issue.record("it would be answered later") }
        #expect(asked.all.isEmpty)
    }
}
