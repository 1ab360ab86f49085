// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import TestSupport
import Testing

/// Detector for a site that also serves anonymous visitors: a page for them has a login box.
private struct LoginBoxDetector: ChallengeDetector {
    let kind = "box"
    var filter: ResponseFilter { .everything }

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        response.fields[.location] == "/login" || response.status == 401 ? .challenged() : .pass
    }
}

@Suite("A login comes before a request that must not be carried out twice")
struct LoginBeforeRequestTests {
    /// Requests that an upstream has executed, as `METHOD PATH USER`.
    private final class Executions: Sendable {
        private let notes = Notes()
        var all: [String] { notes.all }

        func note(_ head: String) -> String {
            let words = head.split(separator: " ")
            let user = head.contains("Authorization: Bearer ") ? "user" : "anonymous"
            notes.add("\(words[0]) \(words[1]) \(user)")
            return user
        }
    }

    /// Returns an upstream that executes every request, and shows a login box to anonymous users.
    private func openSite(_ executions: Executions) throws -> AnsweringUpstream {
        try AnsweringUpstream { head, _ in
            let user = executions.note(head)
            return answer("200 OK", user, user == "user" ? "" : "Location: /login\r\n")
        }
    }

    private func login(
        _ port: UInt16,
        _ body: @escaping @Sendable (LoginOccasion, Conversation) async throws(LoginFailure) -> Session = { _, _ in
            .bearer("one")
        }
    ) -> Authenticator {
        Authenticator(
            name: "bank", trigger: .detected(LoginBoxDetector()), isAhead: false,
            key: SessionKey(
                origin: Origin(scheme: .http, host: "127.0.0.1", port: port), challenge: "bank", credential: "pin"),
            credentials: ["pin"],
            makeLogin: { occasion in
                ScriptedLogin(counter: LoginCounter()) { (_, conversation) async throws(LoginFailure) in
                    try await body(occasion, conversation)
                }
            })
    }

