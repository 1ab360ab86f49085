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

@Suite("Requests of a login's own, over the network")
struct SideRequestTests {
    /// Returns a proxy whose login sends these requests in order, and fails with their results as its reason.
    private func proxy(_ port: UInt16, sending requests: [SideRequest]) throws -> TestProxy {
        let login = Authenticator.scripted(port: port, trigger: .ahead, isAhead: true) {
            (_, _, conversation) async throws(LoginFailure) in
            var told: [String] = []
            for request in requests {
                do throws(SideRequestError) {
                    told.append("\(try await conversation.sideRequests.send(request).status)")
                } catch {
                    told.append("\(error.kind)")
                }
            }
            throw LoginFailure(.failed, challenge: "bank", detail: "came: \(told.joined(separator: ", "))")
        }
        return try TestProxy(.bank(port: port, logins: [login]))
    }

    private func request(
        _ port: UInt16, _ method: HTTPRequest.Method = .get, _ path: String = "/login", body: Secret? = nil
    ) -> SideRequest {
        let origin = Origin(scheme: .http, host: "127.0.0.1", port: port)
        return SideRequest(method: method, url: WebURL(origin: origin, path: path), body: body)
    }

    @Test("a login's own requests go to no origin that is not configured, not even another port")
    func origins() throws {
        let upstream = try AnsweringUpstream { _, _ in answer() }
        let other = try AnsweringUpstream { _, _ in answer() }
        let requests = [request(upstream.port), request(other.port, .post, body: Secret("password"))]
        let body = try proxy(upstream.port, sending: requests).fetch(get()).body
        #expect(body.contains("came: 200, originNotAllowed"), "\(body)")
        #expect(other.requests == 0)
    }

    @Test("a login's request is one request, whatever its address was made of")
    func unsplit() throws {
        let lines = Notes()
        let upstream = try AnsweringUpstream { head, _ in
            lines.add(String(head.prefix { $0 != "\r\n" }))
            return answer()
        }
        let path = "/a HTTP/1.1\r\nHost: x\r\n\r\nPOST /transfer HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET /b"
        var other = request(upstream.port)
        other.url = WebURL(origin: other.url.origin, path: "/c", query: "d\r\n\r\nGET /e")
        let body = try proxy(upstream.port, sending: [request(upstream.port, .get, path), other]).fetch(get()).body
        #expect(body.contains("came: 200, 200"), "\(body)")
        #expect(
            lines.all == [
                "GET /a%20HTTP/1.1%0D%0AHost:%20x%0D%0A%0D%0APOST%20/transfer%20HTTP/1.1%0D%0AHost:%20x%0D%0AContent-Length:%200"
                    + "%0D%0A%0D%0AGET%20/b HTTP/1.1", "GET /c?d%0D%0A%0D%0AGET%20/e HTTP/1.1",
            ])
    }

    @Test("are not sent again by themselves where their connection is lost", arguments: [nil, Secret("password")])
    func lost(body: Secret?) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(
            upstream.port, sending: [request(upstream.port), request(upstream.port, .post, body: body)])
        let caller = try proxy.connect()
        try caller.send(get())
        let connection = try upstream.accept()
        _ = try connection.message()
        try connection.send(answer())
        #expect(try connection.message().head.hasPrefix("POST /login "))
        connection.close()
        // libcurl opens a new connection, as the first one had been idle.
        let next = try upstream.accept()
        #expect(!next.readByte())
        next.close()
        let told = try caller.message().body
        #expect(told.contains("came: 200, unreachable"), "\(told)")
    }

    @Test("a login's request with a credential in its head is not sent again if its connection is lost")
    func lostCredential() throws {
        let upstream = try ScriptedUpstream()
        var probe = request(upstream.port)
        probe.fields[.authorization] = "Basic YTpi"
        let proxy = try proxy(upstream.port, sending: [request(upstream.port), probe])
        let caller = try proxy.connect()
        try caller.send(get())
        let connection = try upstream.accept()
        _ = try connection.message()
        try connection.send(answer())
        #expect(try connection.message().head.contains("YTpi"))
        connection.close()
        let next = try upstream.accept()
        #expect(!next.readByte())
        next.close()
        let told = try caller.message().body
        #expect(told.contains("came: 200, unreachable"), "\(told)")
    }

    @Test("a server that answers HEAD with a body spoils no later request of the login")
    func bodyOfHead() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(
            upstream.port,
            sending: [request(upstream.port, .head), request(upstream.port, .head), request(upstream.port)])
        let caller = try proxy.connect()
        try caller.send(get())
        for method in ["HEAD", "HEAD", "GET"] {
            let connection = try upstream.accept()
            #expect(try connection.message().head.hasPrefix("\(method) /login "))
            try connection.send(answer("200 OK", "not to be sent"))
        }
        let told = try caller.message().body
        #expect(told.contains("came: 200, 200, 200"), "\(told)")
    }

    @Test("a login's own requests accept at most 1 MiB of response")
    func long() throws {
        let most = 1024 * 1024
        let upstream = try AnsweringUpstream { head, _ in
            answer("200 OK", String(repeating: "a", count: head.contains(" /more ") ? most + 1 : most))
        }
        let requests = [request(upstream.port), request(upstream.port, .get, "/more")]
        let body = try proxy(upstream.port, sending: requests).fetch(get()).body
        #expect(body.contains("came: 200, badAnswer"), "\(body)")
    }
}

