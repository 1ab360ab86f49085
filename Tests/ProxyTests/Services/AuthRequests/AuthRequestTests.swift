// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import HTTPTypes
import Proxy
import Secrets
import TestSupport
import Testing

/// A proxy with an auth-request listener, and an upstream that must not get any request.
struct AuthRequestRig {
    let proxy: TestProxy
    let upstream: AnsweringUpstream
    let arrived: Arrived

    final class Arrived: Sendable {
        let heads = Notes()
    }

    init(
        _ plan: (UInt16) -> UpstreamPlan, router: Router = Router(fallback: "bank"), browsers: BrowserRule = .refuse,
        users: Set<UInt32>? = [getuid()], workers: Int = 1, limits: WorkerLimits = WorkerLimits()
    ) throws {
        let arrived = Arrived()
        self.arrived = arrived
        upstream = try AnsweringUpstream { head, _ in
            arrived.heads.add(head)
            return answer("200 OK", "in")
        }
        let listener = ListenerPlan(
            name: "test", service: .authRequests, router: router, hosts: HostPolicy(names: ["bank.example"]),
            users: users, browsers: browsers)
        proxy = try TestProxy(
            workers: workers, limits: limits,
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: listener)],
                upstreams: [plan(upstream.port)]))
    }

    /// Returns the head of the answer to an auth request by path.
    func ask(_ path: String = "/a", method: String = "GET", host: String = "bank.example", _ fields: String = "") throws
        -> String
    {
        try proxy.fetch("\(method) /authority\(path) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n").head
    }

    /// Heads that reached the upstream.
    var heads: [String] { arrived.heads.all }
}

/// Returns the auth request of an nginx.
func authRequest(_ method: String, _ uri: String, host: String = "bank.example", _ fields: String = "") -> String {
    "GET /authority HTTP/1.1\r\nHost: own\r\nX-Forwarded-Method: \(method)\r\nX-Forwarded-Uri: \(uri)\r\n"
        + "X-Forwarded-Host: \(host)\r\n\(fields)\r\n"
}

@Suite("Auth requests of another proxy")
struct AuthRequestTests {
    private func bearer(_ port: UInt16, expiresIn: Int64? = nil) -> Authenticator {
        .scripted(port: port) { number, _, conversation in
            .bearer("t\(number)", expiresAt: expiresIn.map { conversation.now() + $0 * 1000 })
        }
    }

