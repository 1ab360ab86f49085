// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Synchronization
import Testing

@Suite("Sessions of exchanges")
struct SessionTests {
    /// Returns an upstream that accepts the tokens for which `isGood` is true.
    private func upstream(_ isGood: @escaping @Sendable (String) -> Bool) throws -> AnsweringUpstream {
        try AnsweringUpstream { head, _ in
            let field = head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: Bearer ") }
            guard let token = field.map({ String($0.dropFirst(22)) }) else { return challenge }
            guard isGood(token) else {
                return answer(
                    "401 Unauthorized", "denied", "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n")
            }
            return answer("200 OK", token)
        }
    }

    @Test("however many callers meet a challenge at once on two workers, one login runs")
    func singleFlight() throws {
        let upstream = try upstream { _ in true }
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port) { number, _, _ in
            await gate.pass()
            return .bearer("t\(number)")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]), workers: 2)
        let callers = try (0..<100).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get()) }
        proxy.wait("every challenge") { proxy.waiters == 100 }
        gate.open()
        for caller in callers { #expect(try caller.message().body == "t1") }
        #expect(proxy.log.count == 1)
        #expect(upstream.requests == 101)
    }

    @Test("all waiters of a failed login get its failure, each on its own worker")
    func sharedFailure() throws {
        let upstream = try upstream { _ in true }
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ async throws(LoginFailure) in
            await gate.pass()
            throw .rejected
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]), workers: 2)
        let callers = try (0..<40).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get()) }
        proxy.wait("every challenge") { proxy.waiters == 40 }
        gate.open()
        for caller in callers {
            let (head, body) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 502 "))
            #expect(body.contains("\"code\":\"login-rejected\""))
        }
        #expect(proxy.log.count == 1)
    }

    @Test("a waiter that goes away does not keep the others from their session")
    func waiterGone() throws {
        let upstream = try upstream { _ in true }
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in
            await gate.pass()
            return .bearer("one")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let leader = try proxy.connect()
        try leader.send(get())
        proxy.wait("the login") { proxy.log.count == 1 }
        let waiter = try proxy.connect()
        try waiter.send(get())
        proxy.wait("the second challenge") { proxy.waiters == 2 }
        leader.reset()
        proxy.wait("one caller") { proxy.server.figures.openConnections == 1 }
        gate.open()
        #expect(try waiter.message().body == "one")
        #expect(proxy.log.count == 1)
    }

    @Test("a login may take longer than an answer: its own limit counts")
    func slowLogin() throws {
        let upstream = try upstream { _ in true }
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in
            await gate.pass()
            return .bearer("one")
        }
        let proxy = try TestProxy(
            .bank(port: upstream.port, timeouts: .init(response: .seconds(5)), logins: [login]))
        let first = try proxy.connect()
        try first.send(get())
        proxy.wait("the login") { proxy.waiters == 1 }
        proxy.pass(.seconds(59))
        #expect(!first.hasNews)
        gate.open()
        #expect(try first.message().body == "one")
    }

    @Test("a session that the upstream rejects is established again, once")
    func rejected() throws {
        let good = Mutex("t1")
        let upstream = try upstream { token in good.withLock { $0 == token } }
        let login = Authenticator.scripted(port: upstream.port) { number, _, _ in .bearer("t\(number)") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        #expect(try proxy.fetch(get()).body == "t1")
        good.withLock { $0 = "t2" }
        #expect(try proxy.fetch(get()).body == "t2")
        #expect(proxy.log.count == 2)
    }

    @Test("the refusal of a new session is forwarded unchanged, and causes no further login for that route")
    func refusedAfterLogin() throws {
        let upstream = try AnsweringUpstream { head, _ in
            guard head.contains("Authorization") else { return challenge }
            return head.hasPrefix("GET /open ") ? answer("200 OK", "in") : challenge
        }
        let login = Authenticator.scripted(port: upstream.port) { number, _, _ in .bearer("t\(number)") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        for _ in 0..<3 {
            let (head, body) = try proxy.fetch(get("/closed"))
            #expect(head.hasPrefix("HTTP/1.1 401 "))
            #expect(head.contains("WWW-Authenticate: Bearer\r\n"))
            #expect(body == "denied")
        }
        #expect(proxy.log.count == 1)
        #expect(try proxy.fetch(get("/open")).body == "in")
        #expect(proxy.log.count == 1)
    }

    @Test("a session is renewed ahead of its end, without stopping traffic, and won anew after it")
    func renewal() throws {
        let upstream = try upstream { _ in true }
        let login = Authenticator.scripted(port: upstream.port) { number, _, conversation in
            .bearer("t\(number)", expiresAt: conversation.now() + 100_000)
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        #expect(try proxy.fetch(get()).body == "t1")
        proxy.clock.advance(by: 79)
        #expect(try proxy.fetch(get()).body == "t1")
        #expect(proxy.log.count == 1)
        proxy.clock.advance(by: 7)
        #expect(try proxy.fetch(get()).body == "t1")
        proxy.wait("the renewal") { proxy.log.finished == 2 }
        proxy.settle()
        #expect(try proxy.fetch(get()).body == "t2")
        #expect(proxy.log.renewals == 1)
        proxy.clock.advance(by: 200)
        #expect(try proxy.fetch(get()).body == "t3")
        #expect(proxy.log.renewals == 1)
    }

    @Test("a renewal that fails is not tried again at every request")
    func failingRenewal() throws {
        let upstream = try upstream { _ in true }
        let login = Authenticator.scripted(port: upstream.port) { number, _, conversation throws(LoginFailure) in
            guard number == 1 else { throw LoginFailure(.noCredential, challenge: "bank", detail: "It is gone.") }
            return .bearer("t1", expiresAt: conversation.now() + 100_000)
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        #expect(try proxy.fetch(get()).body == "t1")
        proxy.clock.advance(by: 86)
        for _ in 0..<10 {
            #expect(try proxy.fetch(get()).body == "t1")
            proxy.wait("the end of a renewal") { proxy.log.finished == proxy.log.count }
            proxy.settle()
        }
        #expect(proxy.log.renewals == 1)
        proxy.clock.advance(by: 5)
        #expect(try proxy.fetch(get()).body == "t1")
        proxy.wait("the next renewal") { proxy.log.renewals == 2 }
    }

    @Test("a scope that a resource names is requested, and remembered for its route on every worker")
    func scopes() throws {
        let upstream = try AnsweringUpstream { head, _ in
            guard head.contains("Authorization") else { return challenge }
            if head.hasPrefix("GET /pay "), !head.contains("Bearer pay\r\n") {
                return answer(
                    "403 Forbidden", "",
                    "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"pay\"\r\n")
            }
            return answer("200 OK", "in")
        }
        let login = Authenticator.scripted(port: upstream.port) { _, scope, _ in .bearer(scope.description) }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]), workers: 2)
        for _ in 0..<20 { #expect(try proxy.fetch(get("/pay")).body == "in") }
        #expect(try proxy.fetch(get("/see")).body == "in")
        #expect(proxy.log.count <= 2)
        let before = upstream.requests
        for _ in 0..<20 { #expect(try proxy.fetch(get("/pay")).body == "in") }
        #expect(upstream.requests == before + 20)
    }

    @Test("a conflict is sent again, seven times at most")
    func conflicts() throws {
        let left = Mutex(3)
        let upstream = try AnsweringUpstream { head, body in
            let isConflict = left.withLock { left in
                left -= 1
                return left >= 0
            }
            guard isConflict else { return answer("200 OK", body) }
            return answer("409 Conflict", "again", "MFP-Conflict: yes\r\n")
        }
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let post = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody"
        #expect(try proxy.fetch(post).body == "body")
        #expect(upstream.requests == 4)
        left.withLock { $0 = 100 }
        #expect(try proxy.fetch(post).head.hasPrefix("HTTP/1.1 409 "))
        #expect(upstream.requests == 12)
        #expect(proxy.log.count == 0)
    }
}
