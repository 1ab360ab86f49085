// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import Proxy
import TestSupport
import Testing

@Suite("Requests of a login that servers bind connections by")
struct BoundSideRequestTests {
    private static let (ann, bob, stranger) = (uid_t(12_345), uid_t(23_456), uid_t(34_567))

    private let users = TicketUsers()

    /// Returns a caller on loopback whose socket belongs to that user.
    private func caller(_ user: uid_t, of proxy: TestProxy) throws -> Peer {
        let descriptor = try connectedSocket(to: "127.0.0.1", port: proxy.port)
        #expect(fchown(descriptor, user, gid_t.max) == 0)
        return Peer(accepted: descriptor)
    }

    /// Returns a proxy where ann and bob have credentials below `/secure`, and others have none.
    private func proxy(_ upstream: BindingUpstream) throws -> TestProxy {
        let identities = try [(Self.ann, "alice"), (Self.bob, "bob")].map { user, name in
            (
                callers: Set([CallerIdentity.user(user)]),
                plan: try upstream.plan([users.login(name, at: upstream)], at: "secure/*")
            )
        }
        let refusing = users.login("-", at: upstream).refusing("There is no credential for this caller.")
        return try TestProxy(
            try upstream.plan([refusing], at: "secure/*", callers: identities), attempts: MemoryAttempts(),
            credentials: users)
    }

    private func upload(_ caller: Peer, to path: String) throws -> String {
        startThread(sending: post(LongBody(count: 300_000), to: path), to: caller)
        return try caller.message().body
    }

    @Test(
        "a caller without a credential is nobody on each connection, whoever has logged in for an upload",
        .enabled(if: getuid() == 0), arguments: BindingUpstream.Wire.allCases)
    func uploads(wire: BindingUpstream.Wire) throws {
        let upstream = try BindingUpstream(wire)
        let proxy = try proxy(upstream)
        let (ann, bob) = (try caller(Self.ann, of: proxy), try caller(Self.bob, of: proxy))
        let stranger = try caller(Self.stranger, of: proxy)
        #expect(try upload(ann, to: "/secure/up") == "alice")
        for _ in 0..<3 {
            try stranger.send(get("/open"))
            #expect(try stranger.message().body == "nobody")
        }
        // The login asks first what others get: on a connection of alice's it would take the address for public.
        #expect(try upload(bob, to: "/secure/up") == "bob")
        try stranger.send(get("/secure/up"))
        #expect(try stranger.message().head.hasPrefix("HTTP/1.1 403 "))
        let asked = try upstream.record.filter { $0.request.hasPrefix("HEAD ") }.map(\.user)
        #expect(asked == ["-", "alice", "-", "bob"])
        try upstream.expectSeparate()
    }

    @Test(
        "a login at the start shares no connection with requests under way, and leaves none behind",
        arguments: BindingUpstream.Wire.allCases)
    func start(wire: BindingUpstream.Wire) throws {
        let upstream = try BindingUpstream(wire)
        let plan = try upstream.plan(
            [users.login("alice", at: upstream, isKept: true, path: "/secure/slow")], at: "secure/*"
        ).asking(PlanSources(users))
        let proxy = try TestProxy(plan, attempts: MemoryAttempts())
        for _ in 0..<3 {
            let logins = proxy.log.finished
            proxy.services.roster.maintainSessions(of: LoginIndex([plan]))
            let callers = try (0..<8).map { _ in try proxy.connect() }
            for caller in callers { try caller.send(get("/open-slow")) }
            for caller in callers { #expect(try caller.message().body == "nobody") }
            proxy.wait("the login") { proxy.log.finished > logins }
            for caller in callers { try caller.send(get("/open-slow")) }
            for caller in callers { #expect(try caller.message().body == "nobody") }
            _ = proxy.services.gate.change { $0.sessions.drop { _ in true } }
        }
        #expect(try upstream.record.contains { $0.user == "alice" })
        #expect(try blockUntil { try upstream.boundUsers.isEmpty }, "the login's connections end")
        try upstream.expectSeparate()
    }
}
