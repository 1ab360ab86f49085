// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPWire
import Proxy
import Testing

@Suite("Upstreams that fail")
struct FailureTests {
    /// Sends `bytes` as the answer to one request, closes, and returns all that the caller gets; `nil`: a reset.
    private func outcome(of bytes: String, request: String = get()) throws -> String? {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(request)
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(bytes)
        server.finish()
        defer { proxy.expectNoConnections() }
        if let head = caller.peekHead(), head.contains("problem+json") { caller.finish() }
        return try caller.readAll()
    }

    @Test(
        "a POST whose connection had rested, and ends before the answer, is not sent again",
        arguments: [
            // By an express line, and by libcurl.
            ("Content-Length: 2\r\n\r\nab", "Content-Length: 2\r\n\r\nab"),
            (
                "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
                "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            ),
        ])
    func lostPost(first: String, second: String) throws {
        let upstream = try ScriptedUpstream()
        // Bodies are kept if a challenge may come.
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("t") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        func send(_ path: String, _ rest: String) throws {
            try caller.send("POST \(path) HTTP/1.1\r\nHost: localhost\r\n\(rest)")
        }
        func take(_ path: String, _ rest: String, from connection: Peer) throws {
            #expect(try connection.head().hasPrefix("POST \(path) "))
            let body = rest.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)[1]
            _ = try connection.read(count: body.utf8.count)
        }
        try send("/1", first)
        let connection = try upstream.accept()
        try take("/1", first, from: connection)
        try connection.send(answer("200 OK", "one"))
        #expect(try caller.message().body == "one")
        try send("/2", second)
        try take("/2", second, from: connection)
        connection.close()
        proxy.settle()
        // libcurl opens a new connection before it asks whether it may send.
        if upstream.hasCaller { #expect(!(try upstream.accept()).readByte()) }
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 502 "))
    }

    @Test("an upstream that closes without an answer is 502, and the caller's connection stays open")
    func gotNothing() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        for _ in 0..<3 {
            try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let server = try upstream.accept()
            _ = try server.head()
            server.close()
            let (head, body) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 502 "))
            #expect(body.contains("\"code\":\"upstream-unreachable\""))
        }
    }

    @Test("a refused connection is 502 that names the upstream and not its address")
    func refused() throws {
        var upstream: ScriptedUpstream? = try ScriptedUpstream()
        let port = upstream?.port ?? 0
        upstream = nil
        let proxy = try TestProxy(.bank(port: port))
        let (head, body) = try proxy.fetch(get())
        #expect(head.hasPrefix("HTTP/1.1 502 "))
        #expect(body.contains("\"upstream\":\"bank\""))
        #expect(!body.contains("127.0.0.1") && !body.contains("\(port)"))
    }

    @Test(
        "a truncated body never looks complete",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nhalf",
        ])
    func truncated(bytes: String) throws {
        guard let all = try outcome(of: bytes) else { return }
        #expect(all.hasSuffix("half") || all.hasSuffix("4\r\nhalf\r\n"))
        #expect(!all.contains("Content-Length: 4\r\n") && !all.hasSuffix("0\r\n\r\n"))
    }

    @Test("a truncated body is a reset for an HTTP/1.0 caller, for whom the end of the connection ends the body")
    func truncatedForOldCaller() throws {
        let bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"
        #expect(try outcome(of: bytes, request: "GET / HTTP/1.0\r\n\r\n") == nil)
    }

    @Test("a head that does not come in time is 504, and one body piece late ends the connection")
    func timeouts() throws {
        let upstream = try ScriptedUpstream()
        let timeouts = UpstreamPlan.Timeouts(response: .seconds(60), idle: .seconds(30))
        let proxy = try TestProxy(.bank(port: upstream.port, timeouts: timeouts))
        let caller = try proxy.connect()
        try caller.send(get("/1"))
        let server = try upstream.accept()
        _ = try server.head()
        proxy.pass(.milliseconds(59_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 504 "))
        #expect(body.contains("\"code\":\"upstream-timeout\""))
        try server.expectEnd()
        try caller.send(get("/2"))
        let second = try upstream.accept()
        _ = try second.head()
        try second.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        #expect(try caller.head().hasPrefix("HTTP/1.1 200 "))
        try caller.expect("half")
        proxy.pass(.milliseconds(29_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try caller.readAll().map { $0 == "" } ?? true)
    }

    @Test("a POST is not sent twice when the connection that is used again turns out to be dead")
    func stalePost() throws {
        let (upstream, proxy, caller) = try stale()
        try caller.send("POST /second HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab")
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 502 "))
        #expect(body.contains("upstream-unreachable"))
        // The next request succeeds.
        try caller.send("POST /third HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab")
        let server = try upstream.accept()
        #expect(try server.message().body == "ab")
        try server.send(answer())
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 "))
        _ = proxy
    }

    @Test("bytes that an upstream sends without a request are not the answer to any caller's next request")
    func stray() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let (first, second) = try (proxy.connect(), proxy.connect())
        try first.send(get("/1"))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer("200 OK", "one"))
        #expect(try first.message().body == "one")
        try server.send(answer("200 OK", "stray"))
        try server.expectEnd()
        try second.send(get("/2"))
        let other = try upstream.accept()
        #expect(try other.head().hasPrefix("GET /2 "))
        try other.send(answer("200 OK", "two"))
        #expect(try second.message().body == "two")
    }

    @Test("a POST is sent on another connection if the kept one has ended")
    func endedMeanwhile() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/1"))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer("200 OK", "one"))
        _ = try caller.message()
        server.close()
        try caller.send("POST /2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab")
        let other = try upstream.accept()
        #expect(try other.message().body == "ab")
        try other.send(answer("200 OK", "two"))
        #expect(try caller.message().body == "two")
    }

    @Test("a GET may be sent again when the connection that is used again turns out to be dead")
    func staleGet() throws {
        let (upstream, proxy, caller) = try stale()
        try caller.send(get("/second"))
        let server = try upstream.accept()
        #expect(try server.head().hasPrefix("GET /second "))
        try server.send(answer("200 OK", "again"))
        #expect(try caller.message().body == "again")
        _ = proxy
    }

    /// Returns a caller whose upstream closes its kept connection as soon as the next request arrives on it.
    private func stale() throws -> (ScriptedUpstream, TestProxy, Peer) {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/first"))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer("200 OK", "first"))
        _ = try caller.message()
        startThread(closing: server)
        return (upstream, proxy, caller)
    }

    @Test(
        "a HEAD request with a body is refused, as its meaning is undefined, and its connection ends",
        arguments: ["Content-Length: 2\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"])
    func headWithBody(body: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\(body)" + get("/after"))
        let answers = try caller.readAll() ?? ""
        #expect(answers.hasPrefix("HTTP/1.1 400 "))
        #expect(!answers.dropFirst().contains("HTTP/1.1 "))
        proxy.settle()
        #expect(!upstream.hasCaller)
    }
}
