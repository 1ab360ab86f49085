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

/// Login with numbered tokens, whose confirmations the test decides.
private struct ConfirmingLogin: SessionLogin {
    let wins: LoginCounter
    let confirm: @Sendable () async -> SessionConfirmation

    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session { .bearer("t\(wins.next())") }

    func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation { await confirm() }
}

@Suite("A login page in answer to a request with a session that worked")
struct ConfirmationTests {
    private static let html = "Content-Type: text/html\r\n"
    private static let loginPage = answer("200 OK", "<b>LOGIN</b>", html)

    /// Requests of the upstream by method and path, and the session that it accepts.
    private final class Site: Sendable {
        let requests = Mutex<[String: Int]>([:])
        let valid = Atomic<Int>(1)
        let confirmations = LoginCounter()

        func count(_ request: String) -> Int { requests.withLock { $0[request] ?? 0 } }

        func respond(_ head: String, _ body: String) -> String {
            let line = head.prefix { $0 != "\r\n" }.split(separator: " ")
            requests.withLock { $0["\(line[0]) \(line[1])", default: 0] += 1 }
            guard head.contains("Bearer t\(valid.load(ordering: .acquiring))\r\n") else { return loginPage }
            switch line[1] {
            case "/doc": return answer("200 OK", "how to LOGIN \(body)", html)
            case "/long": return answer("200 OK", "LOGIN" + String(repeating: "0123456789", count: 60_000), html)
            default: return answer("200 OK", "in \(body)", html)
            }
        }
    }

    private func makeProxy(
        _ site: Site, workers: Int = 2, timeouts: UpstreamPlan.Timeouts = .init(),
        _ confirm: @escaping @Sendable () async -> SessionConfirmation
    ) throws -> (TestProxy, AnsweringUpstream) {
        let upstream = try AnsweringUpstream { site.respond($0, $1) }
        let wins = LoginCounter()
        let login = Authenticator(
            name: "bank", trigger: .detected(PageDetector()), isAhead: false,
            key: SessionKey(
                origin: Origin(scheme: .http, host: "127.0.0.1", port: upstream.port), challenge: "bank",
                credential: "pin"), credentials: ["pin"], confirmsSessions: true
        ) { _ in
            // The upstream has to exist as long as the proxy.
            withExtendedLifetime(upstream) {}
            return ConfirmingLogin(wins: wins) {
                _ = site.confirmations.next()
                return await confirm()
            }
        }
        return (
            try TestProxy(.bank(port: upstream.port, timeouts: timeouts, logins: [login]), workers: workers), upstream
        )
    }

