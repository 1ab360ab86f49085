// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import HTTPWire
import Proxy
import Secrets
import TestSupport
import Testing

@Suite("A listener that knows its callers by tokens")
struct TokenCallerTests {
    private static let tokens = ["ci": "0123456789abcdef-ci", "backup": "0123456789abcdef-backup"]

    /// A proxy with such a listener, and an upstream that answers with the head of each request.
    private struct Rig {
        let proxy: TestProxy
        let upstream: AnsweringUpstream
        let tokens = CallerTokens()

        init(
            field: String = "Authorization", known: [String: String] = TokenCallerTests.tokens,
            service: ListenerPlan.Service = .proxy, forwarding: ForwardingPolicy = ForwardingPolicy(),
            _ plan: ((UInt16) -> UpstreamPlan)? = nil
        ) throws {
            for (name, token) in known { tokens.set(Secret(token), of: name) }
            upstream = try AnsweringUpstream { head, _ in answer("200 OK", head) }
            let listener = ListenerPlan(
                name: "test", service: service,
                router: Router(routes: [Router.Route(path: "/only", upstream: "bank")], fallback: nil),
                hosts: HostPolicy(),
                tokens: CallerTokenRule(field: CallerField(field), credentials: ["ci", "backup"], tokens: tokens))
            proxy = try TestProxy(
                ProxyPlan(
                    listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: listener)],
                    upstreams: [plan?(upstream.port) ?? .bank(port: upstream.port, forwarding: forwarding)]))
        }

        func ask(_ fields: String = "", line: String = "GET /only/a HTTP/1.1", host: String = "localhost") throws -> (
            head: String, body: String
        ) {
            try proxy.fetch("\(line)\r\nHost: \(host)\r\n\(fields)\r\n")
        }
    }

    private func bearer(_ name: String) -> String { "Authorization: Bearer \(Self.tokens[name] ?? name)\r\n" }

    @Test("a request without a valid token is 401, and is neither examined nor forwarded")
    func refused() throws {
        let rig = try Rig()
        for fields in ["", bearer("wrong"), "Authorization: Basic Y2k6eA==\r\n", bearer("ci") + bearer("ci")] {
            let (head, body) = try rig.ask(fields)
            #expect(head.hasPrefix("HTTP/1.1 401 ") && head.contains("\r\nWWW-Authenticate: Bearer\r\n"))
            #expect(head.contains("\r\nConnection: close\r\n"))
            #expect(body.contains("\"code\":\"caller-not-known\"") && !body.contains("0123456789"))
        }
        // Host and path make no difference, nor do requests that the listener answers itself.
        for (line, host) in [
            ("GET /nowhere HTTP/1.1", "localhost"), ("GET /only HTTP/1.1", "evil.example"),
            ("OPTIONS * HTTP/1.1", "localhost"), ("TRACE /only HTTP/1.1", "localhost"),
        ] {
            let head = try rig.ask("Max-Forwards: 0\r\n", line: line, host: host).head
            #expect(head.hasPrefix("HTTP/1.1 401 "), "\(line)")
        }
        #expect(rig.upstream.requests == 0)
        #expect(try rig.ask(bearer("ci"), line: "GET /nowhere HTTP/1.1").head.hasPrefix("HTTP/1.1 404 "))
        #expect(try rig.ask(bearer("ci"), host: "evil.example").head.hasPrefix("HTTP/1.1 421 "))
    }

    @Test("each request of a connection needs a token, and a refused one ends the connection")
    func everyRequest() throws {
        let rig = try Rig()
        let caller = try rig.proxy.connect()
        for _ in 0..<2 {
            try caller.send("GET /only HTTP/1.1\r\nHost: localhost\r\n\(bearer("ci"))\r\n")
            #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 "))
        }
        try caller.send(
            "GET /only HTTP/1.1\r\nHost: localhost\r\n\r\nGET /only HTTP/1.1\r\nHost: localhost\r\n\(bearer("ci"))\r\n")
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 401 "))
        try caller.expectEnd()
        #expect(rig.upstream.requests == 2)
    }

    @Test(
        "the caller's token is not forwarded, in any field and any imitation",
        arguments: ["Authorization", "X-Caller-Token"])
    func stripped(field: String) throws {
        let rig = try Rig(field: field)
        let own = field == "Authorization" ? bearer("ci") : "x-CALLER-token: \(Self.tokens["ci"] ?? "")\r\n"
        let (head, body) = try rig.ask("Before: 1\r\n\(own)After: 2\r\nConnection: \(field)\r\n")
        #expect(head.hasPrefix("HTTP/1.1 200 "))
        #expect(body.contains("Before: 1\r\nAfter: 2\r\n") && !body.contains("0123456789"))
        // If another field has the token, `Authorization` is the caller's own.
        if field != "Authorization" {
            #expect(try rig.ask(own + "Authorization: Basic b3du\r\n").body.contains("Authorization: Basic b3du\r\n"))
        }
    }

    @Test("a trailer with the token's name is not forwarded")
    func trailer() throws {
        let rig = try Rig(field: "X-Caller-Token")
        let caller = try rig.proxy.connect()
        try caller.send(
            "POST /only HTTP/1.1\r\nHost: localhost\r\nX-Caller-Token: \(Self.tokens["ci"] ?? "")\r\n"
                + "Transfer-Encoding: chunked\r\nTrailer: X-Caller-Token\r\n\r\n1\r\na\r\n0\r\nX-Caller-Token: s3cret\r\n\r\n"
        )
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 200 ") && !body.contains("s3cret"))
    }

    @Test("a caller's token in Authorization is not a credential for the upstream")
    func callerCredentials() throws {
        for policy in [ForwardingPolicy.CallerCredentials.keep, .refuse] {
            let rig = try Rig(forwarding: ForwardingPolicy(callerCredentials: policy))
            let (head, body) = try rig.ask(bearer("ci"))
            #expect(head.hasPrefix("HTTP/1.1 200 ") && !body.contains("Authorization"), "\(policy)")
        }
    }

    @Test("while a token cannot be read the others work, and an unknown one is 503, since it may be the missing one")
    func missing() throws {
        let rig = try Rig(known: ["ci": Self.tokens["ci"] ?? ""])
        #expect(try rig.ask(bearer("ci")).head.hasPrefix("HTTP/1.1 200 "))
        for fields in ["", bearer("backup"), bearer("wrong")] {
            let (head, body) = try rig.ask(fields)
            #expect(head.hasPrefix("HTTP/1.1 503 ") && body.contains("\"code\":\"no-credential\""))
            #expect(!body.contains("backup"), "a stranger learns no name")
        }
        rig.tokens.set(Secret(Self.tokens["backup"] ?? ""), of: "backup")
        #expect(try rig.ask(bearer("backup")).head.hasPrefix("HTTP/1.1 200 "))
        #expect(try rig.ask(bearer("wrong")).head.hasPrefix("HTTP/1.1 401 "))
        rig.tokens.set(nil, of: "ci")
        #expect(try rig.ask(bearer("ci")).head.hasPrefix("HTTP/1.1 503 "))
    }

    @Test("each token's requests carry the session of that caller and no other, over one connection as well")
    func identities() throws {
        func login(_ name: String, port: UInt16) -> Authenticator {
            Authenticator(
                name: "bank", trigger: .bearer(realm: nil), isAhead: true,
                key: SessionKey(
                    origin: Origin(scheme: .http, host: "127.0.0.1", port: port), challenge: "bank", credential: name),
                credentials: [name]
            ) { _ in ScriptedLogin(counter: LoginCounter()) { _, _ in .bearer(name) } }
        }
        let rig = try Rig { port in
            var others = Authenticators()
            others.add(login("others", port: port))
            return UpstreamPlan(
                name: "bank", base: WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: port), path: "/"),
                logins: others,
                identities: [
                    (
                        callers: [.token("ci"), .user(getuid())],
                        plan: .bank(port: port, logins: [login("own", port: port)])
                    )
                ])
        }
        let caller = try rig.proxy.connect()
        for _ in 0..<3 {
            for (name, session) in [("ci", "own"), ("backup", "others")] {
                try caller.send("GET /only HTTP/1.1\r\nHost: localhost\r\n\(bearer(name))\r\n")
                let body = try caller.message().body
                #expect(body.contains("Authorization: Bearer \(session)\r\n"), "\(name)")
                #expect(!body.contains("0123456789"))
            }
        }
    }

    @Test("another proxy that sends auth requests over TCP needs its token, and no user")
    func authRequests() throws {
        let rig = try Rig(field: "X-Caller-Token", service: .authRequests)
        let line = "GET /authority/only HTTP/1.1"
        let head = try rig.ask("X-Caller-Token: \(Self.tokens["ci"] ?? "")\r\n", line: line).head
        #expect(head.hasPrefix("HTTP/1.1 200 ") && !head.contains("0123456789"))
        // 401 would make nginx ask elsewhere.
        let refused = try rig.ask("X-Caller-Token: wrong\r\n", line: line).head
        #expect(refused.hasPrefix("HTTP/1.1 403 ") && refused.contains("\r\nCountersign-Code: caller-not-known\r\n"))
    }
}
