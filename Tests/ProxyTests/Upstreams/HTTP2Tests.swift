// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import Glibc
import Proxy
import Testing

@Suite("Upstreams over HTTP/2")
struct HTTP2Tests {
    @Test("concurrent requests share one HTTP/2 connection, from the first ones on", arguments: [true, false])
    func shared(tls: Bool) throws {
        let upstream = try H2Upstream(tls: tls)
        let proxy = try TestProxy(upstream.plan(version: tls ? .auto : .http2))
        for round in 0..<2 {
            let callers = try (0..<40).map { _ in try proxy.connect() }
            for (number, caller) in callers.enumerated() { try caller.send(get("/slow/50/\(round)/\(number)")) }
            for caller in callers { #expect(try caller.message().body == "ok") }
        }
        #expect(try proxy.fetch(get("/seen/slow/50/0/7")).body == "1")
        // Without TLS libcurl before 8.0 cannot reuse a connection (curl #10634).
        if tls || CurlFeatures.installed.versionNumber >= 0x08_00_00 {
            #expect(try proxy.fetch(get("/connections")).body == "1")
        }
    }

    @Test(
        "a long head arrives complete and at once, on a new connection and on a kept one",
        arguments: [15, 17, 40, 60])
    func longHead(fields: Int) throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        for _ in 0..<3 {
            let (head, body) = try proxy.fetch(get("/head/\(fields)"))
            #expect(head.split(separator: "x-").count - 1 == fields && body == "ok")
        }
    }

