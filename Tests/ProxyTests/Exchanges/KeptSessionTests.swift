// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@Suite("Sessions that are established at the start and kept")
struct KeptSessionTests {
    private func proxy(
        _ body: @escaping @Sendable (Int, Scope, Conversation) async throws(LoginFailure) -> Session
    ) throws -> (TestProxy, UpstreamPlan, AnsweringUpstream) {
        let upstream = try AnsweringUpstream { head, _ in
            head.contains("Authorization: Bearer") ? answer("200 OK", "in") : challenge
        }
        let plan = UpstreamPlan.bank(
            port: upstream.port, logins: [.scripted(port: upstream.port, isKept: true, body)])
        return (try TestProxy(plan), plan, upstream)
    }

    @Test("a session with `login: at-start` needs no request, and the first request meets no challenge")
    func atStart() throws {
        let (proxy, plan, upstream) = try proxy { number, _, _ in .bearer("t\(number)") }
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.wait("the login") { proxy.log.finished == 1 }
        proxy.settle()
        #expect(try proxy.fetch(get()).body == "in")
        #expect(upstream.requests == 1)
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        #expect(try proxy.fetch(get()).body == "in")
        #expect(proxy.log.count == 1)
    }

    @Test("a request during the login at the start waits for it")
    func early() throws {
        let gate = Gate()
        let (proxy, plan, upstream) = try proxy { number, _, _ in
            await gate.pass()
            return .bearer("t\(number)")
        }
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        let caller = try proxy.connect()
        try caller.send(get())
        proxy.wait("the request waits") { proxy.waiters == 1 }
        gate.open()
        #expect(try caller.message().body == "in")
        #expect(upstream.requests == 1)
        #expect(proxy.log.count == 1)
    }

    @Test("a session with `login: at-start` is renewed without traffic")
    func renewed() throws {
        let (proxy, plan, _) = try proxy { number, _, conversation in
            .bearer("t\(number)", expiresAt: conversation.now() + 100_000)
        }
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.wait("the login") { proxy.log.finished == 1 }
        proxy.settle()
        proxy.clock.advance(by: 86)
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.wait("the renewal") { proxy.log.finished == 2 }
        proxy.settle()
        #expect(proxy.log.renewals == 1)
    }

    @Test("a failed login at the start is retried after its pause, not before")
    func again() throws {
        let (proxy, plan, _) = try proxy { number, _, _ async throws(LoginFailure) in
            if number == 1 { throw .failed }
            return .bearer("t\(number)")
        }
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.wait("the failure") { proxy.log.finished == 1 }
        proxy.settle()
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.clock.advance(by: 6)
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.wait("the second login") { proxy.log.finished == 2 }
        proxy.settle()
        #expect(proxy.log.count == 2)
    }
}

@Suite("Sessions that are needed before the first request")
struct AheadTests {
    @Test("a session that is needed before the first request is established first, and its fields are sent")
    func injected() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, _ in
            .bearer("one")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(get("/", "Authorization: Basic own\r\n"))
        let server = try upstream.accept()
        let head = try server.head()
        #expect(head.contains("Authorization: Bearer one\r\n"))
        #expect(!head.contains("own"))
        try server.send(answer("200 OK", "in"))
        #expect(try caller.message().body == "in")
    }

    @Test("during the pause after a failed login callers are answered at once, and their connections stay open")
    func pausing() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(
            port: upstream.port, trigger: .ahead, isAhead: true
        ) { _, _, _ throws(LoginFailure) in throw .failed }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        for _ in 0..<3 {
            try caller.send(get())
            let (head, body) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 502 "))
            #expect(body.contains("\"code\":\"login-failed\""))
        }
        #expect(proxy.log.count == 1)
        #expect(!upstream.hasCaller)
    }

    @Test("the body of a request that is refused at once is discarded")
    func pausingWithBody() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(
            port: upstream.port, trigger: .ahead, isAhead: true
        ) { _, _, _ throws(LoginFailure) in throw .failed }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        let post = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
        for _ in 0..<3 {
            try caller.send(post)
            #expect(try caller.message().head.hasPrefix("HTTP/1.1 502 "))
        }
    }

    @Test("a caller beyond the limit of login waiters gets a reply that says so")
    func overloaded() throws {
        let upstream = try ScriptedUpstream()
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, _ in
            await gate.pass()
            return .bearer("one")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]), sessions: SessionLimits(waiters: 1))
        let first = try proxy.connect()
        try first.send(get("/1"))
        proxy.wait("the login") { proxy.log.count == 1 }
        let (head, body) = try proxy.fetch(get("/2"))
        #expect(head.hasPrefix("HTTP/1.1 503 "))
        #expect(head.contains("Retry-After: 1\r\n"))
        #expect(body.contains("\"code\":\"overloaded\""))
        gate.open()
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer("200 OK", "in"))
        #expect(try first.message().body == "in")
    }

    @Test("a session that expires as soon as it is established fails the exchange, and does not cause endless logins")
    func endedAtOnce() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, conversation in
            .bearer("one", expiresAt: conversation.now())
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let (head, body) = try proxy.fetch(get())
        #expect(head.hasPrefix("HTTP/1.1 502 "))
        #expect(body.contains("\"code\":\"login-failed\""))
        #expect(proxy.log.count == 1)
    }

    @Test("a body longer than what is kept waits for a session before it is sent")
    func longBody() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, replay: ReplayTiers(memory: 4), logins: [login]))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
        let server = try upstream.accept()
        let (head, body) = try server.message()
        #expect(head.contains("Authorization: Bearer one\r\n"))
        #expect(body == "hello")
        try server.send(answer())
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 "))
    }
}
