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
        proxy.services.roster.maintainSessions(of: [plan])
        proxy.wait("the login") { proxy.log.finished == 1 }
        proxy.settle()
        #expect(try proxy.fetch(get()).body == "in")
        #expect(upstream.requests == 1)
        proxy.services.roster.maintainSessions(of: [plan])
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
        proxy.services.roster.maintainSessions(of: [plan])
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
        proxy.services.roster.maintainSessions(of: [plan])
        proxy.wait("the login") { proxy.log.finished == 1 }
        proxy.settle()
        proxy.clock.advance(by: 86)
        proxy.services.roster.maintainSessions(of: [plan])
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
        proxy.services.roster.maintainSessions(of: [plan])
        proxy.wait("the failure") { proxy.log.finished == 1 }
        proxy.settle()
        proxy.services.roster.maintainSessions(of: [plan])
        proxy.clock.advance(by: 6)
        proxy.services.roster.maintainSessions(of: [plan])
        proxy.wait("the second login") { proxy.log.finished == 2 }
        proxy.settle()
        #expect(proxy.log.count == 2)
    }
}
