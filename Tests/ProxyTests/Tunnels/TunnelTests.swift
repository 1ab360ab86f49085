// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Proxy
import TestSupport
import Testing

@Suite("Tunnels")
struct TunnelTests {
    @Test("bytes go through a tunnel in both directions at once")
    func bothWays() throws {
        let tunnel = try OpenTunnel()
        try tunnel.caller.send("GET / HTTP/1.1\r\n\r\n")
        try tunnel.upstream.expect("GET / HTTP/1.1\r\n\r\n")
        try tunnel.upstream.send("HTTP/1.1 200 OK\r\n\r\n\u{0}")
        try tunnel.caller.expect("HTTP/1.1 200 OK\r\n\r\n\u{0}")
    }

    @Test("ten megabytes cross a tunnel unchanged in each direction at once", arguments: [nil, 4096])
    func volume(buffer: Int32?) throws {
        let tunnel = try OpenTunnel(buffer: buffer)
        let size = 10 << 20
        let upward = Peer.Stream(tunnel.caller, seed: 1, size: size)
        let downward = Peer.Stream(tunnel.upstream, seed: 2, size: size)
        #expect(try tunnel.upstream.receives(seed: 1, size: size))
        #expect(try tunnel.caller.receives(seed: 2, size: size))
        upward.join()
        downward.join()
    }

    @Test("a blocked reader of a tunnel pauses the other end, in either direction")
    func backPressure() throws {
        for isUpward in [true, false] {
            let tunnel = try OpenTunnel(buffer: 4096)
            let source = isUpward ? tunnel.caller : tunnel.upstream
            let sink = isUpward ? tunnel.upstream : tunnel.caller
            let taken = source.sendUntilHeld(64 << 20, by: tunnel.proxy)
            #expect(taken < 16 << 20, "the proxy and the kernel took \(taken) bytes that nobody reads")
            // The other direction goes on meanwhile.
            try sink.send("still there")
            try source.expect("still there")
            #expect(try sink.read(count: taken).allSatisfy { $0 == 0x62 })
        }
    }

    @Test("an end of a tunnel that has ended its side still gets the other's bytes", arguments: [true, false])
    func halfClose(isCaller: Bool) throws {
        let tunnel = try OpenTunnel()
        let first = isCaller ? tunnel.caller : tunnel.upstream
        let second = isCaller ? tunnel.upstream : tunnel.caller
        try first.send("that is all")
        first.finish()
        #expect(try second.readAll() == "that is all")
        try second.send("mine is longer")
        try first.expect("mine is longer")
        second.finish()
        #expect(try first.readAll() == "")
        tunnel.expectOver()
    }