    private func request(_ method: String, _ path: String = "/comment?text=hello", _ body: String = "hello") -> String {
        "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test(
        "at a site with optional login an unsafe request is executed once, as the user, with and without a body",
        arguments: [("POST", "hello"), ("POST", ""), ("PUT", "hello"), ("PATCH", ""), ("DELETE", ""), ("PURGE", "")])
    func once(method: String, body: String) throws {
        let executions = Executions()
        let upstream = try openSite(executions)
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]))
        #expect(try proxy.fetch(request(method, "/comment?text=hello", body)).body == "user")
        #expect(executions.all == ["\(method) /comment?text=hello user"])
    }

    @Test("20 posts at once on a cold session lead to one login, and each is carried out once, as the user")
    func atOnce() throws {
        let executions = Executions()
        let upstream = try openSite(executions)
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]), workers: 2)
        let callers = try (0..<20).map { _ in try proxy.connect() }
        for (number, caller) in callers.enumerated() { try caller.send(request("POST", "/\(number)")) }
        for caller in callers { #expect(try caller.message().body == "user") }
        #expect(executions.all.count == 20 && Set(executions.all).count == 20)
        #expect(executions.all.allSatisfy { $0.hasSuffix(" user") })
        #expect(proxy.log.count == 1)
    }

    @Test("a GET does not wait for a login: it is sent first, and the login follows its challenge")
    func safe() throws {
        let executions = Executions()
        let upstream = try openSite(executions)
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]))
        #expect(try proxy.fetch(get("/page?x=1")).body == "user")
        #expect(executions.all == ["GET /page?x=1 anonymous", "GET /page?x=1 user"])
    }

    @Test("a login gets the request's address without its query, also that of a challenged POST")
    func addresses() throws {
        let executions = Executions()
        let upstream = try openSite(executions)
        let seen = Notes()
        let authenticator = login(upstream.port) { occasion, conversation in
            let target = occasion.target.map { "before \($0.target)" }
            let challenge = occasion.challenge.map { "after \($0.method.rawValue) \($0.url.target)" }
            seen.add("\(target ?? "") \(challenge ?? "")")
            return occasion.challenge == nil
                ? Session(expiresAt: conversation.now() + 60_000) : .bearer("one")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [authenticator]))
        #expect(try proxy.fetch(request("POST")).body == "user")
        #expect(seen.all == ["before /comment ", " after POST /comment"])
    }

    @Test("if the login finds no challenge, requests are sent without it, and not each of them looks again")
    func nothingAsked() throws {
        let upstream = try AnsweringUpstream { _, body in answer("200 OK", body) }
        let authenticator = login(upstream.port) { _, conversation in Session(expiresAt: conversation.now() + 60_000) }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [authenticator]))
        for number in 0..<3 { #expect(try proxy.fetch(request("POST", "/\(number)")).body == "hello") }
        #expect(proxy.log.count == 1 && upstream.requests == 3)
        proxy.clock.advance(by: 61)
        for _ in 0..<3 { #expect(try proxy.fetch(request("POST")).body == "hello") }
        #expect(proxy.log.count == 2 && proxy.log.renewals == 0)
    }

    @Test("a challenge after a login without a challenge is answered, and the request is sent again")
    func challengedAfterNothing() throws {
        let upstream = try AnsweringUpstream { head, body in
            let isOpen = head.hasPrefix("POST /open ") || head.contains("Authorization: Bearer ")
            return isOpen ? answer("200 OK", body) : answer("401 Unauthorized", "who?")
        }
        let authenticator = login(upstream.port) { occasion, conversation in
            occasion.challenge == nil ? Session(expiresAt: conversation.now() + 60_000) : .bearer("one")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [authenticator]))
        #expect(try proxy.fetch(request("POST", "/open")).body == "hello")
        #expect(try proxy.fetch(request("POST", "/closed")).body == "hello")
        #expect(upstream.requests == 3)
        let cold = try TestProxy(.bank(port: upstream.port, logins: [authenticator]))
        #expect(try cold.fetch(request("POST", "/closed")).body == "hello")
        #expect(cold.log.count == 2)
    }

    @Test(
        "without a usable credential a safe request goes to an open address as it came, and no other is carried out as nobody's",
        arguments: [LoginFailure.Code.latched, .attemptsKept, .accountLocked, .noCredential, .failed])
    func unusable(code: LoginFailure.Code) throws {
        let executions = Executions()
        let upstream = try AnsweringUpstream { head, body in
            _ = executions.note(head)
            return head.contains(" /open ") ? answer("200 OK", "open") : answer("401 Unauthorized", "who?")
        }
        let authenticator = login(upstream.port) { _, _ async throws(LoginFailure) in
            throw LoginFailure(code, challenge: "bank", detail: "No.")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [authenticator]))
        for method in ["POST", "DELETE", "PURGE"] {
            for _ in 0..<2 {
                #expect(try proxy.fetch(request(method, "/open")).body.contains("\"code\":\"\(code.rawValue)\""))
            }
        }
        #expect(executions.all.isEmpty)
        for method in ["GET", "OPTIONS"] { #expect(try proxy.fetch(request(method, "/open", "")).body == "open") }
        #expect(executions.all == ["GET", "OPTIONS"].map { "\($0) /open anonymous" })
        #expect(try proxy.fetch(get("/closed")).body.contains("\"code\":\"\(code.rawValue)\""))
    }

    @Test("a login that fails is told, and the request is not sent")
    func failed() throws {
        let executions = Executions()
        let upstream = try openSite(executions)
        let authenticator = login(upstream.port) { _, _ async throws(LoginFailure) in throw .rejected }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [authenticator]))
        #expect(try proxy.fetch(request("POST")).body.contains("\"code\":\"login-rejected\""))
        #expect(executions.all.isEmpty)
    }

    @Test("a long body is sent with Expect if the login found no challenge, and an early challenge is answered")
    func longBody() throws {
        let body = LongBody(count: 3_000_000)
        let upstream = try UploadUpstream(
            react: { $0.contains("Authorization: Bearer ") ? .read : .refuse(answer("401 Unauthorized", "who?")) },
            answer: { answer("200 OK", "\($0.body.count)") })
        let authenticator = login(upstream.port) { occasion, conversation in
            occasion.challenge == nil ? Session(expiresAt: conversation.now() + 60_000) : .bearer("one")
        }
        let proxy = try TestProxy(
            .bank(port: upstream.port, replay: ReplayTiers(memory: 65_536), logins: [authenticator]))
        let caller = try proxy.connect()
        startThread(sending: post(body), to: caller)
        #expect(try caller.message().body == "3000000")
        #expect(upstream.heads.map { $0.contains("\r\nExpect: 100-continue\r\n") } == [true, true])
        #expect(upstream.uploads.map(\.body) == [body])
    }

    @Test("a caller that keeps its own credentials does not wait for a login")
    func ownCredentials() throws {
        let upstream = try AnsweringUpstream { _, body in answer("200 OK", body) }
        let plan = UpstreamPlan.bank(
            port: upstream.port, forwarding: ForwardingPolicy(callerCredentials: .keep), logins: [login(upstream.port)])
        let proxy = try TestProxy(plan)
        let post = request("POST").replacing("Host:", with: "Authorization: Basic own\r\nHost:")
        #expect(try proxy.fetch(post).body == "hello")
        #expect(proxy.log.count == 0)
    }
}
