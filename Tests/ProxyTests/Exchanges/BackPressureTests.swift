// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc
import Proxy
import TestSupport
import Testing

/// What the kernel's buffers of the connections may hold besides ours.
private let onTheWay = 12_000_000

@Suite("Back-pressure")
struct BackPressureTests {
    @Test("a caller that does not read holds the upstream back, and loses nothing")
    func slowCaller() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect(receiveBuffer: 4096)
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        let sent = server.sendUntilHeld(1_000_000_000, by: proxy)
        #expect(sent < onTheWay)
        server.finish()
        _ = try caller.head()
        var count = 0
        while (try? caller.read(count: 1)) != nil { count += 1 + caller.drain() }
        #expect(count == sent)
    }

    @Test("an upstream that does not read holds the caller back, and gets all in the end")
    func slowUpstream() throws {
        let upstream = try ScriptedUpstream(receiveBuffer: 4096)
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
        let server = try upstream.accept()
        let sent = caller.sendUntilHeld(1_000_000_000, by: proxy)
        #expect(sent < onTheWay)
        _ = try server.head()
        #expect(try server.read(count: sent).count == sent)
        caller.close()
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a long body goes through both ways at once", arguments: [3_000_000])
    func both(length: Int) throws {
        let upstream = try AnsweringUpstream { _, body in answer("200 OK", body) }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let body = String(repeating: "0123456789", count: length / 10)
        for _ in 0..<3 {
            try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(length)\r\n\r\n\(body)")
            #expect(try caller.message().body == body)
        }
    }

    @Test("a caller that goes away in the middle of a body lets the upstream go")
    func callerGone() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect(receiveBuffer: 4096)
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        _ = server.sendUntilHeld(1_000_000_000, by: proxy)
        caller.reset()
        proxy.expectNoConnections()
        try server.expectEnd()
    }

    @Test("a caller that goes away while its answer is awaited lets the upstream go")
    func callerGoneWaiting() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        caller.reset()
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("callers that come and go in the middle of things leave no descriptor behind")
    func nothingLeaks() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", String(repeating: "x", count: 200_000)) }
        let proxy = try TestProxy(.bank(port: upstream.port), workers: 2)
        for round in 0..<200 {
            let caller = try proxy.connect()
            try caller.send(round % 3 == 0 ? "GET / HT" : get())
            if round % 3 == 1 { _ = try caller.head() }
            if round % 2 == 0 { caller.reset() } else { caller.close() }
        }
        proxy.expectNoConnections()
        let before = openSockets(at: [proxy.port, upstream.port])
        for _ in 0..<200 {
            let caller = try proxy.connect()
            try caller.send(get())
            _ = try caller.head()
            caller.reset()
        }
        proxy.expectNoConnections()
        // Connections to the upstream are kept.
        #expect(blockUntil { openSockets(at: [proxy.port, upstream.port]) < before + 100 })
    }
}