    @Test("a server gets as many concurrent streams as it allows, and the rest use further connections")
    func streamLimit() throws {
        let upstream = try H2Upstream(streams: 4)
        let proxy = try TestProxy(upstream.plan())
        let callers = try (0..<12).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get("/slow/50/x")) }
        for caller in callers {
            let answer = try caller.message()
            #expect(answer.body == "ok", "\(answer)")
        }
        let connections = Int(try proxy.fetch(get("/connections")).body) ?? 0
        #expect(connections >= 3 && connections <= 9)
    }

    @Test("a server without HTTP/2 gets HTTP/1.1, and so does one with it if that is configured")
    func version1() throws {
        let upstream = try TLSUpstream()
        let proxy = try TestProxy(.secure(port: upstream.port, connections: .trusting()))
        for _ in 0..<2 {
            let callers = try (0..<8).map { _ in try proxy.connect() }
            for caller in callers { try caller.send(get("/x")) }
            for caller in callers { #expect(try caller.message().body.hasPrefix("GET /x HTTP/1.1\r\n")) }
        }
        // The server offers no other version, so ALPN finds none in common.
        let other = try H2Upstream()
        let answer = try TestProxy(other.plan(version: .http1)).fetch(get("/echo"))
        #expect(answer.head.hasPrefix("HTTP/1.1 502 ") && !answer.body.contains("fields"))
    }

    @Test("HTTP/2 without TLS to a server that does not know it is 502")
    func noPriorKnowledge() throws {
        let upstream = try AnsweringUpstream { _, _ in "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" }
        var connections = ConnectionSettings()
        connections.version = .http2
        let plan = UpstreamPlan.secure(port: upstream.port, scheme: .http, connections: connections)
        #expect(try TestProxy(plan).fetch(get()).head.hasPrefix("HTTP/1.1 502 "))
    }

    @Test("a request has the fields of HTTP/2 and none of a connection of HTTP/1.1", arguments: [false, true])
    func fields(passesHost: Bool) throws {
        let upstream = try H2Upstream()
        var plan = upstream.plan(version: .http2)
        if passesHost {
            plan = UpstreamPlan(
                name: plan.name, base: plan.base, connections: plan.connections,
                forwarding: ForwardingPolicy(host: .pass))
        }
        let request = """
            POST /echo?q HTTP/1.1\r
            Host: bank.localhost:81\r
            Connection: X-Hop, TE, Upgrade, keep-alive\r
            Keep-Alive: timeout=5\r
            Proxy-Connection: keep-alive\r
            X-Hop: 1\r
            TE: trailers, deflate\r
            Upgrade: h2c\r
            HTTP2-Settings: AAMAAABkAAQAAP__\r
            Cookie: a=1; b=2\r
            X-Mixed-Case: Value\r
            Transfer-Encoding: chunked\r
            \r
            4\r\nbody\r\n0\r\n\r\n
            """
        let text = try TestProxy(plan).fetch(request).body
        let authority = passesHost ? "bank.localhost:81" : "localhost:\(upstream.port)"
        for field in [
            (":method", "POST"), (":path", "/echo?q"), (":scheme", "https"), (":authority", authority),
            ("cookie", "a=1; b=2"),
            ("x-mixed-case", "Value"),
        ] {
            #expect(text.contains("[\"\(field.0)\", \"\(field.1)\"]"), "\(field) in \(text)")
        }
        for name in [
            "connection", "keep-alive", "proxy-connection", "x-hop", "upgrade", "http2-settings", "transfer-encoding",
            "host",
            "expect", "content-length", "accept", "user-agent", "content-type", "Host",
        ] {
            #expect(!text.contains("[\"\(name)\""), "\(name) in \(text)")
        }
        #expect(text.contains("\"length\": 4") && !text.contains("deflate"))
    }

    @Test("several long bodies at once arrive unchanged in both directions")
    func longBodies() throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan(version: .http2))
        let count = 3_000_000
        let block = (0..<64_256).map { UInt8($0 * 7 % 251) }
        let body = (0...count / block.count).flatMap { _ in block }.prefix(count)
        let down = try (0..<3).map { _ in try proxy.connect() }
        for caller in down { try caller.send(get("/bytes/\(count)")) }
        let up = try proxy.connect()
        try up.send("POST /sink HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(count)\r\n\r\n")
        try up.send(Array(body))
        let chunked = try proxy.connect()
        try chunked.send("PUT /sink HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for start in stride(from: 0, to: count, by: 500_000) {
            try chunked.send("7A120\r\n")
            try chunked.send(Array(body[start..<start + 500_000]))
            try chunked.send("\r\n")
        }
        try chunked.send("0\r\n\r\n")
        let receipt = try up.message().body
        #expect(try chunked.message().body == receipt)
        for caller in down {
            #expect(try caller.head().contains("Content-Length: \(count)\r\n"))
            #expect(try caller.read(count: count).elementsEqual(body))
        }
        // The digests of the received and the sent body are equal.
        #expect(receipt == "3000000 \(Self.digest)")
        #expect(try proxy.fetch(get("/connections")).body == "1")
    }

    /// SHA-256 of that body.
    private static let digest = "3f373df6c0a5a6c30b2e54e392d4914341a43be89d43bacde82bd48506cba305"

    @Test("a caller that reads nothing blocks no other, and stops its upstream stream")
    func slowReader() throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        _ = try proxy.fetch(get("/echo"))
        let slow = try (0..<3).map { _ in try proxy.connect(receiveBuffer: 4096) }
        for caller in slow { try caller.send(get("/bytes/20000000")) }
        // A stream that one of them blocked would stay blocked until it reads.
        for _ in 0..<50 { #expect(try proxy.fetch(get("/slow/10/x")).body == "ok") }
        // All bytes except the windows and the kernel's buffers towards the callers.
        #expect(Int(try proxy.fetch(get("/left")).body) ?? 0 > 40_000_000)
        #expect(try proxy.fetch(get("/connections")).body == "1")
        for caller in slow {
            _ = try caller.head()
            #expect(try caller.read(count: 20_000_000).last == UInt8((20_000_000 - 1) % 64_256 * 7 % 251))
        }
    }

    @Test("a body that the upstream does not read blocks no other request")
    func stalledUpload() throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan(version: .http2))
        _ = try proxy.fetch(get("/echo"))
        let stalled = try proxy.connect()
        let size = 800 * Pattern.piece
        try stalled.send("POST /hang HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(size)\r\n\r\n")
        let upload = Peer.Stream(stalled, seed: 1, size: size)
        #expect(try proxy.fetch(get("/until/1/hang")).body == "ok")
        for _ in 0..<20 { #expect(try proxy.fetch(get("/x")).body == "ok") }
        #expect(try proxy.fetch(get("/connections")).body == "1")
        #expect(!upload.isOver)
        stalled.finish()
        upload.join()
    }

    @Test("concurrent challenges over one HTTP/2 connection lead to one login")
    func stampede() throws {
        let upstream = try H2Upstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("good") }
        let proxy = try TestProxy(upstream.plan(logins: [login]))
        let callers = try (0..<40).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get("/realm/x")) }
        for caller in callers { #expect(try caller.message().body == "ok") }
        #expect(proxy.log.count == 1)
        #expect(try proxy.fetch(get("/connections")).body == "1")
    }
}
