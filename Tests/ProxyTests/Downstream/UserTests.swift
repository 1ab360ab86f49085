// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc
import HTTPWire
import Proxy
import Testing

@Suite("Callers by their user")
struct UserTests {
    private static let own = UInt32(getuid())
    private static let other = own &+ 12_345

    /// Returns a proxy whose listener is for `users` and whose route `/ann/` is for `routeUsers`.
    private func proxy(
        at point: ListenPoint, before upstream: AnsweringUpstream, users: Set<UInt32>? = nil,
        routeUsers: Set<UInt32>? = nil, fallback: String? = "bank"
    ) throws -> TestProxy {
        let routes = routeUsers.map { [Router.Route(path: "/ann/", users: $0, upstream: "bank", stripsPrefix: true)] }
        let plan = ListenerPlan(
            name: "test", service: .proxy, router: Router(routes: routes ?? [], fallback: fallback),
            hosts: HostPolicy(), users: users)
        return try TestProxy(
            ProxyPlan(listeners: [(point: point, plan: plan)], upstreams: [.bank(port: upstream.port)]))
    }

    private func caller(of proxy: TestProxy, at point: ListenPoint) throws -> Peer {
        switch point {
        case .unix(let path, _): try Peer(path: path)
        case .tcp(let host, _):
            Peer(accepted: try connectedSocket(to: host == "::" ? "127.0.0.1" : host, port: proxy.port))
        case .inherited: throw Peer.Problem(doing: "connect")
        }
    }

    /// Returns a listen point of each kind. The path is unique to the test, since tests run concurrently.
    private static func points(of test: String) -> [ListenPoint] {
        [
            .tcp(host: "127.0.0.1", port: 0), .tcp(host: "::1", port: 0), .tcp(host: "::", port: 0),
            .unix(path: "/tmp/countersign-\(test)-\(getpid()).sock", mode: 0o600),
        ]
    }

    @Test(
        "a listener with users serves them on each request of a connection, and ends the connections of others",
        arguments: points(of: "listener-users")
    )
    func listener(point: ListenPoint) throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        do {
            let proxy = try proxy(at: point, before: upstream, users: [Self.own])
            let caller = try caller(of: proxy, at: point)
            for _ in 0..<2 {
                try caller.send(get())
                #expect(try caller.message().body == "in")
            }
        }
        let proxy = try proxy(at: point, before: upstream, users: [Self.other])
        let caller = try caller(of: proxy, at: point)
        try caller.send(get())
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 403 ") && head.contains("Connection: close\r\n"))
        #expect(body.contains("\"code\":\"caller-not-allowed\""))
        #expect(body.contains("not under `users`"))
        try caller.expectEnd()
        #expect(proxy.server.figures.acceptedConnections == 0)
    }

    @Test("a route with users accepts their requests only", arguments: points(of: "route-users"))
    func route(point: ListenPoint) throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", String(head.split(separator: "\r\n")[0])) }
        do {
            let proxy = try proxy(at: point, before: upstream, routeUsers: [Self.own])
            let caller = try caller(of: proxy, at: point)
            try caller.send(get("/ann/x"))
            #expect(try caller.message().body == "GET /x HTTP/1.1")
        }
        // A request that the route refuses does not go to the listener's own upstream either.
        do {
            let proxy = try proxy(at: point, before: upstream, routeUsers: [Self.other])
            let caller = try caller(of: proxy, at: point)
            try caller.send(get("/ann/x"))
            #expect(try caller.message().body.contains("for other users"))
        }
        // There is no upstream for other callers.
        let proxy = try proxy(at: point, before: upstream, routeUsers: [Self.other], fallback: nil)
        let caller = try caller(of: proxy, at: point)
        try caller.send(get("/x"))
        #expect(try caller.message().body.contains("not under `users` of any route"))
        try caller.expectEnd()
    }

    @Test("a caller whom a route refuses has its connection ended", arguments: points(of: "refused-users"))
    func refusedByRoute(point: ListenPoint) throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let plan = ListenerPlan(
            name: "test", service: .proxy,
            router: Router(
                routes: [
                    Router.Route(path: "/ann/", users: [Self.other], upstream: "bank"),
                    Router.Route(path: "/all/", upstream: "bank"),
                ], fallback: nil), hosts: HostPolicy())
        let proxy = try TestProxy(
            ProxyPlan(listeners: [(point: point, plan: plan)], upstreams: [.bank(port: upstream.port)]))
        let caller = try caller(of: proxy, at: point)
        try caller.send(get("/all/x"))
        #expect(try caller.message().body == "in")
        try caller.send(get("/ann/x"))
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 403 ") && head.contains("Connection: close\r\n"))
        #expect(body.contains("for other users"))
        try caller.expectEnd()
    }

    @Test("another user's program on loopback is distinguished from ours", .enabled(if: getuid() == 0))
    func anotherUser() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(at: .tcp(host: "127.0.0.1", port: 0), before: upstream, users: [Self.other])
        let theirs = Peer(accepted: try connectedSocket(to: "127.0.0.1", port: proxy.port, uid: Self.other))
        let ours = try proxy.connect()
        try ours.send(get())
        #expect(try ours.message().head.hasPrefix("HTTP/1.1 403 "))
        try theirs.send(get())
        #expect(try theirs.message().body == "in")
    }

    @Test("a listener that gets users by a reload checks the callers that are connected already")
    func reload() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let point = ListenPoint.tcp(host: "127.0.0.1", port: 0)
        let proxy = try proxy(at: point, before: upstream)
        let caller = try proxy.connect()
        try caller.send(get())
        #expect(try caller.message().body == "in")
        let plan = ListenerPlan(
            name: "test", service: .proxy, router: Router(fallback: "bank"), hosts: HostPolicy(), users: [Self.other])
        try proxy.server.apply(
            ProxyPlan(listeners: [(point: point, plan: plan)], upstreams: [.bank(port: upstream.port)]))
        try caller.send(get())
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 403 "))
    }
}
