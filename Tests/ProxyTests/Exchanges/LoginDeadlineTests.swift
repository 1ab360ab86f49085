// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import Testing

/// Suspends a login until its test ends, since a task that hangs for ever is never freed.
private final class Hang: Sendable {
    private let gate = Gate()
    private let isOver = Mutex(false)

    func pass() async {
        await gate.pass()
        isOver.withLock { $0 = true }
    }

    func end(at proxy: TestProxy) {
        gate.open()
        proxy.wait("the end of what hung") { isOver.withLock { $0 } }
    }
}

@Suite("Logins that never end")
struct LoginDeadlineTests {
    private static let limits = UpstreamPlan.Timeouts(login: .seconds(40))

    private func upstream() throws -> AnsweringUpstream {
        try AnsweringUpstream { head, _ in
            let field = head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: Bearer ") }
            return field.map { answer("200 OK", String($0.dropFirst(22))) } ?? challenge
        }
    }

    @Test("a login that hangs is 504 for all waiters, and the next request starts another one")
    func hanging() throws {
        let upstream = try upstream()
        let hang = Hang()
        let login = Authenticator.scripted(port: upstream.port) { number, _, _ in
            if number == 1 { await hang.pass() }
            return .bearer("t\(number)")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, timeouts: Self.limits, logins: [login]), workers: 2)
        let callers = try (0..<10).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get()) }
        proxy.wait("every challenge") { proxy.waiters == 10 }
        proxy.pass(.milliseconds(39_999))
        #expect(callers.allSatisfy { !$0.hasNews } && proxy.log.finished == 0)
        proxy.pass(.milliseconds(1))
        for caller in callers {
            let (head, body) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 504 "))
            #expect(body.contains("\"code\":\"login-timeout\""))
        }
        proxy.wait("the login's end") { proxy.log.finished == 1 }
        proxy.settle()
        // The request falls into the pause after an unknown outcome.
        #expect(try proxy.fetch(get()).head.hasPrefix("HTTP/1.1 504 "))
        #expect(proxy.log.count == 1)
        proxy.clock.advance(by: 2)
        #expect(try proxy.fetch(get()).body == "t2")
        #expect(proxy.waiters == 0)
        hang.end(at: proxy)
    }

    @Test("a login whose time passes while it waits for others is 504, and the next request starts another one at once")
    func queued() throws {
        let upstream = try upstream()
        let hang = Hang()
        let login = Authenticator.scripted(port: upstream.port) { number, _, conversation in
            conversation.waiting(true)
            if number == 1 { await hang.pass() }
            conversation.waiting(false)
            return .bearer("t\(number)")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, timeouts: Self.limits, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(get())
        proxy.wait("the login") { proxy.waiters == 1 && proxy.log.count == 1 }
        proxy.pass(.seconds(40))
        #expect(try caller.message().body.contains("\"code\":\"login-timeout\""))
        proxy.wait("the login's end") { proxy.log.finished == 1 }
        proxy.settle()
        #expect(try proxy.fetch(get()).body == "t2")
        hang.end(at: proxy)
    }

    @Test("the time that a login waits for others postpones its deadline, once")
    func postponed() throws {
        let upstream = try upstream()
        let (queue, hang) = (Hang(), Hang())
        let hasPassed = Mutex(false)
        let login = Authenticator.scripted(port: upstream.port, isKept: true) { _, _, conversation in
            conversation.waiting(true)
            await queue.pass()
            conversation.waiting(false)
            hasPassed.withLock { $0 = true }
            await hang.pass()
            return .bearer("t")
        }
        let plan = UpstreamPlan.bank(port: upstream.port, timeouts: Self.limits, logins: [login])
        let proxy = try TestProxy(plan)
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.wait("the login") { proxy.log.count == 1 }
        proxy.pass(.seconds(30))
        queue.end(at: proxy)
        proxy.wait("its turn") { hasPassed.withLock { $0 } }
        proxy.pass(.milliseconds(39_999))
        proxy.settle()
        #expect(proxy.log.finished == 0)
        proxy.pass(.milliseconds(1))
        proxy.wait("the login's end") { proxy.log.finished == 1 }
        hang.end(at: proxy)
    }

    @Test("a kept login that hangs without waiters ends by its deadline, and is tried again")
    func kept() throws {
        let upstream = try upstream()
        let hang = Hang()
        let plan = UpstreamPlan.bank(
            port: upstream.port, timeouts: Self.limits,
            logins: [
                .scripted(port: upstream.port, isKept: true) { number, _, _ in
                    if number == 1 { await hang.pass() }
                    return .bearer("t\(number)")
                }
            ])
        let proxy = try TestProxy(plan)
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.wait("the login") { proxy.log.count == 1 }
        proxy.pass(.seconds(40))
        proxy.wait("the login's end") { proxy.log.finished == 1 }
        proxy.settle()
        proxy.clock.advance(by: 10)
        proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
        proxy.wait("the second login") { proxy.log.finished == 2 }
        proxy.settle()
        #expect(try proxy.fetch(get()).body == "t2")
        #expect(upstream.requests == 1)
        hang.end(at: proxy)
    }

    @Test("a renewal that hangs ends by its deadline while its session is used, and is followed by the next one")
    func renewal() throws {
        let upstream = try upstream()
        let hang = Hang()
        let login = Authenticator.scripted(port: upstream.port) { number, _, conversation in
            if number == 2 { await hang.pass() }
            return .bearer("t\(number)", expiresAt: conversation.now() + 100_000)
        }
        let proxy = try TestProxy(.bank(port: upstream.port, timeouts: Self.limits, logins: [login]))
        #expect(try proxy.fetch(get()).body == "t1")
        proxy.clock.advance(by: 86)
        #expect(try proxy.fetch(get()).body == "t1")
        proxy.wait("the renewal") { proxy.log.count == 2 }
        proxy.pass(.seconds(40))
        proxy.wait("the renewal's end") { proxy.log.finished == 2 }
        proxy.settle()
        proxy.clock.advance(by: 3)
        #expect(try proxy.fetch(get()).body == "t1")
        proxy.wait("the next renewal") { proxy.log.finished == 3 }
        proxy.settle()
        #expect(try proxy.fetch(get()).body == "t3")
        hang.end(at: proxy)
    }

    @Test("after its deadline a login can send nothing and look nothing up, and what it wins is nobody's")
    func late() throws {
        let upstream = try upstream()
        let gate = Gate()
        let done = Mutex<[String]>([])
        let port = upstream.port
        let login = Authenticator.scripted(port: port) { number, _, conversation in
            guard number == 1 else { return .bearer("t\(number)") }
            await gate.pass()
            let url = WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: port), path: "/token")
            let isSent = (try? await conversation.sideRequests.send(SideRequest(method: .post, url: url))) != nil
            let isKnown = (try? await conversation.credentials.credential(named: "pin")) != nil
            done.withLock { $0 = [isSent ? "sent" : "not sent", isKnown ? "looked up" : "not looked up"] }
            return .bearer("late")
        }
        let proxy = try TestProxy(.bank(port: port, timeouts: Self.limits, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(get())
        proxy.wait("the login") { proxy.waiters == 1 }
        proxy.pass(.seconds(40))
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 504 "))
        proxy.clock.advance(by: 2)
        #expect(try proxy.fetch(get()).body == "t2")
        let before = upstream.requests
        gate.open()
        proxy.wait("the late login") { done.withLock { !$0.isEmpty } }
        #expect(done.withLock { $0 } == ["not sent", "not looked up"])
        #expect(try proxy.fetch(get()).body == "t2")
        #expect(upstream.requests == before + 1)
        #expect(proxy.log.finished == 2)
    }

    /// Source of a wrong PIN, which hangs from the second lookup on.
    private struct HangingPIN: CredentialProvider {
        let hang: Hang
        let lookUps = LoginCounter()

        func credential(named name: String) async throws(CredentialError) -> Credential? {
            if lookUps.next() > 1 { await hang.pass() }
            return Credential(name: name, fields: ["pin": Secret("9999")])
        }
    }

    @Test("a source that hangs while a latch is closed ends by the login's deadline")
    func latched() throws {
        let upstream = try upstream()
        let hang = Hang()
        let login = Authenticator.scripted(port: upstream.port) {
            (_, _, conversation) async throws(LoginFailure) in
            let origin = Origin(scheme: .https, host: "bank.example")
            let key = LatchKey(origin: origin, challenge: "bank", credential: "pin")
            throw try await CredentialUse.lookUp(key, in: conversation)
                .reject(.rejected, serverWait: nil, in: conversation)
        }
        let proxy = try TestProxy(
            .bank(port: upstream.port, timeouts: Self.limits, logins: [login]), credentials: HangingPIN(hang: hang))
        #expect(try proxy.fetch(get()).body.contains("\"code\":\"login-rejected\""))
        let caller = try proxy.connect()
        try caller.send(get())
        proxy.wait("the login") { proxy.waiters == 1 }
        proxy.pass(.seconds(40))
        #expect(try caller.message().body.contains("\"code\":\"login-timeout\""))
        proxy.wait("the login's end") { proxy.log.finished == 2 }
        #expect(proxy.waiters == 0)
        hang.end(at: proxy)
    }

    @Test("an answer that comes after the deadline is still handed to the login, so that a rejection closes its latch")
    func lateAnswer() throws {
        let server = try ScriptedUpstream()
        let status = Mutex(0)
        let port = server.port
        let login = Authenticator.scripted(port: port, isAhead: true) { _, _, conversation in
            let url = WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: port), path: "/token")
            let response = try? await conversation.sideRequests.send(SideRequest(method: .post, url: url))
            status.withLock { $0 = response?.status ?? -1 }
            return .bearer("late")
        }
        let proxy = try TestProxy(.bank(port: port, timeouts: Self.limits, logins: [login]))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")
        let connection = try server.accept()
        _ = try connection.head()
        proxy.pass(.seconds(40))
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 504 "))
        try connection.send(answer("401 Unauthorized", "no"))
        proxy.wait("the late answer") { status.withLock { $0 } != 0 }
        #expect(status.withLock { $0 } == 401)
    }
}