    private static func post(_ path: String, _ body: String) -> String {
        "POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test("a login page passes unchanged while the session works: no login, and the request is sent once")
    func stillGood() throws {
        let site = Site()
        let (proxy, upstream) = try makeProxy(site) { .stillGood }
        #expect(try proxy.fetch(get("/a")).body == "in ")
        #expect(try proxy.fetch(get("/doc")).body == "how to LOGIN ")
        #expect(try proxy.fetch(Self.post("/doc", "abc")).body == "how to LOGIN abc")
        #expect(site.count("GET /doc") == 1 && site.count("POST /doc") == 1)
        #expect(try proxy.fetch(get("/a")).body == "in ")
        #expect(proxy.log.count == 1 && upstream.requests == 5)
        #expect(proxy.services.gate.read({ $0.sessions.allHeld }).values.map(\.generation) == [1])
    }

    @Test("a login page longer than a window passes byte for byte")
    func long() throws {
        let (proxy, _) = try makeProxy(Site()) { .stillGood }
        _ = try proxy.fetch(get("/a"))
        let body = try proxy.fetch(get("/long")).body
        #expect(body == "LOGIN" + String(repeating: "0123456789", count: 60_000))
    }

    @Test("a login page leads to one confirmation and one login for 40 callers when the session has ended")
    func over() throws {
        let site = Site()
        let gate = Gate()
        let (proxy, _) = try makeProxy(site) {
            await gate.pass()
            return .over
        }
        _ = try proxy.fetch(get("/a"))
        site.valid.store(2, ordering: .releasing)
        let callers = try (0..<40).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(Self.post("/b", "abc")) }
        proxy.wait("every page") { site.count("POST /b") == 40 }
        gate.open()
        for caller in callers { #expect(try caller.message().body == "in abc") }
        #expect(site.confirmations.next() == 2 && proxy.log.count == 2)
    }

    @Test("a login page passes without a login if the confirmation fails, and is not confirmed again for a while")
    func unknown() throws {
        let site = Site()
        let (proxy, _) = try makeProxy(site) { .unknown }
        _ = try proxy.fetch(get("/a"))
        #expect(try proxy.fetch(get("/doc")).body == "how to LOGIN ")
        #expect(try proxy.fetch(Self.post("/doc", "abc")).body == "how to LOGIN abc")
        #expect(site.confirmations.next() == 2 && proxy.log.count == 1)
        proxy.clock.advance(by: 6)
        #expect(try proxy.fetch(get("/doc")).body == "how to LOGIN ")
        #expect(site.confirmations.next() == 4 && proxy.log.count == 1)
    }

    @Test("a login page passes if its confirmation takes longer than the login timeout")
    func deadline() throws {
        let (gate, isAsked) = (Gate(), Signal())
        let (proxy, _) = try makeProxy(Site(), timeouts: .init(login: .seconds(20))) {
            isAsked.set()
            await gate.pass()
            return .over
        }
        _ = try proxy.fetch(get("/a"))
        let caller = try proxy.connect()
        try caller.send(get("/doc"))
        #expect(isAsked.wait())
        proxy.pass(.milliseconds(19_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try caller.message().body == "how to LOGIN ")
        gate.open()
    }

    @Test("a login page leaves no waiter after its caller has left")
    func callerGone() throws {
        let gate = Gate()
        let site = Site()
        let (proxy, _) = try makeProxy(site) {
            await gate.pass()
            return .stillGood
        }
        _ = try proxy.fetch(get("/a"))
        do {
            let caller = try proxy.connect()
            try caller.send(get("/doc"))
            proxy.wait("the page") { site.count("GET /doc") == 1 }
        }
        proxy.expectNoConnections()
        gate.open()
        #expect(try proxy.fetch(get("/doc")).body == "how to LOGIN ")
        #expect(proxy.log.count == 1)
    }
}

@Suite("Resources that refuse a good session")
struct RefusedResourceTests {
    private func login(_ port: UInt16) -> Authenticator {
        .scripted(port: port) { number, _, _ async throws(LoginFailure) in .bearer("token-\(number)") }
    }

    @Test("20 requests to a resource that refuses every token cost at most two logins", arguments: [1, 2, 4])
    func costs(workers: Int) throws {
        let upstream = try AnsweringUpstream { head, _ in
            answer("401 Unauthorized", "no", "WWW-Authenticate: Bearer\r\n")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]), workers: workers)
        let callers = try (0..<20).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get("/refused?q=1")) }
        for caller in callers { #expect(try caller.message().head.hasPrefix("HTTP/1.1 401 ")) }
        for number in 0..<20 {
            #expect(try proxy.fetch(get("/refused?q=\(number)")).head.hasPrefix("HTTP/1.1 401 "))
        }
        #expect(proxy.log.count <= 2)
    }

    @Test(
        "a token that was revoked is won anew once for 20 requests at one route, on any number of workers",
        arguments: [1, 4])
    func revoked(workers: Int) throws {
        let valid = Atomic<Int>(1)
        let upstream = try AnsweringUpstream { head, _ in
            head.contains("Bearer token-\(valid.load(ordering: .relaxed))\r\n")
                ? answer("200 OK", "in") : answer("401 Unauthorized", "no", "WWW-Authenticate: Bearer\r\n")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]), workers: workers)
        for round in 1...3 {
            valid.store(round, ordering: .relaxed)
            let callers = try (0..<20).map { _ in try proxy.connect() }
            for caller in callers { try caller.send(get("/a")) }
            for caller in callers { #expect(try caller.message().body == "in") }
            #expect(proxy.log.count == round)
        }
    }

    @Test("a scope of more than 32 words or 1 KiB in one answer is not asked for: the answer passes")
    func scopes() throws {
        let long = (0..<33).map { "w\($0)" }.joined(separator: " ")
        let wide = String(repeating: "x", count: 1025)
        let fit = (0..<32).map { "w\($0)" }.joined(separator: " ")
        let upstream = try AnsweringUpstream { head, _ in
            let asked = head.hasPrefix("GET /long") ? long : head.hasPrefix("GET /wide") ? wide : fit
            if !head.contains("Bearer ") { return challenge }
            if head.contains("Bearer grown") || head.hasPrefix("GET /open") { return answer("200 OK", "in") }
            return answer(
                "403 Forbidden", "more",
                "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"\(asked)\"\r\n")
        }
        let login = Authenticator.scripted(port: upstream.port) { _, scope, _ async throws(LoginFailure) in
            .bearer(scope.isEmpty ? "plain" : "grown")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        #expect(try proxy.fetch(get("/open")).body == "in")
        #expect(try proxy.fetch(get("/long")).head.hasPrefix("HTTP/1.1 403 "))
        #expect(try proxy.fetch(get("/wide")).head.hasPrefix("HTTP/1.1 403 "))
        #expect(proxy.log.count == 1)
        #expect(try proxy.fetch(get("/fit")).body == "in")
        #expect(proxy.log.count == 2)
        let scopes = proxy.services.gate.read({ $0.sessions.states(now: proxy.clock.now) }).keys.map(
            \.scope.utf8.count)
        #expect(scopes.allSatisfy { $0 <= 1024 })
    }
}