    @Test("the session is established before the first auth request's answer, and reused; nothing goes upstream")
    func fields() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [bearer(port)]) }
        let caller = try rig.proxy.connect()
        for _ in 0..<3 {
            try caller.send(authRequest("POST", "/a?b=c"))
            let (head, body) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 200 ") && body.isEmpty)
            #expect(head.contains("\r\nAuthorization: Bearer t1\r\n"))
            #expect(head.contains("\r\nCache-Control: max-age=10\r\n"))
            #expect(head.contains("\r\nContent-Length: 0\r\n"))
        }
        #expect(rig.proxy.log.count == 1 && rig.heads.isEmpty)
    }

    @Test("one login serves all concurrent auth requests, on any number of workers")
    func singleFlight() throws {
        let rig = try AuthRequestRig({ port in .bank(port: port, logins: [bearer(port)]) }, workers: 2)
        let callers = try (0..<40).map { _ in try rig.proxy.connect() }
        for (number, caller) in callers.enumerated() { try caller.send(authRequest("GET", "/\(number)")) }
        for caller in callers { #expect(try caller.message().head.contains("\r\nAuthorization: Bearer t1\r\n")) }
        #expect(rig.proxy.log.count == 1)
    }

    @Test("an auth request's answer may be cached until the session's renewal, for ten seconds at most")
    func lifetime() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [bearer(port, expiresIn: 60)]) }
        #expect(try rig.ask().contains("max-age=10\r\n"))
        // The renewal is due a fifth of the lifetime before the end, or randomly up to a quarter of that later.
        rig.proxy.clock.advance(by: 44)
        let head = try rig.ask()
        let seconds = head.firstRange(of: "max-age=").flatMap { Int(head[$0.upperBound...].prefix(while: \.isNumber)) }
        #expect((4...7).contains(seconds ?? 0), "\(head)")
        rig.proxy.clock.advance(by: 8)
        #expect(try rig.ask().contains("Cache-Control: no-store\r\n"))
        rig.proxy.wait("the renewal") { rig.proxy.log.finished == 2 }
        rig.proxy.settle()
        #expect(try rig.ask().contains("Authorization: Bearer t2\r\n"))
    }

    @Test("a failed login is a denial that says why, and is not tried again for everyone")
    func denial() throws {
        let rig = try AuthRequestRig { port in
            let login = Authenticator.scripted(port: port) { _, _, _ async throws(LoginFailure) in throw .failed }
            return .bank(port: port, logins: [login])
        }
        for _ in 0..<3 {
            let (head, body) = try rig.proxy.fetch(authRequest("GET", "/a"))
            #expect(head.hasPrefix("HTTP/1.1 403 "))
            #expect(head.contains("\r\nCountersign-Code: login-failed\r\n"))
            #expect(head.contains("\r\nCountersign-Detail: The login server is down.\r\n"))
            #expect(head.contains("\r\nCache-Control: no-store\r\n"))
            #expect(head.contains("details=\"login-failed\""))
            #expect(body.contains("\"status\":403,") && body.contains("\"code\":\"login-failed\""))
        }
        #expect(rig.proxy.log.count == 1)
    }

    @Test("an auth request that does not say what it is about is denied with bad-request")
    func unclear() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [bearer(port)]) }
        for request in [get("/a"), get("/authority"), authRequest("GET", "*")] {
            let head = try rig.proxy.fetch(request).head
            #expect(head.hasPrefix("HTTP/1.1 403 ") && head.contains("Countersign-Code: bad-request\r\n"))
        }
        #expect(rig.proxy.log.count == 0)
    }

    @Test("the request in question of an auth request is admitted and routed, not the auth request")
    func admission() throws {
        let router = Router(
            routes: [
                Router.Route(path: "/bank/", methods: ["GET"], upstream: "bank"),
                Router.Route(host: "other.example", upstream: "gone"),
            ], fallback: nil)
        let rig = try AuthRequestRig({ port in .bank(port: port, logins: [bearer(port)]) }, router: router)
        func code(_ request: String) throws -> String {
            let head = try rig.proxy.fetch(request).head
            return head.split(separator: "\r\n").first { $0.hasPrefix("Countersign-Code") }.map(String.init)
                ?? String(head.prefix(12))
        }
        #expect(try code(authRequest("GET", "/bank/a")) == "HTTP/1.1 200")
        #expect(try code(authRequest("POST", "/bank/a")) == "Countersign-Code: no-route")
        #expect(try code(authRequest("GET", "/b%61nk/../bank/a")) == "Countersign-Code: no-route")
        #expect(try code(authRequest("GET", "/bank/..;/a")) == "Countersign-Code: bad-request")
        #expect(try code(authRequest("GET", "/bank/a", host: "evil.example")) == "Countersign-Code: host-not-allowed")
        #expect(try code(authRequest("TRACE", "/bank/a")) == "Countersign-Code: method-not-allowed")
        #expect(
            try code(authRequest("GET", "/bank/a", "Sec-Fetch-Site: cross-site\r\n"))
                == "Countersign-Code: caller-not-allowed")
    }

    private func code(_ rig: AuthRequestRig, _ request: String) throws -> String {
        let head = try rig.proxy.fetch(request).head
        return head.split(separator: "\r\n").first { $0.hasPrefix("Countersign-Code") }.map(String.init)
            ?? String(head.prefix(12))
    }

    @Test("a page whose name was made to point here gets no session, whatever it says the request is for")
    func rebinding() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [bearer(port)]) }
        for host in ["localhost", "bank.example"] {
            let question = authRequest("GET", "/a", host: host).replacing(
                "Host: own\r\n", with: "Host: evil.example:8081\r\n")
            #expect(try code(rig, question) == "Countersign-Code: host-not-allowed")
        }
        #expect(rig.proxy.log.count == 0)
        for own in ["localhost", "127.0.0.1:8081", "countersign_auth", "bank.example", "[::1]:8081"] {
            let question = authRequest("GET", "/a").replacing("Host: own\r\n", with: "Host: \(own)\r\n")
            #expect(try code(rig, question) == "HTTP/1.1 200")
        }
    }

    @Test("a question with browser fields of its own, rather than the caller's, is refused")
    func ownPage() throws {
        for browsers in [BrowserRule.refuse, .allow] {
            let rig = try AuthRequestRig({ port in .bank(port: port, logins: [bearer(port)]) }, browsers: browsers)
            func ask(_ origin: String) throws -> String {
                try code(
                    rig,
                    authRequest("GET", "/a", "Origin: \(origin)\r\n")
                        .replacing("Host: own\r\n", with: "Host: localhost:8081\r\n"))
            }
            #expect(try ask("http://localhost:8081") == "Countersign-Code: caller-not-allowed")
            // The other proxy's callers may use TLS.
            #expect(try ask("http://bank.example") == "HTTP/1.1 200")
            #expect(try ask("https://bank.example") == "HTTP/1.1 200")
            #expect(try ask("https://bank.example:8443").hasPrefix("HTTP") == (browsers == .allow))
        }
    }

    @Test("over TCP nobody gets a session from an auth-request listener without users")
    func withoutUsers() throws {
        let rig = try AuthRequestRig({ port in .bank(port: port, logins: [bearer(port)]) }, users: nil)
        #expect(try code(rig, authRequest("GET", "/a")) == "Countersign-Code: caller-not-allowed")
        #expect(try rig.ask().contains("Countersign-Code: caller-not-allowed\r\n"))
        let other = try AuthRequestRig({ port in .bank(port: port, logins: [bearer(port)]) }, users: [getuid() + 1])
        #expect(try code(other, authRequest("GET", "/a")) == "Countersign-Code: caller-not-allowed")
        #expect(rig.proxy.log.count + other.proxy.log.count == 0)
    }

    @Test("over a Unix socket an auth-request listener needs no users, and takes a question under any name")
    func unixSocket() throws {
        let path = "/tmp/countersign-auth-\(getpid()).sock"
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let listener = ListenerPlan(
            name: "test", service: .authRequests, router: Router(fallback: "bank"),
            hosts: HostPolicy(names: ["bank.example"]))
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: .unix(path: path, mode: 0o600), plan: listener)],
                upstreams: [.bank(port: upstream.port, logins: [bearer(upstream.port)])]))
        let peer = try Peer(path: path)
        try peer.send(authRequest("GET", "/a").replacing("Host: own\r\n", with: "Host: some.other.example\r\n"))
        #expect(try peer.message().head.contains("\r\nAuthorization: Bearer t1\r\n"))
        // The original request is checked as usual.
        try peer.send(authRequest("GET", "/a", host: "evil.example"))
        #expect(try peer.message().head.contains("Countersign-Code: host-not-allowed\r\n"))
        _ = proxy
    }

    @Test("a session that the server has not accepted is given to nobody: who meets the challenge proves it")
    func unverified() throws {
        let rig = try AuthRequestRig { port in
            let login = Authenticator.scripted(port: port, trigger: .detected(PasswordDetector())) { _, _, _ in
                .password("right")
            }
            return .bank(port: port, logins: [login])
        }
        for _ in 0..<2 {
            let head = try rig.ask()
            #expect(head.hasPrefix("HTTP/1.1 200 ") && !head.contains("\r\nAuthorization: "))
            #expect(head.contains("Cache-Control: no-store\r\n"))
        }
        #expect(rig.heads.isEmpty)
    }

    @Test("a caller's own Authorization is the policy's to decide, and what depends on it says so")
    func credentials() throws {
        let own = "Authorization: Basic own\r\n"
        for (policy, expected) in [
            (ForwardingPolicy.CallerCredentials.replace, "Bearer t1"), (.keep, nil), (.refuse, nil),
        ] {
            let rig = try AuthRequestRig { port in
                .bank(port: port, forwarding: ForwardingPolicy(callerCredentials: policy), logins: [bearer(port)])
            }
            let head = try rig.ask("/a", own)
            #expect(head.hasPrefix(policy == .refuse ? "HTTP/1.1 403" : "HTTP/1.1 200"))
            #expect(head.contains("\r\nAuthorization: \(expected ?? "")") == (expected != nil))
            let without = try rig.ask()
            #expect(without.contains("Vary: Authorization, ") == (policy != .replace))
        }
    }

    @Test("an auth request with a body ends the connection, and no byte of the body is read as a request")
    func body() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [bearer(port)]) }
        let head = try rig.ask("/a", method: "POST", "Content-Length: 5\r\n")
        #expect(head.hasPrefix("HTTP/1.1 200 ") && head.contains("Connection: close\r\n"))
    }
}