    @Test("a caller that ended its side before the switch is a half-closed tunnel")
    func endedBefore() throws {
        let server = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: server.port))
        let caller = try proxy.connect()
        try caller.send(upgrade() + "first words")
        caller.finish()
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(switching())
        #expect(try upstream.readAll() == "first words")
        try upstream.send("last words")
        upstream.close()
        #expect(try caller.readAll()?.hasSuffix("\r\n\r\nlast words") == true)
        proxy.expectNoConnections()
    }

    @Test("a reset of one end of a tunnel resets the other, after the bytes before it", arguments: [true, false])
    func reset(isCaller: Bool) throws {
        let tunnel = try OpenTunnel()
        let first = isCaller ? tunnel.caller : tunnel.upstream
        let second = isCaller ? tunnel.upstream : tunnel.caller
        try first.send("so far")
        first.reset()
        try second.expect("so far")
        #expect(try second.readAll() == nil)
        tunnel.expectOver()
    }

    @Test("a tunnel without traffic for the idle timeout is reset at both ends")
    func idle() throws {
        let tunnel = try OpenTunnel(timeouts: .init(response: .seconds(60), idle: .seconds(100)))
        for _ in 0..<4 {
            tunnel.proxy.pass(.seconds(30))
            #expect(!tunnel.caller.hasNews)
            try tunnel.upstream.send("tick")
            try tunnel.caller.expect("tick")
        }
        tunnel.proxy.pass(.milliseconds(99_999))
        #expect(!tunnel.caller.hasNews && !tunnel.upstream.hasNews)
        tunnel.proxy.pass(.milliseconds(1))
        #expect(try tunnel.caller.readAll() == nil)
        #expect(try tunnel.upstream.readAll() == nil)
        tunnel.expectOver()
    }

    @Test("two hundred tunnels leak no descriptors")
    func descriptors() throws {
        let server = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: server.port))
        func round(_ count: Int) throws {
            var ends: [(Peer, Peer)] = []
            for number in 0..<count {
                let caller = try proxy.connect()
                try caller.send(upgrade("/\(number)"))
                let upstream = try server.accept()
                _ = try upstream.head()
                try upstream.send(switching() + "\(number)")
                _ = try caller.head()
                try caller.expect("\(number)")
                ends.append((caller, upstream))
            }
            #expect(proxy.server.figures.openTunnels == count)
            for (number, end) in ends.enumerated() {
                switch number % 4 {
                case 0: end.0.close()
                case 1: end.1.close()
                case 2: end.0.reset()
                default: end.1.reset()
                }
            }
            // A half-closed tunnel lasts until its other end closes as well.
            for end in ends {
                end.0.close()
                end.1.close()
            }
            proxy.expectNoConnections()
        }
        try round(8)
        let before = openSockets(at: [proxy.port, server.port])
        try round(200)
        // There would be two for each tunnel if they leaked.
        #expect(blockUntil { openSockets(at: [proxy.port, server.port]) < before + 100 })
        #expect(proxy.server.figures.openTunnels == 0)
    }

    @Test("a tunnel counts as an exchange for as long as it lasts")
    func counts() throws {
        let server = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: server.port), limits: WorkerLimits(exchanges: 1))
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(switching())
        _ = try caller.head()
        #expect(try proxy.fetch(get()).head.hasPrefix("HTTP/1.1 503 "))
        caller.close()
        upstream.close()
        proxy.wait("the tunnel's end") { proxy.server.figures.openTunnels == 0 }
        let next = try proxy.connect()
        try next.send(get())
        let other = try server.accept()
        _ = try other.head()
        try other.send(answer("200 OK", "free again"))
        #expect(try next.message().body == "free again")
    }
}

/// Returns a request for another protocol.
func upgrade(_ path: String = "/", to name: String = "echo", _ fields: String = "") -> String {
    get(path, "Connection: Upgrade\r\nUpgrade: \(name)\r\n\(fields)")
}

/// Returns the answer that switches to the protocol.
func switching(to name: String = "echo", _ fields: String = "") -> String {
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: \(name)\r\n\(fields)\r\n"
}

/// A caller and an upstream that have switched to another protocol, with the proxy between.
struct OpenTunnel {
    let server: ScriptedUpstream
    let proxy: TestProxy
    let caller: Peer
    let upstream: Peer

    /// Opens a tunnel. `buffer`: size of each peer's receive buffer; with a small one few bytes are in transit.
    init(timeouts: UpstreamPlan.Timeouts = .init(), buffer: Int32? = nil) throws {
        server = try ScriptedUpstream(receiveBuffer: buffer)
        proxy = try TestProxy(.bank(port: server.port, timeouts: timeouts))
        caller = try proxy.connect(receiveBuffer: buffer)
        try caller.send(upgrade())
        upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(switching())
        #expect(try caller.head().hasPrefix("HTTP/1.1 101 "))
    }

    /// Waits until the proxy has released the tunnel.
    func expectOver(location: SourceLocation = #_sourceLocation) {
        proxy.expectNoConnections(location: location)
        #expect(proxy.server.figures.openTunnels == 0, sourceLocation: location)
    }
}
