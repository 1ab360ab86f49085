// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@Suite("Streams")
struct StreamingTests {
    @Test(
        "each event reaches the caller before the next one is sent, with any framing of the stream",
        arguments: ["Transfer-Encoding: chunked\r\n", "", "Content-Length: 180\r\n"], ["1.1", "1.0"])
    func events(framing: String, version: String) throws {
        let upstream = try ScriptedUpstream()
        // A login is configured, as on most routes: the examination must not delay anything.
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send("GET /events HTTP/\(version)\r\nHost: localhost\r\n\r\n")
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\(framing)\r\n")
        let head = try caller.head()
        for number in 10..<30 {
            let event = "data: \(number)\n"
            try server.send(framing.hasPrefix("T") ? "9\r\n\(event)\r\n" : event)
            try caller.expect(head.contains("chunked") ? "9\r\n\(event)\r\n" : event)
        }
        if framing.hasPrefix("T") { try server.send("0\r\n\r\n") }
        server.close()
        if head.contains("chunked") { return try caller.expect("0\r\n\r\n") }
        if !framing.hasPrefix("C") { #expect(try caller.readAll() == "") }
    }

    @Test(
        "alternating long and short pieces reach a slow caller completely and in order, with any framing",
        arguments: ["chunked", "length", "end"])
    func pieces(framing: String) throws {
        // Around the sizes at which a piece is appended to the waiting bytes, replaces their buffer, or waits for them.
        let lengths = [1, 4095, 4096, 1, 16_384, 20_000, 65_535, 100, 65_537, 81_920, 4096, 300_000, 7]
        let pieces = lengths.enumerated().map { index, length in
            String((0...length / 10).map { "\(1_000_000_000 + index * 10_000_000 + $0)" }.joined().prefix(length))
        }
        let body = pieces.joined()
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect(receiveBuffer: 4096)
        try caller.send(
            "GET / HTTP/\(framing == "end" ? "1.0" : "1.1")\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        let server = try upstream.accept()
        _ = try server.head()
        let field =
            switch framing {
            case "chunked": "Transfer-Encoding: chunked\r\n"
            case "length": "Content-Length: \(body.utf8.count)\r\n"
            default: ""
            }
        // All of it fits in the kernel's buffers.
        try server.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\(field)\r\n")
        for piece in pieces {
            try server.send(framing == "chunked" ? "\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n" : piece)
        }
        if framing == "chunked" { try server.send("0\r\n\r\n") }
        server.close()
        let head = try caller.head()
        if framing == "length" {
            #expect(try caller.read(count: body.utf8.count) == Array(body.utf8))
        } else {
            let rest = Array(try #require(try caller.readAll()).utf8)
            #expect((head.contains("chunked") ? withoutChunks(rest) : rest) == Array(body.utf8))
        }
    }

    @Test("each piece of a request's body reaches the upstream before the next one is sent")
    func pieces() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        let server = try upstream.accept()
        _ = try server.head()
        for number in 10..<30 {
            try caller.send("2\r\n\(number)\r\n")
            try server.expect("2\r\n\(number)\r\n")
        }
        try caller.send("0\r\n\r\n")
        try server.expect("0\r\n\r\n")
        try server.send(answer("200 OK", "done"))
        #expect(try caller.message().body == "done")
    }

    @Test("a request and its response stream in both directions at once")
    func conversation() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        _ = try caller.head()
        for number in 10..<30 {
            try caller.send("2\r\n\(number)\r\n")
            try server.expect("2\r\n\(number)\r\n")
            try server.send("3\r\n-\(number)\r\n")
            try caller.expect("3\r\n-\(number)\r\n")
        }
        try server.send("0\r\n\r\n")
        try caller.expect("0\r\n\r\n")
        try caller.send("0\r\n\r\n")
        try server.expect("0\r\n\r\n")
    }

    @Test("a caller that does not read delays no other on the same worker and upstream")
    func slowReader() throws {
        let upstream = try AnsweringUpstream { head, _ in
            answer("200 OK", String(repeating: "x", count: head.hasPrefix("GET /long ") ? 8_000_000 : 10))
        }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let slow = try (0..<4).map { _ in try proxy.connect(receiveBuffer: 4096) }
        for caller in slow { try caller.send(get("/long")) }
        for caller in slow { _ = try caller.head() }
        let quick = try proxy.connect()
        for _ in 0..<200 {
            try quick.send(get("/short"))
            #expect(try quick.message().body.utf8.count == 10)
        }
        for caller in slow { caller.reset() }
        quick.close()
        proxy.expectNoConnections()
    }

    @Test("a body with a content coding is forwarded unchanged")
    func codings() throws {
        let upstream = try AnsweringUpstream { _, _ in
            answer("200 OK", "no gzip at all", "Content-Encoding: gzip\r\n")
        }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let (head, body) = try proxy.fetch(get("/", "Accept-Encoding: gzip\r\n"))
        #expect(head.contains("Content-Encoding: gzip\r\n"))
        #expect(body == "no gzip at all")
    }
}

/// Returns the content of chunks; empty if the bytes are not chunks.
private func withoutChunks(_ bytes: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    var rest = bytes[...]
    while let end = rest.firstIndex(of: 0x0D), let size = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16)
    {
        if size == 0 { return output }
        rest = rest[(end + 2)...]
        output += rest.prefix(size)
        rest = rest.dropFirst(size + 2)
    }
    return []
}

