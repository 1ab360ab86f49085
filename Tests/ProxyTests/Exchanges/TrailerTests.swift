// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Testing

/// Trailer fields in both directions (RFC 9110 §6.5, RFC 9112 §7.1.2).
@Suite("Trailers")
struct TrailerTests {
    private let chunked = "Transfer-Encoding: chunked\r\n"
    private let asking = "TE: trailers\r\nConnection: TE\r\n"

    /// Returns what the caller gets after the head of the answer `rest`, up to `end`.
    private func received(_ request: String, _ rest: String, until end: String) throws -> (head: String, body: String) {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(request)
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\n\(chunked)\(rest)")
        return (try caller.head(), try caller.read(until: end))
    }

    @Test("TE: trailers is sent upstream if the caller accepts trailers, and only then")
    func asked() throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", head) }
        let proxy = try TestProxy(.bank(port: upstream.port))
        for te in ["trailers", "gzip, Trailers;q=0.5 , trailers", "deflate;q=0.5, TRAILERS"] {
            let head = try proxy.fetch(get("/", "Connection: te\r\nTE: \(te)\r\n")).body
            #expect(head.contains("\r\nTE: trailers\r\nConnection: TE\r\n"))
        }
        for field in ["TE: gzip", "TE:", "X: trailers"] {
            let head = try proxy.fetch(get("/", "Connection: te\r\n\(field)\r\n")).body
            #expect(!head.contains("TE: ") && !head.contains("Connection: "))
        }
        let old = try proxy.fetch("GET / HTTP/1.0\r\n\(asking)\r\n").body
        #expect(!old.contains("TE: ") && !old.contains("Connection: "))
    }

    @Test("trailers reach a caller that accepts them, except forbidden ones")
    func passed() throws {
        let trailers =
            "X-Sum: 1\r\nContent-Length: 5\r\nSet-Cookie: a\r\nX-Hop: 2\r\nConnection: x\r\nx-empty:\r\nX-Sum:  2 \r\n"
        let (head, body) = try received(
            get("/", asking), "Trailer: X-Sum\r\nConnection: x-hop\r\n\r\n2\r\nok\r\n0\r\n\(trailers)\r\n",
            until: "X-Sum: 2\r\n\r\n")
        #expect(head.contains("\r\nTrailer: X-Sum\r\n"))
        #expect(body == "2\r\nok\r\n0\r\nX-Sum: 1\r\nx-empty: \r\nX-Sum: 2\r\n\r\n")
    }

    @Test("callers without TE: trailers get no trailers, and no Trailer field")
    func dropped() throws {
        let (head, body) = try received(
            get(), "Trailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n", until: "0\r\n\r\n")
        #expect(!head.contains("Trailer"))
        #expect(body == "2\r\nok\r\n0\r\n\r\n")
        let old = try received(
            "GET / HTTP/1.0\r\n\(asking)\r\n", "Trailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n", until: "ok")
        #expect(!old.head.contains("Trailer"))
        #expect(old.body == "ok")
    }

    @Test("an answer with a length has no trailers, and announces none")
    func length() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "ok", "Trailer: X\r\n") }
        let proxy = try TestProxy(.bank(port: upstream.port))
        #expect(try !proxy.fetch(get("/", asking)).head.contains("Trailer"))
    }

    @Test(
        "an answer with broken trailers never looks complete",
        arguments: [
            "X : 1\r\n", "X\r\n", "X: a\u{0}b\r\n", "X: a\rb\r\n", " X: 1\r\n", "X: 1\r\n folded\r\n", ": 1\r\n",
            "X: 1\n",
            "X: \(String(repeating: "x", count: 9_000))\r\n", String(repeating: "X: 1\r\n", count: 33),
        ])
    func broken(trailers: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/", asking))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\n\(chunked)\r\n2\r\nok\r\n0\r\n\(trailers)\r\n")
        _ = try caller.head()
        #expect(try caller.readAll() == "2\r\nok\r\n")
        try server.expectEnd()
    }

    @Test("trailers go upstream behind the body, those left out that must not")
    func sent() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let trailers = "X-Sum: 1\r\nHost: evil\r\nAuthorization: x\r\nX-Hop: 2\r\nX-Empty:\r\nX-Sum:  2 \r\n"
        var server: Peer?
        // Several times on one connection.
        for _ in 0..<3 {
            try caller.send(
                "POST / HTTP/1.1\r\nHost: localhost\r\n\(chunked)Trailer: X-Sum\r\nConnection: x-hop\r\n\r\n"
                    + "5\r\nhello\r\n0\r\n\(trailers)\r\n")
            let peer = try server ?? upstream.accept()
            server = peer
            #expect(try peer.head().contains("Trailer: X-Sum\r\n"))
            try peer.expect("5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Empty:\r\nX-Sum: 2\r\n\r\n")
            try peer.send(answer("200 OK", "one"))
            #expect(try caller.message().body == "one")
            // None of the trailers is left for the next request.
            try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\n\(chunked)\r\n5\r\nhello\r\n0\r\n\r\n")
            #expect(try !peer.head().contains("Trailer"))
            try peer.expect("5\r\nhello\r\n0\r\n\r\n")
            try peer.send(answer("200 OK", "two"))
            #expect(try caller.message().body == "two")
        }
    }

    /// Returns a proxy whose login obtains the key `one`, for `X-Api-Key`.
    private func keyProxy(before upstream: ScriptedUpstream) throws -> TestProxy {
        let name = try #require(HTTPField.Name("X-Api-Key"))
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in
            Session(fields: [InjectedField(name: name, value: Secret("one"))], expiresAt: nil)
        }
        return try TestProxy(.bank(port: upstream.port, logins: [login]))
    }

    @Test("trailers go along when the request is sent again, but none in place of a session's field")
    func replayed() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try keyProxy(before: upstream)
        let caller = try proxy.connect()
        try caller.send(
            "POST / HTTP/1.1\r\nHost: localhost\r\n\(chunked)\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nx-api-key: evil\r\nX_Api_Key: evil\r\n\r\n"
        )
        let server = try upstream.accept()
        _ = try server.head()
        try server.expect("5\r\nhello\r\n0\r\nX-Sum: 1\r\nx-api-key: evil\r\nX_Api_Key: evil\r\n\r\n")
        try server.send(challenge)
        #expect(try server.head().contains("X-Api-Key: one\r\n"))
        try server.expect("5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")
        try server.send(answer("200 OK", "done"))
        #expect(try caller.message().body == "done")
    }

    @Test("a trailer in place of a session's field is left out even if the session has ended since the head was sent")
    func droppedMeanwhile() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try keyProxy(before: upstream)
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(challenge)
        _ = try server.head()
        try server.send(answer("200 OK", "logged in"))
        #expect(try caller.message().body == "logged in")
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\n\(chunked)\r\n5\r\nhello\r\n")
        #expect(try server.head().contains("X-Api-Key: one\r\n"))
        try server.expect("5\r\nhello\r\n")
        proxy.services.gate.change { _ = $0.sessions.drop { _ in true } }
        // The route learns of it by another worker's request, or by a refresh.
        proxy.services.roster.refreshSnapshots()
        proxy.settle()
        try caller.send("0\r\nX-Sum: 1\r\nx-api-key: evil\r\n\r\n")
        try server.expect("0\r\nX-Sum: 1\r\n\r\n")
        try server.send(answer("200 OK", "done"))
        #expect(try caller.message().body == "done")
    }

    @Test("a request with broken trailers is refused, and its body does not look complete upstream")
    func brokenRequest() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\n\(chunked)\r\n5\r\nhello\r\n")
        let server = try upstream.accept()
        _ = try server.read(until: "5\r\nhello\r\n")
        try caller.send("0\r\nX : 1\r\n\r\n")
        #expect(try caller.head().hasPrefix("HTTP/1.1 400 "))
        #expect(try server.readAll() ?? "" == "")
    }
}
