// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Proxy
import Testing

/// Framing of the upstream's answer and of the caller's (RFC 9112 §6.3), through a whole proxy.
@Suite("The framing of responses")
struct ResponseFramingTests {
    private static let via = "Date: Sat, 21 Nov 2026 16:00:00 GMT\r\nVia: 1.1 countersign\r\n"
    private static let chunked = "Transfer-Encoding: chunked\r\n"

    /// Returns what the caller gets for `bytes`, up to `end`. Then another request must get its own answer, on any connection.
    private func received(_ bytes: String, method: String = "GET", until end: String) throws -> String {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("\(method) /1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(bytes)
        let text = try caller.read(until: end)
        try caller.send(get("/2"))
        // In both cases the next request must get its own answer.
        let next = server.peekHead() == nil ? try upstream.accept() : server
        #expect(try next.head().hasPrefix("GET /2 "))
        try next.send(answer("200 OK", "own"))
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(body == "own")
        return text
    }

    @Test(
        "answers to HEAD have no body, and keep Content-Length",
        arguments: [
            ("", ""), ("Content-Length: 5\r\n", ""), ("Content-Length: 5\r\n", "hello"), (Self.chunked, ""),
            (Self.chunked, "5\r\nhello\r\n0\r\n\r\n"), ("", "hello"),
        ])
    func head(fields: String, body: String) throws {
        let text = try received("HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)", method: "HEAD", until: "\r\n\r\n")
        let length = fields.hasPrefix("Content-Length") ? fields : ""
        #expect(text == "HTTP/1.1 200 OK\r\n\(length)\(Self.via)\r\n")
    }

    @Test(
        "204 and 304 have no body, even if the upstream sends one",
        arguments: ["204 No Content", "304 Not Modified"],
        [
            ("", ""), ("Content-Length: 5\r\n", ""), ("Content-Length: 5\r\n", "hello"), (Self.chunked, ""),
            (Self.chunked, "5\r\nhello\r\n0\r\n\r\n"), ("", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
        ])
    func bodyless(status: String, rest: (fields: String, body: String)) throws {
        let text = try received("HTTP/1.1 \(status)\r\n\(rest.fields)\r\n\(rest.body)", until: "\r\n\r\n")
        let length = status.hasPrefix("304") && rest.fields.hasPrefix("Content-Length") ? rest.fields : ""
        #expect(text == "HTTP/1.1 \(status)\r\n\(length)\(Self.via)\r\n")
    }

    @Test("Content-Length is forwarded once, without repetitions and leading zeros")
    func lengths() throws {
        for field in ["5", "05", "5, 5", "5\r\nContent-Length: 5"] {
            let text = try received("HTTP/1.1 200 OK\r\nContent-Length: \(field)\r\n\r\nhello", until: "hello")
            #expect(text == "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\(Self.via)\r\nhello")
        }
    }

    @Test("205 and other answers without content end by their framing")
    func empty() throws {
        let zero = try received("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", until: "\r\n\r\n")
        #expect(zero == "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\(Self.via)\r\n")
        let none = try received("HTTP/1.1 205 Reset Content\r\n\(Self.chunked)\r\n0\r\n\r\n", until: "0\r\n\r\n")
        #expect(none == "HTTP/1.1 205 Reset Content\r\n\(Self.via)\(Self.chunked)\r\n0\r\n\r\n")
    }

    @Test("chunks of any form are rewritten")
    func chunks() throws {
        let bytes = "00005 ;x=\"a;b\"\r\nhello\r\nA\r\n0123456789\r\n0;last\r\nX-Sum: 1\r\n\r\n"
        let text = try received("HTTP/1.1 200 OK\r\n\(Self.chunked)\r\n\(bytes)", until: "\r\n0\r\n\r\n")
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n\(Self.via)\(Self.chunked)\r\n"))
        #expect(text.hasSuffix("\r\n\r\nf\r\nhello0123456789\r\n0\r\n\r\n"))
    }

    @Test(
        "bytes after an answer are not part of it, and answer no other request",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\n\(Self.chunked)\r\n5\r\nhello\r\n0\r\n\r\n",
        ],
        ["evil", "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "0\r\n\r\n"])
    func behind(good: String, stray: String) throws {
        let end = good.hasSuffix("hello") ? "hello" : "0\r\n\r\n"
        #expect(try received(good + stray, until: end).contains("hello"))
    }

    /// The next request has arrived already, so it is sent as soon as the answer is complete.
    @Test(
        "bytes after an answer that come later than its head answer no other request",
        arguments: [
            ("GET", "Content-Length: 5\r\n\r\n", "hello"), ("GET", "Transfer-Encoding: chunked\r\n\r\n", "0\r\n\r\n"),
            ("HEAD", "Content-Length: 5\r\n\r\n", ""), ("GET", "Content-Length: 0\r\n\r\n", ""),
        ], [0, 40_000])
    func behindLater(answered: (method: String, fields: String, body: String), padding: Int) throws {
        let stray = String(repeating: "x", count: padding) + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        for _ in 0..<5 {
            let upstream = try ScriptedUpstream()
            let proxy = try TestProxy(.bank(port: upstream.port))
            let caller = try proxy.connect()
            try caller.send("\(answered.method) /1 HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/2"))
            let server = try upstream.accept()
            _ = try server.head()
            if answered.body.isEmpty {
                try server.send("HTTP/1.1 200 OK\r\n\(answered.fields)\(stray)")
                _ = try caller.head()
            } else {
                try server.send("HTTP/1.1 200 OK\r\n\(answered.fields)")
                _ = try caller.head()
                try server.send(answered.body + stray)
                try caller.expect(answered.body)
            }
            let next = server.peekHead() == nil ? try upstream.accept() : server
            #expect(try next.head().hasPrefix("GET /2 "))
            try next.send(answer("200 OK", "own"))
            #expect(try caller.message().body == "own")
        }
    }

    @Test("an answer that begins with a folded line is 502, also after a good one")
    func foldedFirstLine() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        for _ in 0..<8 {
            try caller.send(get("/good"))
            let good = try upstream.accept()
            _ = try good.head()
            try good.send("HTTP/1.1 200 OK\r\nX-A: \(String(repeating: "a", count: 300))\r\nContent-Length: 0\r\n\r\n")
            #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 OK\r\n"))
            // The kept connection, with a libcurl handle that still has the fields above.
            try caller.send(get("/folded"))
            _ = try good.head()
            try good.send(
                "HTTP/1.1 200 OK\r\n X-B: \(String(repeating: "b", count: 300))\r\nContent-Length: 5\r\n\r\nhello")
            #expect(try caller.message().head.hasPrefix("HTTP/1.1 502 "))
        }
    }
}

/// Answers that violate HTTP: the caller gets 502, however libcurl reads them.
@Suite("Responses that are refused")
struct RefusedResponseTests {
    /// Expects 502 at once for `bytes`, none of which is forwarded, and an answer to the next request.
    private func expectRefusal(of bytes: [UInt8], thenEnd: Bool = false, location: SourceLocation = #_sourceLocation)
        throws
    {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        // Twice, since a used libcurl handle may behave differently from a new one.
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

    @Test("a reason phrase and a field value may have any bytes that RFC 9110 allows")
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
