// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import TestSupport
import Testing

@Suite("Connections that a server binds to a session's user")
struct BoundConnectionTests {
    /// The end of a session.
    enum End: CaseIterable, Sendable {
        case dropped, expired, renewed, reloaded
    }

    private let users = TicketUsers()
    private let any = ListenPoint.tcp(host: "127.0.0.1", port: 0)

    private func proxy(_ upstream: BindingUpstream, _ plan: UpstreamPlan? = nil) throws -> TestProxy {
        try TestProxy(
            try plan ?? upstream.plan([users.login("corp", at: upstream)]), attempts: MemoryAttempts(),
            credentials: users)
    }

    /// Ends the session of the credential `corp`.
    private func end(_ end: End, of proxy: TestProxy, at upstream: BindingUpstream) async throws {
        let gate = proxy.services.gate
        switch end {
        case .dropped: _ = gate.change { $0.sessions.drop { _ in true } }
        case .expired: proxy.clock.advance(by: 3_601)
        case .renewed:
            let login = users.login("corp", at: upstream)
            let key = login.key
            #expect(gate.change { $0.sessions.beginRenewal(key, now: proxy.clock.now) })
            let session = try await NegotiateScheme(office: users, host: "localhost")
                .session(users.value(of: "corp"), now: proxy.clock.now)
            #expect(gate.finish(key, with: .success(session)).isEmpty)
        case .reloaded:
            _ = gate.change { $0.sessions.drop { _ in true } }
            try proxy.server.apply(
                ProxyPlan(
                    listeners: [(point: any, plan: .proxy())],
                    upstreams: [
                        upstream.plan([users.login("corp", at: upstream, name: "other")]).asking(PlanSources(users))
                    ]))
        }
    }

    @Test(
        "after the end of a session no request goes out as its user, and its connections end",
        arguments: End.allCases, BindingUpstream.Wire.allCases)
    func end(how: End, wire: BindingUpstream.Wire) async throws {
        let upstream = try BindingUpstream(wire)
        users.replace("corp", by: "alice")
        let proxy = try proxy(upstream)
        let caller = try proxy.connect()
        for _ in 0..<3 {
            try caller.send(get("/secure/a"))
            #expect(try caller.message().body == "alice")
        }
        users.replace("corp", by: "bob")
        try await end(how, of: proxy, at: upstream)
        for path in ["/open", "/secure/b", "/secure/c"] {
            try caller.send(get(path))
            let (head, body) = try caller.message()
            #expect(body == "bob" || path == "/open" && body == "nobody", "\(path): \(head)\(body)")
        }
        proxy.services.roster.refreshSnapshots()
        #expect(try blockUntil { try !upstream.boundUsers.contains("alice") }, "her connections end")
        try upstream.expectSeparate()
    }

    @Test("a closed latch ends the connections of its user, and no caller goes on as that user")
    func latched() async throws {
        for wire in BindingUpstream.Wire.allCases {
            let upstream = try BindingUpstream(wire)
            let proxy = try proxy(upstream)
            #expect(try proxy.fetch(get("/secure/a")).body == "corp")
            let key = LatchKey(origin: upstream.origin, challenge: "corp", credential: "corp")
            _ = proxy.services.gate.change { $0.sessions.drop { _ in true } }
            await proxy.services.gate.record(
                .rejected(Latch(reason: .rejected, closedAt: proxy.clock.now)),
                of: CredentialUse(key: key, credential: users.value(of: "corp")))
            let (head, body) = try proxy.fetch(get("/secure/b"))
            #expect(head.hasPrefix("HTTP/1.1 503 ") && body.contains("login-latched"), "\(wire): \(head)\(body)")
            #expect(try proxy.fetch(get("/open")).body == "nobody")
            proxy.services.roster.refreshSnapshots()
            #expect(try blockUntil { try upstream.boundUsers.isEmpty }, "\(wire): the connections end")
            try upstream.expectSeparate()
        }
    }