@Suite("A login whose own server requires a login page")
struct GuardedLoginTests {
    /// State of the upstream: the page's valid sessions by number, and one valid token at a time.
    private final class Doors: Sendable {
        private struct State {
            var session: Int?
            var token = 0
        }
        private let state = Mutex(State())

        func open(_ session: Int) { state.withLock { $0.session = session } }
        func shut() {
            state.withLock { state in
                state.session = nil
                state.token += 1
            }
        }

        func respond(_ head: String) -> String {
            let (session, token) = state.withLock { ($0.session, $0.token) }
            guard head.contains(" /token ") else {
                return head.contains("Bearer t\(token)\r\n") ? answer("200 OK", "in") : challenge
            }
            guard let session, head.contains("sid=\(session)\r\n") else {
                return answer("200 OK", "<b>LOGIN</b>", "Content-Type: text/html\r\n")
            }
            return answer("200 OK", "t\(token)", "Content-Type: text/plain\r\n")
        }
    }

    private let doors = Doors()
    private let pages = LoginCounter()
    private let tokens = LoginCounter()

    /// Returns a proxy with both logins. `page` is the page's login, called with the number of its run.
    private func proxy(
        _ upstream: AnsweringUpstream, workers: Int = 1,
        page: @escaping @Sendable (Int) throws(LoginFailure) -> Session
    ) throws -> TestProxy {
        let (pages, tokens) = (pages, tokens)
        let address = try #require(WebURL("http://127.0.0.1:\(upstream.port)/token"))
        let rules = GatewayRules(detect: [ResponseMatcher(bodyContains: ["LOGIN"])], steps: [])
        let gateway = Authenticator(
            name: "page", trigger: .detected(GatewayDetector(rules)), isAhead: false,
            key: SessionKey(origin: address.origin, challenge: "page", credential: "ann"), credentials: ["ann"],
            isLoginPage: true
        ) { _ in
            ScriptedLogin(counter: pages) { (number, _) async throws(LoginFailure) in try page(number) }
        }
        let bank = Authenticator.scripted(port: upstream.port, trigger: .bearer(realm: nil)) {
            (_, _, conversation) async throws(LoginFailure) in
            _ = tokens.next()
            do throws(SideRequestError) {
                let request = SideRequest(method: .post, url: address, body: Secret("ask"))
                let answer = try await conversation.sideRequests.send(request)
                let text = String(decoding: answer.body, as: UTF8.self)
                guard answer.fields[.contentType] == "text/plain" else { return Session.bearer("none") }
                return .bearer(text)
            } catch {
                guard case .guarded(let failure) = error.kind else { throw LoginFailure.failed }
                throw failure
            }
        }
        return try TestProxy(.bank(port: upstream.port, logins: [gateway, bank]), workers: workers)
    }

    /// Returns a session of the page with that number.
    private static func session(_ number: Int, at port: UInt16) -> Session {
        var jar = CookieJar()
        if let url = WebURL("http://127.0.0.1:\(port)/login") {
            _ = jar.store("sid=\(number); Path=/", from: url, now: 0)
        }
        return Session(cookies: SessionCookies(jar))
    }

    @Test("a login that requires a login page gets the page's session first, keeps it, and renews it after its end")
    func passed() throws {
        let doors = doors
        let upstream = try AnsweringUpstream { head, _ in doors.respond(head) }
        let port = upstream.port
        let proxy = try proxy(upstream, workers: 2) { number in
            doors.open(number)
            return Self.session(number, at: port)
        }
        #expect(try proxy.fetch(get()).body == "in")
        #expect(try proxy.fetch(get()).body == "in")
        doors.shut()
        let callers = try (0..<20).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get()) }
        for caller in callers { #expect(try caller.message().body == "in") }
        #expect(pages.next() == 3 && tokens.next() == 3, "two of each before these")
    }

    @Test("a login that requires a login page fails if the page's login fails, with its reason")
    func failed() throws {
        let doors = doors
        let upstream = try AnsweringUpstream { head, _ in doors.respond(head) }
        let proxy = try proxy(upstream) { _ throws(LoginFailure) in
            throw LoginFailure(.rejected, challenge: "page", detail: "The password was rejected.")
        }
        let (head, body) = try proxy.fetch(get())
        #expect(head.hasPrefix("HTTP/1.1 502 ") && body.contains(#""challenge":"page""#), "\(body)")
        #expect(body.contains(#""code":"login-rejected""#))
    }

    @Test("a login gets the login page if it comes again after the page's login, and asks once")
    func again() throws {
        let doors = doors
        let upstream = try AnsweringUpstream { head, _ in doors.respond(head) }
        let port = upstream.port
        let proxy = try proxy(upstream) { number in Self.session(number, at: port) }
        _ = try proxy.fetch(get())
        #expect(pages.next() == 2)
    }
}
