// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import TestSupport
import Testing

@Suite("Counters of exchanges")
struct ExchangeMeterTests {
    private let any = ListenPoint.tcp(host: "127.0.0.1", port: 0)

    private func statuses(_ reading: UpstreamReading?) -> [Int: UInt64] {
        Dictionary(uniqueKeysWithValues: (reading?.responses ?? []).map { ($0.status, $0.count) })
    }

    private func challenges(_ proxy: TestProxy) -> [ChallengeCount.Outcome: UInt64] {
        let counts = proxy.reading.upstreams.first?.challenges ?? [:]
        return Dictionary(uniqueKeysWithValues: counts.map { ($0.key.outcome, $0.value) })
    }

    @Test("responses are counted by their status, on all workers together, and each has its time")
    func responses() throws {
        let upstream = try AnsweringUpstream { head, _ in
            head.hasPrefix("GET /missing") ? answer("404 Not Found") : answer("200 OK", "in")
        }
        let proxy = try TestProxy(.bank(port: upstream.port), workers: 3)
        for _ in 0..<10 {
            let caller = try proxy.connect()
            for path in ["/", "/missing", "/"] {
                try caller.send(get(path))
                _ = try caller.message()
            }
        }
        let reading = proxy.reading
        #expect(reading.workers.map(\.number) == [0, 1, 2] && reading.late == [])
        #expect(reading.begunExchanges == 30)
        let bank = reading.upstreams.first
        #expect(bank?.name == "bank")
        #expect(statuses(bank) == [200: 20, 404: 10])
        #expect(bank?.whole.count == 30 && bank?.own.count == 30)
        #expect(bank?.own.nanoseconds == 0 && bank?.whole.nanoseconds == 0, "no time has passed")
        #expect(reading.replies == [:])
    }

    @Test("the time of the upstream is in the total duration and not in our part")
    func shares() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        proxy.pass(.milliseconds(300))
        try server.send(answer("200 OK", "in"))
        _ = try caller.message()
        let bank = proxy.reading.upstreams.first
        #expect(bank?.whole.nanoseconds == 300_000_000)
        #expect(bank?.own.nanoseconds == 0)
    }

    @Test("local replies are counted by upstream, code and status; before routing, without an upstream")
    func replies() throws {
        let proxy = try TestProxy(.bank(port: Ports.next()))
        #expect(try proxy.fetch(get()).head.hasPrefix("HTTP/1.1 502 "))
        #expect(try proxy.fetch("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").head.hasPrefix("HTTP/1.1 421 "))
        #expect(try proxy.fetch("GET / HTTP/3.7\r\nHost: localhost\r\n\r\n").head.hasPrefix("HTTP/1.1 505 "))
        let reading = proxy.reading
        #expect(
            reading.replies == [
                LocalReplyCount(upstream: "bank", code: .upstreamUnreachable, status: 502): 1,
                LocalReplyCount(upstream: "", code: .hostNotAllowed, status: 421): 1,
                LocalReplyCount(upstream: "", code: .badRequest, status: 505): 1,
            ])
        #expect(statuses(reading.upstreams.first) == [:])
        #expect(reading.upstreams.first?.whole.count == 1)
    }

    @Test("a caller that leaves and a response that breaks off are counted as such")
    func cutOff() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let gone = try proxy.connect()
        try gone.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        gone.reset()
        proxy.expectNoConnections()
        let caller = try proxy.connect()
        try caller.send(get())
        let other = try upstream.accept()
        _ = try other.head()
        try other.send("HTTP/1.1 206 Partial Content\r\nContent-Length: 9\r\n\r\nabc")
        other.close()
        _ = try caller.readAll()
        let bank = proxy.reading.upstreams.first
        #expect(bank?.lostCallers == 1 && bank?.brokenResponses == 1)
        #expect(statuses(bank) == [206: 1])
        #expect(bank?.whole.count == 0)
    }

    @Test("an upgrade counts as an exchange that ends with its 101")
    func tunnel() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/", "Connection: Upgrade\r\nUpgrade: echo\r\n"))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        _ = try caller.head()
        let open = proxy.reading
        #expect(statuses(open.upstreams.first) == [101: 1])
        #expect(open.exchanges == 1 && open.tunnels == 1)
        caller.reset()
        proxy.expectNoConnections()
        let closed = proxy.reading
        #expect(statuses(closed.upstreams.first) == [101: 1])
        #expect(closed.upstreams.first?.lostCallers == 0 && closed.exchanges == 0)
    }

    @Test("an answered challenge counts once for all waiters, and a failed one counts for each")
    func challenges() throws {
        let upstream = try AnsweringUpstream { head, _ in
            head.contains("Bearer t") ? answer("200 OK", "in") : challenge
        }
        let login = Authenticator.scripted(port: upstream.port) { number, _, _ async throws(LoginFailure) in
            if number == 1 { throw .rejected }
            return .bearer("t")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        #expect(try proxy.fetch(get()).head.hasPrefix("HTTP/1.1 502 "))
        #expect(challenges(proxy) == [.failed: 1])
        #expect(try proxy.fetch(get()).body == "in")
        #expect(try proxy.fetch(get()).body == "in")
        #expect(challenges(proxy) == [.failed: 1, .answered: 1])
        #expect(
            proxy.reading.replies == [LocalReplyCount(upstream: "bank", code: .loginRejected, status: 502): 1])
    }

    @Test("a refusal after a new login counts as passed")
    func passed() throws {
        let upstream = try AnsweringUpstream { _, _ in challenge }
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("t") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        #expect(try proxy.fetch(get()).head.hasPrefix("HTTP/1.1 401 "))
        #expect(challenges(proxy) == [.answered: 1, .passed: 1])
    }

    @Test("a reload never decreases a counter, even if it removes the upstream for a while")
    func reload() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try TestProxy(.bank(port: upstream.port), workers: 2)
        for number in 1...3 {
            _ = try proxy.fetch(get())
            #expect(statuses(proxy.reading.upstreams.first) == [200: UInt64(number)])
            try proxy.server.apply(ProxyPlan(listeners: [(point: any, plan: .proxy())], upstreams: []))
            #expect(statuses(proxy.reading.upstreams.first) == [200: UInt64(number)])
            try proxy.server.apply(
                ProxyPlan(listeners: [(point: any, plan: .proxy())], upstreams: [.bank(port: upstream.port)]))
        }
    }
}
