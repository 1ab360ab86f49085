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

/// WSGI, Tornado and PHP join several `Cookie` lines with commas, and then find no session.
@Suite("One Cookie line in a login's own requests (RFC 6265 §5.4)")
struct CookieLineTests {
    /// Upstream whose login page sets two cookies. It records the `Cookie` lines of each request by method and path.
    private final class Portal: Sendable {
        private let seen = Mutex<[String: [String]]>([:])

        func lines(_ request: String) -> [String]? { seen.withLock { $0[request] } }

        func respond(_ head: String) -> String {
            let lines = head.split(separator: "\r\n")
            let request = lines.first?.split(separator: " ").prefix(2).joined(separator: " ") ?? ""
            let cookies = lines.dropFirst().filter { $0.lowercased().hasPrefix("cookie:") }.map(String.init)
            seen.withLock { $0[request] = cookies }
            let type = "Content-Type: text/html\r\n"
            switch request {
            case "GET /login":
                let set = "Set-Cookie: token=t; Path=/\r\nSet-Cookie: pre=p; Path=/\r\n"
                return answer("200 OK", #"<form action="/login" method="post"><input name="u"></form>"#, type + set)
            case "POST /login": return answer("302 Found", "", "Set-Cookie: sid=s; Path=/\r\nLocation: /home\r\n")
            default: return answer("200 OK", "in", type)
            }
        }
    }

    private let portal = Portal()

    private func upstream() throws -> AnsweringUpstream {
        let portal = portal
        return try AnsweringUpstream { head, _ in portal.respond(head) }
    }

    /// Runs `body` as a login before one request, and returns the body of the answer.
    private func run(
        at upstream: AnsweringUpstream, logins: [Authenticator] = [],
        _ body: @escaping @Sendable (Conversation) async throws(LoginFailure) -> Session
    ) throws -> String {
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) {
            (_, _, conversation) async throws(LoginFailure) in
            try await body(
                Conversation(
                    sideRequests: conversation.sideRequests,
                    credentials: FixedCredentials(["ann": ["username": Secret("ann"), "password": Secret("demo")]]),
                    attempts: conversation.attempts, state: conversation.state, now: conversation.now))
        }
        return try TestProxy(.bank(port: upstream.port, logins: logins + [login])).fetch(get("/app")).body
    }

    private func page(at upstream: AnsweringUpstream) throws -> (rules: GatewayRules, url: WebURL) {
        let url = try #require(WebURL("http://127.0.0.1:\(upstream.port)/login"))
        let step = GatewayStep(page: "/login", target: .form)
        let rules = GatewayRules(
            detect: [ResponseMatcher(formAction: "/login")], steps: [step], success: [ResponseMatcher(cookies: ["sid"])]
        )
        return (rules, url)
    }

    @Test("a form login sends the page's cookies, and its session's, in one line")
    func form() throws {
        let upstream = try upstream()
        let (rules, url) = try page(at: upstream)
        let key = LatchKey(origin: url.origin, challenge: "page", credential: "ann")
        let body = try run(at: upstream) { conversation async throws(LoginFailure) in
            try await GatewayLogin(rules, key: key, base: url).logIn(conversation)
        }
        #expect(body == "in")
        #expect(portal.lines("POST /login") == ["Cookie: token=t; pre=p"])
        #expect(portal.lines("GET /home") == ["Cookie: token=t; pre=p; sid=s"])
        #expect(portal.lines("GET /app") == ["Cookie: token=t; pre=p; sid=s"])
    }

    @Test("a logout sends the session's cookies in one line")
    func logout() throws {
        let upstream = try upstream()
        let url = try #require(WebURL("http://127.0.0.1:\(upstream.port)/logout"))
        _ = try run(at: upstream) { conversation async throws(LoginFailure) in
            let session = Session(cookies: jar(["a=1", "b=2", "c=3"], at: url))
            try await GatewayLogout(name: "page", url: url).end(session, conversation)
            return .bearer("x")
        }
        #expect(portal.lines("GET /logout") == ["Cookie: a=1; b=2; c=3"])
    }

    @Test("a token request behind a login page sends the page's cookies, beside its own, in one line")
    func guarded() throws {
        let upstream = try upstream()
        let (rules, url) = try page(at: upstream)
        let token = try #require(WebURL("http://127.0.0.1:\(upstream.port)/token"))
        let guardian = Authenticator(
            name: "page", trigger: .detected(GatewayDetector(rules)), isAhead: true,
            key: SessionKey(origin: url.origin, challenge: "page", credential: "ann"), credentials: ["ann"],
            isLoginPage: true
        ) { _ in
            ScriptedLogin(counter: LoginCounter()) { _, _ in Session(cookies: jar(["a=1", "b=2"], at: url)) }
        }
        _ = try run(at: upstream, logins: [guardian]) { conversation async throws(LoginFailure) in
            var request = SideRequest(method: .post, url: token, body: Secret("ask"))
            // This setter splits the field, as an ordinary login would do.
            request.fields[HTTPField.Name.cookie] = "x=8; y=9"
            _ = try? await conversation.sideRequests.send(request)
            return .bearer("x")
        }
        #expect(portal.lines("POST /token") == ["Cookie: a=1; b=2; x=8; y=9"])
    }

