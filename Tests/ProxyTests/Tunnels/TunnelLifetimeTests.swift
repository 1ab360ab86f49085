// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPWire
import Proxy
import TestSupport
import Testing

@Suite("Lifetimes of tunnels")
struct TunnelLifeTests {
    @Test("a reload does not cut a tunnel, even if it removes its listener and its upstream")
    func reload() throws {
        let tunnel = try OpenTunnel()
        try tunnel.proxy.server.apply(ProxyPlan(listeners: [], upstreams: []))
        try tunnel.caller.send("still")
        try tunnel.upstream.expect("still")
        try tunnel.upstream.send("there")
        try tunnel.caller.expect("there")
        tunnel.caller.close()
        tunnel.upstream.close()
        tunnel.expectOver()
    }

    @Test("a session that is renewed or dropped does not cut a tunnel")
    func session() throws {
        let server = try ScriptedUpstream()
        let login = Authenticator.scripted(port: server.port, isAhead: true) { _, _, _ in .bearer("succeeded") }
        let proxy = try TestProxy(.bank(port: server.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(switching())
        _ = try caller.head()
        #expect(proxy.services.gate.change { $0.sessions.drop { _ in true } }.count == 1)
        try caller.send("still")
        try upstream.expect("still")
    }

    @Test("a drain waits for tunnels, and what ends it ends them")
    func drain() throws {
        let tunnel = try OpenTunnel()
        let isDone = Signal()
        tunnel.proxy.server.drain { isDone.set() }
        try tunnel.caller.send("one more")
        try tunnel.upstream.expect("one more")
        #expect(!isDone.isSet)
        tunnel.proxy.server.stop()
        try tunnel.caller.expectEnd()
        try tunnel.upstream.expectEnd()
    }

    @Test("a drain is over when the last tunnel has ended by itself")
    func drained() throws {
        let tunnel = try OpenTunnel()
        let isDone = Signal()
        tunnel.proxy.server.drain { isDone.set() }
        tunnel.caller.reset()
        try tunnel.upstream.expectEnd()
        tunnel.proxy.wait("the end") { isDone.isSet }
    }

    @Test("a stopped proxy releases its tunnels")
    func release() throws {
        let server = try ScriptedUpstream()
        var proxy: TestProxy? = try TestProxy(.bank(port: server.port), workers: 2)
        weak let services = proxy?.services
        var ends: [Peer] = []
        for _ in 0..<3 {
            guard let caller = try proxy?.connect() else { return }
            try caller.send(upgrade())
            let upstream = try server.accept()
            _ = try upstream.head()
            try upstream.send(switching())
            _ = try caller.head()
            ends += [caller, upstream]
        }
        proxy = nil
        for end in ends { try end.expectEnd() }
        #expect(services == nil)
    }

    @Test("a blocked tunnel does not block other tunnels or requests")
    func beside() throws {
        let server = try ScriptedUpstream(receiveBuffer: 4096)
        let proxy = try TestProxy(.bank(port: server.port))
        func open() throws -> (caller: Peer, upstream: Peer) {
            let caller = try proxy.connect()
            try caller.send(upgrade())
            let upstream = try server.accept()
            _ = try upstream.head()
            try upstream.send(switching())
            _ = try caller.head()
            return (caller, upstream)
        }
        let (stuck, lively) = (try open(), try open())
        _ = stuck.caller.sendUntilHeld(64 << 20, by: proxy)
        for _ in 0..<100 {
            try lively.caller.send("ping")
            try lively.upstream.expect("ping")
            try lively.upstream.send("pong")
            try lively.caller.expect("pong")
        }
        let caller = try proxy.connect()
        try caller.send(get())
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(answer("200 OK", "served"))
        #expect(try caller.message().body == "served")
        stuck.caller.reset()
    }

    @Test("no switch is requested from an upstream with HTTP/2 only")
    func http2() throws {
        let server = try ScriptedUpstream()
        var connections = ConnectionSettings()
        connections.version = .http2
        let proxy = try TestProxy(
            UpstreamPlan(
                name: "bank",
                base: WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: server.port), path: "/"),
                connections: connections))
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        #expect(try upstream.head() == "PRI * HTTP/2.0\r\n\r\n")
    }
}

@Suite("One direction of a tunnel")
struct TunnelFlowTests {
    @Test("a tunnel's buffer is filled only when empty, and its end is due after all bytes")
    func course() {
        var flow = TunnelFlow()
        #expect(flow.wantsSource && !flow.wantsSink && flow.canMove && !flow.owesEnd)
        flow.bytes.append("some")
        #expect(!flow.wantsSource && flow.wantsSink && flow.canMove)
        flow.sinkIsReady = false
        #expect(flow.canMove == false)
        flow.end()
        #expect(flow.owesEnd == false)
        flow.bytes.consume(4)
        #expect(flow.owesEnd && !flow.wantsSource && !flow.canMove)
        flow.passEnd()
        #expect(!flow.owesEnd && flow.endIsPassed)
    }

    @Test("no byte of a tunnel moves while its source has none")
    func idle() {
        var flow = TunnelFlow()
        flow.sourceIsReady = false
        #expect(flow.wantsSource == true && flow.canMove == false)
    }

    @Test("a tunnel reads much from a busy source, and an idle direction keeps little memory")
    func memory() {
        var flow = TunnelFlow()
        #expect(flow.appetite == TunnelFlow.keptMemory)
        flow.received(flow.appetite, of: flow.appetite)
        #expect(flow.appetite == TunnelFlow.window)
        flow.bytes.append([UInt8](repeating: 1, count: TunnelFlow.window))
        flow.shrink()
        #expect(flow.bytes.count == TunnelFlow.window)
        flow.bytes.consume(TunnelFlow.window)
        flow.received(10, of: flow.appetite)
        #expect(flow.appetite == TunnelFlow.keptMemory)
        flow.shrink()
        #expect(flow.bytes.capacity <= TunnelFlow.keptMemory)
    }
}