    @Test(
        "a caller's own Negotiate or NTLM is that caller's only, with and without a login",
        arguments: ["Negotiate", "negotiate", "NTLM"], BindingUpstream.Wire.allCases)
    func callersOwn(scheme: String, wire: BindingUpstream.Wire) throws {
        let upstream = try BindingUpstream(wire)
        var keeping = ForwardingPolicy()
        keeping.callerCredentials = .keep
        let plans = try [
            upstream.plan([]), upstream.plan([], forwarding: keeping),
            upstream.plan([users.login("corp", at: upstream)], at: "elsewhere/*"),
            upstream.plan([users.login("corp", at: upstream)], forwarding: keeping),
        ]
        for plan in plans {
            let proxy = try proxy(upstream, plan)
            let (ann, other) = (try proxy.connect(), try proxy.connect())
            for path in ["/secure/a", "/refused", "/secure/b"] {
                try ann.send(get(path, "Authorization: \(scheme) \(Base64.encode("ann".utf8))\r\n"))
                let answer = try ann.message()
                #expect(answer.body == (path == "/refused" ? "denied" : "ann"))
                try other.send(get("/open"))
                #expect(try other.message().body == "nobody")
            }
        }
        try upstream.expectSeparate()
    }

    @Test("the messages of a caller's own handshake go over one connection, and nothing else does")
    func handshake() throws {
        let upstream = try HandshakeUpstream(
            "-: 401 NTLM; type-1: 401 message; type-3: 200", scheme: "NTLM")
        let proxy = try TestProxy(.bank(port: upstream.port))
        let (ann, other) = (try proxy.connect(), try proxy.connect())
        func message(_ number: UInt8) -> String {
            let bytes = Array("NTLMSSP\0".utf8) + [number, 0, 0, 0] + [UInt8](repeating: 0, count: 64)
            return "Authorization: NTLM \(Base64.encode(bytes))\r\n"
        }
        for number in 0..<2 {
            try ann.send(get("/\(number)", message(1)))
            #expect(try ann.message().head.contains("WWW-Authenticate: NTLM TlRM"))
            // Another caller's in between has nothing to do with it.
            try other.send(get("/other-\(number)", message(3)))
            #expect(try other.message().body == "a page")
            try ann.send(get("/\(number)", message(3)))
            #expect(try ann.message().body == "a page")
            // Not on the connection that is ann's now.
            try ann.send(get("/\(number)/after"))
            #expect(try ann.message().head.hasPrefix("HTTP/1.1 401 "))
        }
        #expect(
            upstream.connections == [
                ["GET /0 type-1", "GET /0 type-3"], ["GET /other-0 type-3"], ["GET /0/after", "GET /1/after"],
                ["GET /1 type-1", "GET /1 type-3"], ["GET /other-1 type-3"],
            ])
    }

    @Test("the requests of a held session reuse its connections", arguments: BindingUpstream.Wire.allCases)
    func reused(wire: BindingUpstream.Wire) throws {
        let upstream = try BindingUpstream(wire)
        let proxy = try proxy(upstream)
        let caller = try proxy.connect()
        for number in 0..<20 {
            try caller.send(get("/secure/\(number)"))
            #expect(try caller.message().body == "corp")
        }
        let entries = try upstream.record.filter { $0.user == "corp" }
        #expect(entries.count == 20)
        // Without TLS libcurl before 8.0 cannot reuse a connection of HTTP/2 (curl #10634).
        if wire != .h2c { #expect(Set(entries.map(\.connection)).count == 1) }
        try upstream.expectSeparate()
    }

    @Test("connections and descriptors do not grow over reloads that rename the challenge")
    func reloads() throws {
        for wire in BindingUpstream.Wire.allCases {
            let upstream = try BindingUpstream(wire)
            let proxy = try proxy(upstream)
            func round(_ number: Int) throws {
                try proxy.server.apply(
                    ProxyPlan(
                        listeners: [(point: any, plan: .proxy())],
                        upstreams: [
                            upstream.plan([users.login("corp", at: upstream, name: "corp-\(number)")])
                                .asking(PlanSources(users))
                        ]))
                #expect(try proxy.fetch(get("/secure/\(number)")).body == "corp")
                proxy.expectNoConnections()
            }
            for number in 0..<3 { try round(number) }
            #expect(try blockUntil { try upstream.boundUsers.count <= 1 }, "\(wire): the former connections end")
            let before = try upstream.openConnections
            for number in 3..<15 { try round(number) }
            #expect(try blockUntil { try upstream.boundUsers.count <= 1 }, "\(wire): the former connections end")
            #expect(try upstream.openConnections <= before, "\(wire)")
        }
    }
}
