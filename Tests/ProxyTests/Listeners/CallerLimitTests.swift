// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import EventLoop
import Glibc
import HTTPWire
import TestSupport
import Testing

@testable import Proxy

@Suite("More callers than there is room for")
struct CallerLimitTests {
    private func serve(_ caller: Peer) throws {
        try caller.send(get())
        #expect(try caller.message().body == "in")
    }

    private func expectRefused(_ caller: Peer, because reason: String = "`limits.callers`") throws {
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 503 "))
        #expect(head.contains("Retry-After: 1\r\n"))
        #expect(head.contains("Connection: close\r\n"))
        #expect(head.contains("Content-Type: application/problem+json\r\n"))
        #expect(body.contains("\"code\":\"overloaded\""))
        #expect(body.contains(reason))
        caller.finish()
        try caller.expectEnd()
    }

    @Test(
        "exactly the limit of callers is admitted, on any number of workers", arguments: [(4, 7), (4, 1), (3, 3)])
    func shared(workers: Int, limit: Int) throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try TestProxy(.bank(port: upstream.port), workers: workers, limits: WorkerLimits(callers: limit))
        var callers: [Peer] = []
        for _ in 0..<limit {
            callers.append(try proxy.connect())
            try serve(callers[callers.count - 1])
        }
        // A caller that has already sent its request also gets the answer, and no reset.
        let eager = try proxy.connect()
        _ = try? eager.send(get())
        try expectRefused(eager)
        try expectRefused(try proxy.connect())
        callers.removeLast().close()
        proxy.wait("room") { proxy.server.figures.openConnections == limit - 1 }
        callers.append(try proxy.connect())
        try serve(callers[callers.count - 1])
        for caller in callers { try serve(caller) }
    }

    @Test("a reload changes the limits of callers and exchanges")
    func reload() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try TestProxy(.bank(port: upstream.port), limits: WorkerLimits(callers: 1))
        let first = try proxy.connect()
        try serve(first)
        proxy.server.setLimits(callers: 2, exchanges: 1)
        let second = try proxy.connect()
        try serve(second)
        proxy.server.setLimits(callers: 1, exchanges: 1)
        second.close()
        proxy.wait("one") { proxy.server.figures.openConnections == 1 }
        try expectRefused(try proxy.connect())
        try serve(first)
    }

    @Test("a listener's own limit does not affect the callers of other listeners, and the admin listener has its own")
    func listeners() throws {
        struct Greeting: LocalService {
            func answer(_ request: LocalRequest) -> LocalAnswer {
                LocalAnswer(status: 200, contentType: "text/plain", body: Array("in".utf8))
            }
        }
        func plan(_ name: String, callers: Int?, service: ListenerPlan.Service = .proxy) -> ListenerPlan {
            ListenerPlan(
                name: name, service: service, router: Router(fallback: "bank"), hosts: HostPolicy(), callers: callers)
        }
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let point = ListenPoint.tcp(host: "127.0.0.1", port: 0)
        let proxy = try TestProxy(
            workers: 2, limits: WorkerLimits(callers: 3),
            ProxyPlan(
                listeners: [
                    (point: point, plan: plan("few", callers: 1)), (point: point, plan: plan("many", callers: nil)),
                    (point: point, plan: plan("admin", callers: 1, service: .local(Greeting()))),
                ], upstreams: [.bank(port: upstream.port)]))
        let ports = proxy.server.descriptors.map(port(of:))
        let few = try Peer(port: ports[0])
        try serve(few)
        try expectRefused(try Peer(port: ports[0]), because: "`callers` of this listener")
        let many = try [Peer(port: ports[1]), Peer(port: ports[1])]
        for caller in many { try serve(caller) }
        try expectRefused(try Peer(port: ports[1]))
        let admin = try Peer(port: ports[2])
        try serve(admin)
        try expectRefused(try Peer(port: ports[2]), because: "`callers` of this listener")
        // A caller that a listener refused does not count for others, and no caller counts after it has gone.
        few.close()
        proxy.wait("room") { proxy.server.figures.openConnections == 3 }
        try serve(try Peer(port: ports[1]))
    }

    @Test("a caller who is not admitted gets its reply when its request begins, or after a second")
    func turnedAway() throws {
        let clock = ManualLoopClock()
        let loop = try EventLoop(clock: clock)
        let refused = RefusedCallers(loop: loop)
        let listener = try ListenPoint.tcp(host: "127.0.0.1", port: 0).open()
        defer { close(listener) }
        let closingReply = LocalReply(.callerNotAllowed, detail: "Not you.").closingReply
        let callers = try (0..<2).map { _ in try Peer(port: port(of: listener)) }
        var noted = 0
        for _ in callers {
            let accepted = accept(listener, nil, nil)
            #expect(fcntl(accepted, F_SETFL, O_NONBLOCK) == 0)
            refused.turnAway(accepted, with: closingReply) { noted += 1 }
        }
        loop.turnOnce()
        #expect(!callers[0].hasNews)
        try callers[0].send(get())
        loop.turnOnce()
        #expect(try callers[0].message().head.hasPrefix("HTTP/1.1 403 "))
        try callers[0].expectEnd()
        clock.advance(by: .milliseconds(999))
        loop.turnOnce()
        #expect(!callers[1].hasNews)
        clock.advance(by: .milliseconds(1))
        loop.turnOnce()
        #expect(try callers[1].message().head.hasPrefix("HTTP/1.1 403 "))
        try callers[1].expectEnd()
        // A caller without a request does not count as refused.
        #expect(noted == 1)
    }

    @Test("refused callers who stay are closed, the first ones at once if there are many")
    func lingering() throws {
        let loop = try EventLoop()
        let refused = RefusedCallers(loop: loop)
        var callers: [Int32] = []
        for _ in 0..<RefusedCallers.most + 1 {
            var pair: [Int32] = [0, 0]
            #expect(
                unsafe socketpair(
                    AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0, &pair)
                    == 0)
            refused.refuse(pair[0], .everywhere)
            callers.append(pair[1])
        }
        defer { for caller in callers { close(caller) } }
        func takes(_ caller: Int32) -> Bool { unsafe send(caller, "x", 1, Int32(MSG_NOSIGNAL)) == 1 }
        #expect(!takes(callers[0]))
        #expect(takes(callers[1]))
        // Their bytes are discarded, and a half-closed one is released.
        loop.turnOnce()
        #expect(takes(callers[1]))
        #expect(shutdown(callers[2], Int32(SHUT_WR)) == 0)
        loop.turnOnce()
        refused.closeAll()
        #expect(!takes(callers[1]))
        #expect(Peer(accepted: dup(callers[1])).peekHead()?.hasPrefix("HTTP/1.1 503 ") == true)
    }

    @Test("a caller who cannot be accepted for lack of a descriptor gets a reply that says so")
    func noDescriptor() throws {
        let listener = try ListenPoint.tcp(host: "127.0.0.1", port: 0).open()
        defer { close(listener) }
        let refused = RefusedCallers(loop: try EventLoop())
        #expect(!refused.refuseFirst(at: listener))
        let caller = try Peer(port: port(of: listener))
        #expect(refused.refuseFirst(at: listener))
        #expect(try caller.message().body.contains("LimitNOFILE"))
        try caller.expectEnd()
        #expect(!refused.refuseFirst(at: listener))
    }
}
