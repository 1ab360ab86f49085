// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Synchronization
import TestSupport
import Testing

@Suite("Upstreams asked whether they serve")
struct UpstreamCheckTests {
    private let any = ListenPoint.tcp(host: "127.0.0.1", port: 0)

    private func plan(_ port: UInt16, statuses: Set<Int> = [200], logins: [Authenticator] = []) -> UpstreamPlan {
        var plan = UpstreamPlan.bank(port: port, path: "/api/", logins: logins)
        plan.check = UpstreamCheckPlan(path: "/health?deep=1", statuses: statuses, period: .seconds(10))
        return plan
    }

    /// Returns a proxy whose first check comes after half a second, and the next ones after a period each.
    private func proxy(
        _ plan: UpstreamPlan, workers: Int = 1
    ) throws -> TestProxy {
        try TestProxy(
            workers: workers, ProxyPlan(listeners: [(point: any, plan: .proxy())], upstreams: [plan]),
            chance: { 0.5 })
    }

    private func state(_ proxy: TestProxy) -> CheckReading.State? { proxy.services.checks.all["bank"]?.state }

    @Test("an upstream is up if its check passes and down otherwise, and checks are not counted as exchanges")
    func states() throws {
        let status = Mutex("200 OK")
        let heads = Notes()
        let upstream = try AnsweringUpstream { head, _ in
            heads.add(head)
            return answer(status.withLock { $0 }, "well")
        }
        let proxy = try proxy(plan(upstream.port), workers: 3)
        proxy.pass(.milliseconds(499))
        #expect(upstream.requests == 0)
        proxy.pass(.milliseconds(1))
        proxy.wait("the first answer") { state(proxy) == .up }
        status.withLock { $0 = "503 Service Unavailable" }
        proxy.pass(.seconds(10))
        proxy.wait("another answer") { state(proxy) == .down("it answered 503 instead of 200") }
        #expect(proxy.services.checks.all["bank"]?.status == 503)
        status.withLock { $0 = "200 OK" }
        proxy.pass(.seconds(10))
        proxy.wait("a good one") { state(proxy) == .up }
        let reading = try #require(proxy.services.checks.all["bank"])
        #expect(reading.passed == 2 && reading.failed == 1 && reading.askedAt != nil)
        let sent = heads.all
        #expect(sent.allSatisfy { $0.hasPrefix("GET /api/health?deep=1 HTTP/1.1\r\nHost: 127.0.0.1:") })
        let counts = proxy.reading
        #expect(counts.begunExchanges == 0 && counts.upstreams.allSatisfy { $0.whole.count == 0 })
        #expect(counts.exchanges == 0)
    }

    @Test("an unreachable upstream is down with that reason")
    func unreachable() throws {
        let proxy = try proxy(plan(Ports.next()))
        proxy.pass(.milliseconds(500))
        proxy.wait("the verdict") { if case .down = state(proxy) { true } else { false } }
        #expect(proxy.services.checks.all["bank"]?.askedAt != nil)
        #expect(proxy.services.checks.all["bank"]?.status == nil)
        #expect(try proxy.fetch(get()).head.hasPrefix("HTTP/1.1 502 "))
    }

    @Test("an upstream check logs in if needed, and is not counted as a waiter")
    func login() throws {
        let upstream = try AnsweringUpstream { head, _ in
            head.contains("Authorization: Bearer t") ? answer("204 No Content") : challenge
        }
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port) { number, _, _ in
            await gate.pass()
            return .bearer("t\(number)")
        }
        let proxy = try proxy(plan(upstream.port, statuses: [204], logins: [login]))
        proxy.pass(.milliseconds(500))
        proxy.wait("the login") { proxy.log.count == 1 }
        // The login begins just before the check starts to wait for it.
        for _ in 0..<20 {
            proxy.pass(.milliseconds(100))
            #expect(proxy.waiters == 0)
        }
        gate.open()
        proxy.wait("the login's end") { proxy.log.finished == 1 }
        proxy.settle()
        proxy.pass(.milliseconds(200))
        proxy.wait("the answer") { state(proxy) == .up }
        #expect(proxy.log.count == 1)
        // Callers find the session.
        #expect(try proxy.fetch(get()).head.hasPrefix("HTTP/1.1 204 "))
        #expect(proxy.log.count == 1)
        #expect(proxy.reading.upstreams.first?.challenges == [:])
    }

    @Test("an upstream check starts no login if the latch is closed")
    func latched() async throws {
        let upstream = try AnsweringUpstream { _, _ in challenge }
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("t") }
        let proxy = try proxy(plan(upstream.port, logins: [login]))
        let use = CredentialUse(
            key: LatchKey(origin: login.key.origin, challenge: "bank", credential: "pin"),
            credential: Credential(name: "pin", fields: [:]))
        await proxy.services.gate.record(.rejected(Latch(reason: .rejected, closedAt: 0)), of: use)
        proxy.pass(.milliseconds(500))
        proxy.wait("the first look") {
            if case .unknown(let reason)? = state(proxy) { reason.contains("latch") } else { false }
        }
        #expect(proxy.log.count == 0 && upstream.requests == 0)
        #expect(proxy.services.gate.unlatch("bank") == OpenedLatches(present: 1))
        proxy.pass(.seconds(10))
        proxy.wait("the login") { proxy.log.finished >= 1 }
        proxy.settle()
    }

    @Test("after a reload only its upstreams are checked, and their results stay")
    func reload() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "well") }
        let proxy = try proxy(plan(upstream.port))
        proxy.pass(.milliseconds(500))
        proxy.wait("the first answer") { state(proxy) == .up }
        let listeners = [(point: any, plan: ListenerPlan.proxy())]
        try proxy.server.apply(ProxyPlan(listeners: listeners, upstreams: [plan(upstream.port)]))
        #expect(state(proxy) == .up)
        try proxy.server.apply(ProxyPlan(listeners: listeners, upstreams: [.bank(port: upstream.port)]))
        #expect(proxy.services.checks.all.isEmpty)
        let count = upstream.requests
        #expect(try proxy.fetch(get()).body == "well")
        #expect(upstream.requests == count + 1)
    }
}
