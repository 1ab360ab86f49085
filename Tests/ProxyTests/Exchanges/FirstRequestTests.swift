// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Synchronization
import TestSupport
import Testing

@Suite("Many requests at once without a session")
struct FirstRequestTests {
    /// A server whose first answer the test holds back, and which serves `/public` without a login.
    private final class Holding: Sendable {
        let isAsked = Signal()
        let goesOn = Signal()
        private let isFirst = Atomic<Bool>(true)
        let anonymous = Atomic<Int>(0)

        func upstream() throws -> AnsweringUpstream {
            try AnsweringUpstream { [self] head, _ in
                if head.contains("Authorization: Bearer ") { return answer("200 OK", "in") }
                anonymous.wrappingAdd(1, ordering: .relaxed)
                if isFirst.exchange(false, ordering: .relaxed) {
                    isAsked.set()
                    goesOn.wait()
                }
                return head.hasPrefix("GET /public") ? answer("200 OK", "all") : challenge
            }
        }
    }

    private let server = Holding()

    private func proxy(
        _ upstream: AnsweringUpstream, workers: Int = 2,
        _ logIn: @escaping @Sendable () async throws(LoginFailure) -> Session = { .bearer("t") }
    ) throws -> TestProxy {
        try TestProxy(
            .bank(
                port: upstream.port,
                logins: [.scripted(port: upstream.port) { _, _, _ async throws(LoginFailure) in try await logIn() }]),
            workers: workers)
    }

    /// Sends a first request and `count` others, which wait for it.
    private func burst(_ count: Int, first: String = "/x", _ path: String = "/x", at proxy: TestProxy) throws -> [Peer]
    {
        let leader = try proxy.connect()
        try leader.send(get(first))
        #expect(server.isAsked.wait())
        let others = try (0..<count).map { _ in try proxy.connect() }
        for other in others { try other.send(get(path)) }
        return [leader] + others
    }

    @Test("a cold burst is one anonymous request, and one login")
    func coldBurst() throws {
        let upstream = try server.upstream()
        let proxy = try proxy(upstream)
        let callers = try burst(40, at: proxy)
        proxy.wait("40 wait") { proxy.waitingRequests == 40 }
        server.goesOn.set()
        for caller in callers { #expect(try caller.message().body == "in") }
        #expect(server.anonymous.load(ordering: .relaxed) == 1)
        #expect(proxy.log.count == 1)
    }

    @Test("an answer without a challenge lets all go on, and nobody waits after that")
    func openServer() throws {
        let upstream = try server.upstream()
        let proxy = try proxy(upstream)
        let callers = try burst(10, first: "/public", "/public", at: proxy)
        proxy.wait("ten wait") { proxy.waitingRequests == 10 }
        server.goesOn.set()
        for caller in callers { #expect(try caller.message().body == "all") }
        #expect(upstream.requests == 11)
        #expect(try proxy.fetch(get("/public")).body == "all")
        #expect(proxy.log.count == 0)
    }

    @Test("a server that is slow delays others by a second at most, once")
    func slowServer() throws {
        let upstream = try server.upstream()
        let proxy = try proxy(upstream)
        let callers = try burst(5, "/public", at: proxy)
        proxy.wait("five wait") { proxy.waitingRequests == 5 }
        proxy.clock.advance(by: 1)
        proxy.pass(.seconds(1))
        for caller in callers.dropFirst() { #expect(try caller.message().body == "all") }
        #expect(try proxy.fetch(get("/public")).body == "all")
        server.goesOn.set()
        #expect(try callers[0].message().body == "in")
        #expect(proxy.waitingRequests == 0)
    }

    @Test("a login that fails says nothing about other pages")
    func failedLogin() throws {
        let upstream = try server.upstream()
        let proxy = try proxy(upstream) { () async throws(LoginFailure) in throw .rejected }
        let callers = try burst(3, "/public", at: proxy)
        proxy.wait("three wait") { proxy.waitingRequests == 3 }
        server.goesOn.set()
        #expect(try callers[0].message().head.hasPrefix("HTTP/1.1 502 "))
        for caller in callers.dropFirst() { #expect(try caller.message().body == "all") }
    }

    @Test("a first request that goes away lets the others go on")
    func firstIsGone() throws {
        let upstream = try server.upstream()
        let proxy = try proxy(upstream, workers: 1)
        let callers = try burst(3, "/public", at: proxy)
        proxy.wait("three wait") { proxy.waitingRequests == 3 }
        callers[0].reset()
        for caller in callers.dropFirst() { #expect(try caller.message().body == "all") }
        server.goesOn.set()
    }

    @Test("a request with effects, and one with the caller's own authorization, wait for nobody")
    func independent() throws {
        let upstream = try server.upstream()
        let proxy = try proxy(upstream)
        let callers = try burst(1, at: proxy)
        proxy.wait("one waits") { proxy.waitingRequests == 1 }
        let post = try proxy.fetch("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        #expect(post.body == "in")
        #expect(try callers[1].message().body == "in")
        server.goesOn.set()
        #expect(try callers[0].message().body == "in")
    }
}
