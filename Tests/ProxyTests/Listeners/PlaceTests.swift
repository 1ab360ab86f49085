// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import EventLoop
import Glibc
import HTTPWire
import TestSupport
import Testing

@testable import Proxy

/// Callers of several users, by sockets whose owner is changed, which only root can do.
@Suite("Quotas of callers by user", .enabled(if: getuid() == 0))
struct PlaceTests {
    private struct Greeting: LocalService {
        func answer(_ request: LocalRequest) -> LocalAnswer {
            LocalAnswer(status: 200, contentType: "text/plain", body: Array("in".utf8))
        }
    }

    private static let (ann, bob, eve) = (uid_t(21_001), uid_t(21_002), uid_t(21_003))
    private static let point = ListenPoint.tcp(host: "127.0.0.1", port: 0)

    private static func plan(
        _ name: String = "test", users: Set<UInt32>? = nil, callers: Int? = nil,
        service: ListenerPlan.Service = .proxy
    ) -> ListenerPlan {
        ListenerPlan(
            name: name, service: service, router: Router(fallback: "bank"), hosts: HostPolicy(), users: users,
            callers: callers)
    }

    private func proxy(
        _ plans: [ListenerPlan] = [plan()], before upstream: AnsweringUpstream, callers: Int, workers: Int = 1,
        evictionAge: Duration = .seconds(3600)
    ) throws -> TestProxy {
        var limits = WorkerLimits(callers: callers)
        limits.evictionAge = evictionAge
        return try TestProxy(
            workers: workers, limits: limits,
            ProxyPlan(
                listeners: plans.map { (point: Self.point, plan: $0) }, upstreams: [.bank(port: upstream.port)]))
    }

    private func connect(_ proxy: TestProxy, as uid: uid_t, listener: Int = 0) throws -> Peer {
        let port = port(of: proxy.server.descriptors[listener])
        return Peer(accepted: try connectedSocket(to: "127.0.0.1", port: port, uid: uid))
    }

    /// Connects, sends a request, and returns the caller with the status of the answer.
    private func call(_ proxy: TestProxy, as uid: uid_t, listener: Int = 0) throws -> (caller: Peer, status: String) {
        let caller = try connect(proxy, as: uid, listener: listener)
        _ = try? caller.send(get())
        return (caller, String(try caller.message().head.dropFirst(9).prefix(3)))
    }

