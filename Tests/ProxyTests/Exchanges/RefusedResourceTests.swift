// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import Testing

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
