// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import TestSupport
import Testing

/// A server that accepts the password of `ann` and refuses everybody at `/admin`. The test decides when it answers.
private final class SlowOffice: Sendable {
    private struct State {
        var asked: [String: Int] = [:]
        var held: [String: Signal] = [:]
    }
    private let state = Mutex(State())

    /// Returns the number of such requests: `ann /path`, or `nobody /path` without a password.
    func count(_ request: String) -> Int { state.withLock { $0.asked[request] ?? 0 } }

    /// Delays the answers to such requests, later ones included, until the returned signal is set.
    func hold(_ request: String) -> Signal {
        let signal = Signal()
        state.withLock { $0.held[request] = signal }
        return signal
    }

    func upstream() throws -> AnsweringUpstream {
        try AnsweringUpstream { [self] head, _ in
            let path = head.split(separator: " ").dropFirst().first.map(String.init) ?? ""
            let request = (head.contains("\r\nAuthorization: Basic ") ? "ann " : "nobody ") + path
            let held = state.withLock { state in
                state.asked[request, default: 0] += 1
                return state.held[request]
            }
            Bell.shared.ring()
            held?.wait()
            if path == "/where" { return answer("403 Forbidden", "here") }
            if request.hasPrefix("ann "), !path.hasPrefix("/admin") { return answer("200 OK", "in") }
            return answer(
                "401 Unauthorized", request.hasPrefix("ann ") ? "not you" : "who?",
                "WWW-Authenticate: Basic realm=\"a\"\r\n")
        }
    }
}

/// Detector that blocks the worker at the answer of `/where` until `goesOn` is set.
private struct KeepingDetector: ChallengeDetector {
    let detector: SchemeDetector
    let isKept: Signal
    let goesOn: Signal

    var kind: String { detector.kind }

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        if response.url.path == "/where" {
            isKept.set()
            goesOn.wait()
        }
        return detector.examine(response, hasSession: hasSession)
    }
}

@Suite("Requests that come while a credential is hidden")
struct HiddenCredentialTests {
    private let office = SlowOffice()
    private let isKept = Signal()
    private let goesOn = Signal()

    private func proxy(_ port: UInt16, workers: Int = 1) throws -> TestProxy {
        let origin = Origin(scheme: .http, host: "127.0.0.1", port: port)
        let plan = SchemePlan(
            name: "bank", schemes: [BasicScheme()],
            key: LatchKey(origin: origin, challenge: "bank", credential: "pin"),
            address: WebURL(origin: origin, path: "/"), isProof: false)
        let detector = KeepingDetector(detector: SchemeDetector(plan), isKept: isKept, goesOn: goesOn)
        let login = Authenticator(
            name: "bank", trigger: .detected(detector), isAhead: false,
            key: SessionKey(origin: origin, challenge: "bank", credential: "pin"), credentials: ["pin"],
            makeLogin: { SchemeLogin(plan, challenge: $0.challenge, scope: $0.scope) })
        return try TestProxy(
            .bank(port: port, logins: [login]), workers: workers,
            credentials: FixedCredentials(["pin": ["username": Secret("ann"), "password": Secret("right")]]))
    }

    private func asked(_ proxy: TestProxy, _ request: String, times: Int = 1) {
        proxy.wait("\(request)") { office.count(request) >= times }
    }

    @Test("requests with a hidden credential wait for its confirmation, also at a resource known to refuse it")
    func known() throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port)
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        #expect(try proxy.fetch(get("/admin/1")).body == "not you")
        let answers = office.hold("nobody /app/1")
        let (doubter, caller) = try (proxy.connect(), proxy.connect())
        try doubter.send(get("/admin/2"))
        asked(proxy, "nobody /app/1", times: 3)
        try caller.send(get("/admin/1"))
        asked(proxy, "nobody /admin/1")
        proxy.settle()
        answers.set()
        #expect(try doubter.message().body == "not you")
        #expect(try caller.message().body == "not you")
    }

    /// Delays the news of a confirmation's end for another worker; meanwhile the credential becomes unverified again.
    @Test(
        "requests keep waiting if a credential becomes unverified again before its confirmation",
        arguments: ["GET", "POST"])
    func doubtedAnew(method: String) throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port, workers: 2)
        #expect(try proxy.fetch(get("/app/1")).body == "in")

        // One caller on each worker.
        let (first, second) = try (proxy.connect(), proxy.connect())
        try first.send(get("/where"))
        #expect(isKept.wait())
        let other = try proxy.connect()
        try other.send(get("/app/2"))
        #expect(try other.message().body == "in")
        goesOn.set()
        #expect(try first.message().body == "here")

        let late = office.hold("ann /admin/2")
        try other.send(get("/admin/2"))
        asked(proxy, "ann /admin/2")
        // The newest of the addresses that accepted the credential and ask for it.
        let confirmed = office.hold("ann /app/2")
        try first.send(get("/admin/1"))
        asked(proxy, "ann /app/2", times: 2)
        try second.send("\(method) /app/3 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        proxy.wait("two that wait") { proxy.waiters == 2 }

        // The credential is usable again, and the waiters do not know yet.
        let confirmedAnew = office.hold("nobody /app/2")
        let asked = office.count("nobody /app/2")
        let isFirst = Atomic(true)
        proxy.services.gate.watch { [office] in
            guard isFirst.exchange(false, ordering: .relaxed) else { return }
            late.set()
            _ = Bell.shared.wait { office.count("nobody /app/2") > asked }
        }
        confirmed.set()
        #expect(try first.message().body == "not you")
        proxy.settle()
        confirmedAnew.set()
        #expect(try second.message().body == "in")
        #expect(try other.message().body == "not you")
    }
}