    @Test("any other request of a login sends one line, however its fields were set")
    func direct() throws {
        let upstream = try upstream()
        let url = try #require(WebURL("http://127.0.0.1:\(upstream.port)/token"))
        _ = try run(at: upstream) { conversation async throws(LoginFailure) in
            var request = SideRequest(method: .get, url: url)
            request.fields[HTTPField.Name.cookie] = "x=8; y=9"
            request.fields[.accept] = "text/plain"
            request.fields.append(HTTPField(name: .cookie, value: "z=10"))
            _ = try? await conversation.sideRequests.send(request)
            return .bearer("x")
        }
        #expect(portal.lines("GET /token") == ["Cookie: x=8; y=9; z=10"])
    }
}

/// Returns a session's cookies, set at `url`.
private func jar(_ cookies: [String], at url: WebURL) -> SessionCookies {
    var jar = CookieJar()
    for cookie in cookies { _ = jar.store("\(cookie); Path=/", from: url, now: 0) }
    return SessionCookies(jar)
}

@Suite("Cookies of sessions")
struct SessionCookieTests {
    /// Returns a proxy whose login obtains the cookie `sid`, and an upstream that answers with `fields` and records cookies.
    private func proxy(answering fields: String = "") throws -> (TestProxy, AnsweringUpstream, @Sendable () -> [String])
    {
        let notes = Notes()
        let upstream = try AnsweringUpstream { head, _ in
            let lines = head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("cookie:") }
            notes.add(lines.joined(separator: "|"))
            return answer("200 OK", "in", fields)
        }
        let url = try #require(WebURL("http://127.0.0.1:\(upstream.port)/login"))
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, conversation in
            var jar = CookieJar()
            _ = jar.store("sid=one; Path=/; HttpOnly", from: url, now: conversation.now())
            _ = jar.store("deep=two; Path=/deep", from: url, now: conversation.now())
            return Session(cookies: SessionCookies(jar))
        }
        return (try TestProxy(.bank(port: upstream.port, logins: [login])), upstream, { notes.all })
    }

    @Test("session cookies are sent where they belong, in one field with the caller's")
    func merged() throws {
        let (proxy, upstream, seen) = try proxy()
        _ = try proxy.fetch(get("/"))
        _ = try proxy.fetch(get("/deep/er", "Cookie: a=1\r\nCookie: b=2\r\n"))
        #expect(seen() == ["Cookie: sid=one", "Cookie: deep=two; sid=one; a=1; b=2"])
        _ = upstream
    }

    @Test("a caller's cookie with the name of a session cookie is replaced")
    func overridden() throws {
        let (proxy, upstream, seen) = try proxy()
        _ = try proxy.fetch(get("/", "Cookie: sid=forged; a=1; sid=again\r\n"))
        #expect(seen() == ["Cookie: sid=one; a=1"])
        _ = upstream
    }

    @Test(
        "no cookie of a caller encloses a session's cookie at a server that reads quotations",
        arguments: [
            ("$Version=1; a=\"x; b=2", "b=2"), ("a=\"x", ""), ("a=x\"; b=2; c=\"", "b=2"), ("$Path=/; $Domain=x", ""),
            ("a=\"x\\\"; b=2", "b=2"), ("a=\"\\\\\"; b={\"c\":1}", "a=\"\\\\\"; b={\"c\":1}"), (" $v=1;\t$w;c", "c"),
            ("a=\"b\\\"\"", ""), ("a$=1; b=$c", "a$=1; b=$c"),
        ])
    func sandwich(callers: String, rest: String) throws {
        let (proxy, upstream, seen) = try proxy()
        _ = try proxy.fetch(get("/", "Cookie: \(callers)\r\n"))
        _ = try proxy.fetch(get("/", "Cookie: d=1; \(callers)\r\nCookie: e=\"\r\n"))
        let (first, second) = ([rest], ["d=1", rest])
        #expect(
            seen()
                == [first, second].map { pieces in
                    "Cookie: " + (["sid=one"] + pieces).filter { !$0.isEmpty }.joined(separator: "; ")
                })
        _ = upstream
    }

    @Test("renewed session cookies are kept and used, and callers' cookies pass")
    func renewed() throws {
        let (proxy, upstream, seen) = try proxy(
            answering: "Set-Cookie: sid=new; Path=/\r\nSet-Cookie: theme=dark; Path=/\r\n")
        let (head, _) = try proxy.fetch(get("/"))
        #expect(!head.contains("sid="))
        #expect(head.contains("theme=dark"))
        _ = try proxy.fetch(get("/"))
        #expect(seen() == ["Cookie: sid=one", "Cookie: sid=new"])
        _ = upstream
    }
}