@Suite("Interim responses")
struct InterimTests {
    private let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    private let passedHints =
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nVia: 1.1 countersign\r\n\r\n"
    private let final =
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nDate: Sat, 21 Nov 2026 16:00:00 GMT\r\nVia: 1.1 countersign\r\n\r\nwell"

    @Test("interim responses pass in order, each at once, before the final one")
    func passed() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        for _ in 0..<3 {
            try caller.send(get())
            let server = try upstream.accept()
            _ = try server.head()
            try server.send("HTTP/1.1 102 Processing\r\n\r\n")
            try caller.expect("HTTP/1.1 102 Processing\r\nVia: 1.1 countersign\r\n\r\n")
            try server.send(hints + "HTTP/1.1 199 \r\nX-A: 1\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            try caller.expect(
                passedHints + "HTTP/1.1 199 \r\nX-A: 1\r\nVia: 1.1 countersign\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            try server.send(hints + answer("200 OK", "well", "Connection: close\r\n"))
            try caller.expect(passedHints + final)
        }
    }

    @Test("a caller with HTTP/1.0 gets no interim response")
    func oldCaller() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("GET / HTTP/1.0\r\n\r\n")
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(hints + answer("200 OK", "well"))
        #expect(try caller.head().hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test("interim responses carry no fields of a connection, body, session or login")
    func stripped() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        let fields = [
            "Connection: close, x-hop\r\nX-Hop: 1", "Content-Length: 5", "Keep-Alive: 5", "Set-Cookie: a=b",
            "WWW-Authenticate: Basic", "Authentication-Info: x", "Trailer: X", "Upgrade: x",
        ]
        for field in fields {
            try server.send("HTTP/1.1 103 Early Hints\r\n\(field)\r\nX-Stays: 1\r\n\r\n")
            try caller.expect("HTTP/1.1 103 Early Hints\r\nX-Stays: 1\r\nVia: 1.1 countersign\r\n\r\n")
        }
        try server.send(answer("200 OK", "well"))
        try caller.expect(final)
    }

    @Test("interim responses before an answered challenge do no harm")
    func beforeChallenge() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=b\r\nWWW-Authenticate: Bearer\r\n\r\n" + challenge)
        #expect(try server.head().contains("Authorization: Bearer one\r\n"))
        try server.send(hints + answer("200 OK", "well"))
        try caller.expect("HTTP/1.1 103 Early Hints\r\nVia: 1.1 countersign\r\n\r\n" + passedHints + final)
    }

    @Test(
        "too many, too long or invalid interim responses, and an unrequested switch, are 502",
        arguments: [
            String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 65),
            String(
                repeating: "HTTP/1.1 103 Early Hints\r\nX: \(String(repeating: "x", count: 9_000))\r\n\r\n", count: 8),
            "HTTP/1.1 103 Early Hints\r\nX : 1\r\n\r\n", "HTTP/1.1 103 Early Hints\nX: 1\n\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "HTTP/1.1 100 Continue\r\nX: a\rb\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\rX: 1\r\n\r\n",
        ])
    func refused(interims: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(interims)
        let text = try caller.read(until: "\"code\":\"upstream-protocol\"")
        #expect(text.contains("HTTP/1.1 502 Bad Gateway\r\n"))
        #expect(!text.contains("X : 1") && !text.contains("HTTP/1.1 101"))
        try server.expectEnd()
    }
}
