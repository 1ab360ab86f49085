// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@testable import Proxy

@Suite("Responses as they go to the caller")
struct ForwardedResponseTests {
    /// Returns what the caller gets for the upstream's `head` and `body`, and whether its connection stays open.
    private func written(
        _ head: String, body: [String] = [], isHead: Bool = false, version: HTTPVersion = .http11,
        keepsAlive: Bool = true, onSession: Bool = false
    ) throws -> (text: String, keepsAlive: Bool) {
        var response = ForwardedResponse()
        var output = ByteQueue()
        response.reset(isHead: isHead, version: version)
        response.hidesAuthentication = onSession
        let bytes = Array(head.utf8)
        var scanner = ResponseHeadScanner()
        try scanner.scan(bytes.span)
        let stays = response.writeHead(
            scanner.head, in: bytes.span, keepsAlive: keepsAlive, to: &output,
            date: { "Sat, 21 Nov 2026 16:00:00 GMT" }, addresses: { nil })
        for piece in body { response.framing.write(Array(piece.utf8).span, to: &output) }
        response.writeEnd(to: &output)
        return (output.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }, stays)
    }

    private let via = "Date: Sat, 21 Nov 2026 16:00:00 GMT\r\nVia: 1.1 countersign\r\n"

    @Test("the body of a response with a length is forwarded unchanged")
    func length() throws {
        let (text, stays) = try written("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", body: ["ab", "cd"])
        #expect(text == "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\(via)\r\nabcd")
        #expect(stays)
    }

    @Test("a body of unknown length is sent in chunks, and an empty piece does not end it")
    func chunks() throws {
        for head in [
            "HTTP/1.1 200 OK\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            let (text, stays) = try written(head, body: ["ab", "", "cd"])
            #expect(
                text.hasSuffix(" countersign\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"))
            #expect(stays)
        }
    }

    @Test("a body of unknown length ends with the connection for an HTTP/1.0 caller")
    func old() throws {
        let (text, stays) = try written("HTTP/1.1 200 OK\r\n\r\n", body: ["ab"], version: .http10)
        #expect(text == "HTTP/1.1 200 OK\r\n\(via)Connection: close\r\n\r\nab")
        #expect(!stays)
        let known = try written("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", body: ["ab"], version: .http10)
        #expect(known.text == "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\(via)Connection: keep-alive\r\n\r\nab")
        #expect(known.keepsAlive)
    }

    @Test("a response without a Date gets ours, and one with its own keeps it")
    func date() throws {
        let own = "Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n"
        let (text, _) = try written("HTTP/1.1 200 OK\r\n\(own)Content-Length: 0\r\n\r\n")
        #expect(text.contains(own))
        #expect(!text.contains("2026"))
        #expect(try written("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").text.contains(via))
    }

    @Test("the caller gets Connection: close if its connection ends")
    func closing() throws {
        let (text, stays) = try written("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", keepsAlive: false)
        #expect(text.contains("Connection: close\r\n"))
        #expect(!stays)
    }

    @Test("responses that may not have a body have none, and keep Content-Length if it is the omitted body's")
    func bodyless() throws {
        let length = "Content-Length: 9\r\n"
        let head = try written("HTTP/1.1 200 OK\r\n\(length)\r\n", isHead: true)
        #expect(head.text == "HTTP/1.1 200 OK\r\n\(length)\(via)\r\n")
        let unknown = try written("HTTP/1.1 200 OK\r\n\r\n", isHead: true)
        #expect(unknown.text == "HTTP/1.1 200 OK\r\n\(via)\r\n")
        let notModified = try written("HTTP/1.1 304 Not Modified\r\n\(length)\r\n")
        #expect(notModified.text == "HTTP/1.1 304 Not Modified\r\n\(length)\(via)\r\n")
        let noContent = try written("HTTP/1.1 204 No Content\r\n\(length)\r\n", body: ["smuggled"])
        #expect(noContent.text == "HTTP/1.1 204 No Content\r\n\(via)\r\n")
    }

    @Test("hop-by-hop fields of a response are not forwarded, nor those that its Connection names")
    func hopByHop() throws {
        let (text, stays) = try written(
            "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: x\r\nTrailer: X\r\n"
                + "Upgrade: h2\r\nContent-Length: 0\r\nX-Stays:  1 \r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n")
        #expect(
            text
                == "HTTP/1.1 200 OK\r\nX-Stays:  1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\(via)\r\n"
        )
        #expect(stays)
    }

    @Test(
        "Via has the response's version, after earlier entries",
        arguments: [
            ("HTTP/1.1 200 OK", "1.1"), ("HTTP/1.0 200 OK", "1.0"), ("HTTP/2 200", "2"), ("HTTP/2 200 ", "2"),
            ("HTTP/3 200", "3"),
        ])
    func versions(line: String, version: String) throws {
        let (text, _) = try written("\(line)\r\nVia: 1.0 first\r\nContent-Length: 0\r\n\r\n")
        #expect(text.contains("\r\nVia: 1.0 first\r\n"))
        #expect(text.hasSuffix("\r\nVia: \(version) countersign\r\n\r\n"))
    }

    @Test("any field that the upstream's Connection names is not forwarded, and the framing does not change")
    func nominated() throws {
        let (text, stays) = try written(
            "HTTP/1.1 200 OK\r\nConnection: content-length, set-cookie, via, x-hop, date\r\nSet-Cookie: a\r\nVia: 1.1 x\r\n"
                + "X-Hop: 1\r\nDate: now\r\nX-Stays: 1\r\nContent-Length: 2\r\n\r\n", body: ["ab"])
        #expect(text == "HTTP/1.1 200 OK\r\nX-Stays: 1\r\nContent-Length: 2\r\n\(via)\r\nab")
        #expect(stays)
        let chunked = try written(
            "HTTP/1.1 200 OK\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n", body: ["ab"])
        #expect(chunked.text.hasSuffix("\(via)Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"))
    }

    @Test("what a response says of the proxy's session stays here, and the challenge of a refusal passes")
    func authentication() throws {
        let fields = "WWW-Authenticate: Bearer\r\nAuthentication-Info: x\r\nContent-Length: 0\r\n\r\n"
        for status in ["101 Switching Protocols", "200 OK", "206 Partial Content", "302 Found", "404 No", "500 Oh"] {
            let ours = try written("HTTP/1.1 \(status)\r\n\(fields)", onSession: true).text
            #expect(!ours.contains("Bearer") && !ours.contains("Authentication-Info"))
        }
        for status in ["401 No", "403 No"] {
            let refusal = try written("HTTP/1.1 \(status)\r\n\(fields)", onSession: true).text
            #expect(refusal.contains("WWW-Authenticate: Bearer\r\n") && !refusal.contains("Authentication-Info"))
        }
    }

    @Test("without a session of ours, the authentication fields of a success go to the caller")
    func ownAuthentication() throws {
        let fields = "WWW-Authenticate: Bearer\r\nAuthentication-Info: x\r\n"
        #expect(try written("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 0\r\n\r\n").text.contains(fields))
    }

    @Test("a repeated equal Content-Length is forwarded once")
    func repeatedLength() throws {
        let (text, _) = try written(
            "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\n", body: ["ab"])
        #expect(text == "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\(via)\r\nab")
    }

    @Test("a local answer is complete, and omits its body after HEAD only")
    func own() {
        var output = ByteQueue()
        let answer = LocalAnswer(status: 200, contentType: "text/plain", body: Array("ok".utf8), fields: [("X-A", "1")])
        answer.write(isHead: false, version: .http11, date: "D", keepsAlive: true, to: &output)
        let expected =
            "HTTP/1.1 200 OK\r\nDate: D\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nCache-Control: no-store\r\nX-A: 1\r\n\r\n"
        let text = output.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
        #expect(text == expected + "ok")
        output.removeAll()
        answer.write(isHead: true, version: .http11, date: "D", keepsAlive: true, to: &output)
        let head = output.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
        #expect(head == expected)
    }
}
