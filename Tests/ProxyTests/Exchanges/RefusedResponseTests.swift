// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Proxy
import Testing

/// Answers that break the rules of HTTP: what libcurl makes of them is its own affair, the caller gets 502.
@Suite("Responses that are refused")
struct RefusedResponseTests {
    /// Expects 502 at once for `bytes`, of which nothing passes, and that the next request is answered.
    private func expectRefusal(of bytes: [UInt8], thenEnd: Bool = false, location: SourceLocation = #_sourceLocation)
        throws
    {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        // Twice: a libcurl handle that has been used is another thing than a new one.
        for _ in 0..<2 {
            try caller.send(get("/1"))
            let server = try upstream.accept()
            _ = try server.head()
            try server.send(bytes)
            if thenEnd { server.finish() }
            let (head, body) = try caller.message()
            let text = String(decoding: bytes.prefix(200), as: UTF8.self)
            #expect(head.hasPrefix("HTTP/1.1 502 Bad Gateway\r\n"), "\(text)", sourceLocation: location)
            #expect(body.contains("\"code\":\"upstream-protocol\""), "\(text)", sourceLocation: location)
            #expect(!head.contains("X:") && !head.contains("Set-Cookie"), sourceLocation: location)
            try server.expectEnd()
            try caller.send(get("/2"))
            let second = try upstream.accept()
            #expect(try second.head().hasPrefix("GET /2 "), sourceLocation: location)
            try second.send(answer("200 OK", "own", "X-A: 1\r\nConnection: close\r\n"))
            #expect(try caller.message().body == "own", "\(text)", sourceLocation: location)
        }
    }

    @Test("a response with an invalid status line is refused")
    func statusLines() throws {
        for line in [
            "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 OK", "HTTP/1.1 2x0 OK",
            "HTTP/1.1 -20 OK", "HTTP/1.1200 OK", "HTTP/1.1  200 OK", "HTTP/1.1\t200 OK", "HTTP/1 200 OK",
            "HTTP/2 200 ", "HTTP/2.0 200 OK", "HTTP/3 200", "HTTP/0.9 200 OK", "HTTP/1.10 200 OK", "http/1.1 200 OK",
            "ICY 200 OK", " HTTP/1.1 200 OK", "\r\nHTTP/1.1 200 OK", "\nHTTP/1.1 200 OK", "HTTP/1.1 200 O\rK",
            "HTTP/1.1 200 O\u{0}K", "HTTP/1.1 200 O\u{1}K", "HTTP/1.1 200 OK\r", "X: 1", "SSH-2.0-OpenSSH_9.2",
            "<html>hello</html>", "\u{16}\u{3}\u{1}\u{0}",
        ] {
            try expectRefusal(of: Array("\(line)\r\nX: 1\r\nContent-Length: 2\r\n\r\nok".utf8))
        }
    }

    @Test("a response with an invalid or ambiguous field line is refused")
    func fields() throws {
        for line in [
            "X", ": 1", "X : 1", "X\t: 1", "X Y: 1", "X: a\u{0}b", "X: a\u{1}b", "X: a\rb", "X: a\r", "\rX: 1",
            "X\u{7f}: 1",
            "X: a\r\n b", "X: a\r\n\tb", " X: 1", "\tX: 1", "X: 1\nSet-Cookie: a", "X: 1\r\r\nSet-Cookie: a", "(X): 1",
            "Connection: a b",
        ] {
            try expectRefusal(of: Array("HTTP/1.1 200 OK\r\n\(line)\r\nContent-Length: 2\r\n\r\nok".utf8))
        }
        try expectRefusal(of: Array("HTTP/1.1 200 OK\nContent-Length: 2\n\nok".utf8))
        try expectRefusal(of: Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok".utf8))
        try expectRefusal(of: Array("HTTP/1.1 200 OK\r\n".utf8) + [0x58, 0xFF, 0x3A] + Array(" 1\r\n\r\n".utf8))
    }

    @Test("a response with an unreliable length or coding is refused")
    func framing() throws {
        for fields in [
            "Content-Length: -1", "Content-Length: +2", "Content-Length: 2a", "Content-Length:", "Content-Length: 0x2",
            "Content-Length: 2 2", "Content-Length: 9223372036854775808", "Content-Length: 18446744073709551618",
            "Content-Length: 2\r\nContent-Length: 3", "Content-Length: 2, 3", "Content-Length: 2;q=1",
            "Content-Length : 2", "Content-Length: ,", "Content-Length: 2\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 2", "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: gzip", "Transfer-Encoding: identity", "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: xchunked",
            "Transfer-Encoding: chunked;q=1", "Transfer-Encoding: \u{b}chunked", "Transfer-Encoding: chunked,",
            "Transfer-Encoding:", "Transfer-Encoding: chunked, identity", "Transfer-Encoding : chunked",
        ] {
            try expectRefusal(of: Array("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n2\r\nok\r\n0\r\n\r\n".utf8))
        }
        try expectRefusal(of: Array("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".utf8))
    }

    @Test("a response head that is too long, has too many fields, or does not end is refused")
    func limits() throws {
        let end = "\r\nContent-Length: 2\r\n\r\nok"
        for length in [65_536, 110_000, 400_000] {
            try expectRefusal(of: Array("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: length))\(end)".utf8))
        }
        try expectRefusal(of: Array("HTTP/1.1 200 OK\(String(repeating: "\r\nX: 1", count: 257))\(end)".utf8))
        try expectRefusal(of: Array("HTTP/1.1 200 \(String(repeating: "x", count: 70_000))\(end)".utf8))
        for rest in [
            "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nX: 1\r\n", "HTTP/1.1 200 OK\r\nX: 1\r\n\r",
        ] {
            try expectRefusal(of: Array(rest.utf8), thenEnd: true)
        }
    }

    @Test("any bytes may stand in a reason phrase and a value that RFC 9110 allows there")
    func oddBytes() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        let odd = Array(0x20...0x7E) + Array(0x80...0xFF) + [0x09, 0x21] as [UInt8]
        try server.send(
            Array("HTTP/1.1 200 ".utf8) + odd + Array("\r\nX: ".utf8) + odd
                + Array("\r\nContent-Length: 0\r\n\r\n".utf8))
        let expected = Array("HTTP/1.1 200 ".utf8) + odd + Array("\r\nX: ".utf8) + odd + Array("\r\n".utf8)
        #expect(try caller.read(count: expected.count) == expected)
    }
}