    @Test("100 connections of a refused user do not keep an allowed user out", arguments: [1, 2])
    func refused(workers: Int) throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy([Self.plan(users: [Self.ann])], before: upstream, callers: 8, workers: workers)
        var held: [Peer] = []
        for number in 0..<100 {
            // Every other caller sends nothing.
            if number % 2 == 0 {
                held.append(try connect(proxy, as: Self.eve))
            } else {
                let (caller, status) = try call(proxy, as: Self.eve)
                #expect(status == "403")
                held.append(caller)
            }
            if number % 10 == 0 {
                #expect(try call(proxy, as: Self.ann).status == "200")
                proxy.expectNoConnections()
            }
        }
        #expect(proxy.reading.refused.isEmpty)
        withExtendedLifetime(held) {}
    }

    @Test("a user who holds all connections it gets leaves other users theirs", arguments: [1, 2])
    func hog(workers: Int) throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(before: upstream, callers: 32, workers: workers)
        var held: [Peer] = []
        var statuses: [String] = []
        for _ in 0..<64 {
            let (caller, status) = try call(proxy, as: Self.eve)
            held.append(caller)
            statuses.append(status)
        }
        // A quarter before the first look at a caller's user, then half of the rest.
        #expect(statuses.count { $0 == "200" } == 8 + 12)
        #expect(statuses.count { $0 == "503" } == 64 - 20)
        let refused = try connect(proxy, as: Self.eve)
        #expect(try refused.message().body.contains("half of what all others leave"))
        var others: [Peer] = []
        for uid in [Self.ann, Self.ann, Self.bob, Self.ann, Self.bob] {
            let (caller, status) = try call(proxy, as: uid)
            #expect(status == "200")
            others.append(caller)
        }
        withExtendedLifetime((held, others)) {}
    }

    @Test("callers of one listener leave the reserved connections of another", arguments: [1, 2])
    func listeners(workers: Int) throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(
            [Self.plan("one"), Self.plan("two")], before: upstream, callers: 16, workers: workers)
        // Callers of root, who has no share limit.
        let held = try (0..<20).map { _ in try call(proxy, as: 0) }
        #expect(held.count { $0.status == "200" } == 12)
        let others = try (0..<2).map { _ in try call(proxy, as: Self.ann, listener: 1) }
        #expect(others.allSatisfy { $0.status == "200" })
    }

    @Test("the admin listener's connections have quotas by user as well")
    func admin() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let plans = [Self.plan(), Self.plan("admin", callers: 16, service: .local(Greeting()))]
        let proxy = try proxy(plans, before: upstream, callers: 16)
        let held = try (0..<40).map { _ in try connect(proxy, as: Self.eve, listener: 1) }
        proxy.wait("all of them") { proxy.reading.refused[.user] == 40 - 10 }
        #expect(try call(proxy, as: Self.ann, listener: 1).status == "200")
        #expect(try call(proxy, as: Self.ann).status == "200")
        withExtendedLifetime(held) {}
    }

    @Test("at the limit, a silent connection is closed first, then the one idle longest")
    func eviction() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(before: upstream, callers: 4, evictionAge: .zero)
        let idle = try (0..<3).map { _ in
            proxy.pass(.milliseconds(1))
            return try call(proxy, as: 0).caller
        }
        let silent = try connect(proxy, as: 0)
        proxy.wait("four") { proxy.server.figures.openConnections == 4 }
        let ann = try call(proxy, as: Self.ann)
        #expect(ann.status == "200")
        #expect(try silent.readAll() == "")
        let bob = try call(proxy, as: Self.bob)
        #expect(bob.status == "200")
        #expect(try idle[0].readAll() == "")
        for caller in idle.dropFirst() {
            try caller.send(get())
            #expect(try caller.message().body == "in")
        }
        #expect(proxy.server.figures.openConnections == 4)
        withExtendedLifetime((ann, bob)) {}
    }

    @Test("the connection that is closed for another caller may be any worker's")
    func evictionElsewhere() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(before: upstream, callers: 4, workers: 4, evictionAge: .zero)
        var held = try (0..<4).map { _ in try call(proxy, as: 0).caller }
        for uid in [Self.ann, Self.bob, Self.eve] {
            let (caller, status) = try call(proxy, as: uid)
            #expect(status == "200")
            held.append(caller)
        }
        #expect(proxy.server.figures.openConnections == 4)
        withExtendedLifetime(held) {}
    }

    @Test("a connection in use is not closed for another caller")
    func busy() throws {
        let upstream = try ScriptedUpstream()
        var limits = WorkerLimits(callers: 2)
        limits.evictionAge = .zero
        let proxy = try TestProxy(.bank(port: upstream.port), limits: limits)
        let callers = try (0..<2).map { number in
            let caller = try connect(proxy, as: 0)
            try caller.send(get("/\(number)"))
            return caller
        }
        let servers = try (0..<2).map { _ in try upstream.accept() }
        for server in servers { _ = try server.head() }
        let refused = try connect(proxy, as: Self.ann)
        #expect(try refused.message().head.hasPrefix("HTTP/1.1 503 "))
        for server in servers { try server.send(answer("200 OK", "in")) }
        for caller in callers { #expect(try caller.message().body == "in") }
    }

    @Test("a connection whose next request is there already is not closed for another caller")
    func asked() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let stall = Stall()
        let service = StallingService(stalls: ["/stall": stall])
        let proxy = try proxy(
            [Self.plan(), Self.plan("local", service: .local(service))], before: upstream, callers: 1,
            evictionAge: .zero)
        let idle = try call(proxy, as: 0).caller
        let stalling = try connect(proxy, as: 0, listener: 1)
        try stalling.send(get("/stall"))
        #expect(stall.isThere.wait())
        // The worker sees the new caller first.
        let other = try connect(proxy, as: Self.ann)
        try idle.send(get())
        stall.goesOn.set()
        #expect(try idle.message().body == "in")
        #expect(try other.message().head.hasPrefix("HTTP/1.1 503 "))
    }

    @Test("a silent caller holds a connection only for a short time")
    func silence() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try TestProxy(.bank(port: upstream.port), limits: WorkerLimits(callers: 2))
        let silent = try connect(proxy, as: Self.eve)
        proxy.pass(.milliseconds(9_999))
        #expect(!silent.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try silent.readAll() == "")
        #expect(try call(proxy, as: Self.ann).status == "200")
    }
}
