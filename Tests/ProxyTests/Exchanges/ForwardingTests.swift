// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPWire
import Proxy
import TestSupport
import Testing

@Suite("Exchanges between a caller and an upstream")
struct ForwardingTests {
    @Test("a request goes upstream byte for byte, and its answer comes back")
    func plain() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port, path: "/api/"))
        let caller = try proxy.connect()
        try caller.send(get("/a//b/../%2F?q=1&r=%20", "X-One: 1\r\nConnection: x-two\r\nX-Two: 2\r\n"))
        let server = try upstream.accept()
        try server.expect(
            "GET /api/a//b/../%2F?q=1&r=%20 HTTP/1.1\r\nHost: 127.0.0.1:\(upstream.port)\r\nX-One: 1\r\n"
                + "Via: 1.1 countersign\r\n\r\n")
        try server.send(answer("200 Fine", "hello", "X-Three: 3\r\nKeep-Alive: timeout=5\r\n"))
        try caller.expect(
            "HTTP/1.1 200 Fine\r\nX-Three: 3\r\nContent-Length: 5\r\nDate: Sat, 21 Nov 2026 16:00:00 GMT\r\nVia: 1.1 countersign\r\n\r\nhello"
        )
    }

    @Test("a connection is kept on both sides")
    func keepAlive() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/1"))
        let server = try upstream.accept()
        _ = try server.head()
        for number in 1...5 {
            try server.send(answer("200 OK", "\(number)"))
            #expect(try caller.message().body == "\(number)")
            try caller.send(get("/\(number + 1)"))
            #expect(try server.head().hasPrefix("GET /\(number + 1) "))
        }
        #expect(!upstream.hasCaller)
        #expect(proxy.server.figures.acceptedConnections == 1)
    }

    @Test("pipelined requests are answered in their order")
    func pipelining() throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", String(head.prefix { $0 != "\r\n" })) }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send((0..<100).map { get("/\($0)") }.joined())
        for number in 0..<100 { #expect(try caller.message().body == "GET /\(number) HTTP/1.1") }
    }

    /// An answer that fills the output buffer at once delays the next request, and so does a slow caller.
    @Test(
        "pipelined requests are all answered, however long the answers are and however slow the caller is",
        arguments: [(70_000, nil), (300_000, nil), (300_000, 4096)] as [(Int, Int32?)])
    func pipeliningLongAnswers(length: Int, receiveBuffer: Int32?) throws {
        let body = String(repeating: "x", count: length)
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", body) }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect(receiveBuffer: receiveBuffer)
        try caller.send((0..<20).map { get("/\($0)") }.joined())
        proxy.wait("the first request") { upstream.requests >= 1 }
        for _ in 0..<20 { #expect(try caller.message().body.utf8.count == length) }
    }

    @Test("a caller that ends its side after pipelined requests gets all answers, and then the end")
    func halfClosed() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/1") + get("/2"))
        caller.finish()
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer("200 OK", "one"))
        #expect(try server.head().hasPrefix("GET /2 "))
        try server.send(answer("200 OK", "two"))
        let all = try caller.readAll() ?? ""
        #expect(all.contains("\r\n\r\none"))
        #expect(all.hasSuffix("\r\n\r\ntwo"))
        proxy.expectNoConnections()
    }

    @Test("a caller that ends its side in the middle of a request is not answered, and the upstream is let go of")
    func halfClosedInBody() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
        let server = try upstream.accept()
        _ = try server.head()
        caller.finish()
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a body in chunks goes upstream in chunks, and a body in chunks comes back")
    func chunked() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(
            "POST /p HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        let server = try upstream.accept()
        let head = try server.head()
        #expect(head.contains("Transfer-Encoding: chunked\r\n"))
        try server.expect("3\r\nabc\r\n0\r\n\r\n")
        try server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\n0\r\nX-Trailer: 1\r\n\r\n")
        try caller.expect(
            "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 16:00:00 GMT\r\nVia: 1.1 countersign\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\n0\r\n\r\n"
        )
    }

    @Test("an old caller gets a body of unknown length until the connection ends")
    func oldCaller() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        let server = try upstream.accept()
        #expect(try server.head().contains("Via: 1.0 countersign\r\n"))
        try server.send("HTTP/1.1 200 OK\r\n\r\nuntil the end")
        server.close()
        #expect(try caller.readAll()?.hasSuffix("\r\n\r\nuntil the end") == true)
    }

    @Test("what is stripped from a path leaves a path", arguments: ["/accounts", "/accounts/"])
    func stripped(prefix: String) throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", String(head.prefix { $0 != "\r\n" })) }
        let router = Router(
            routes: [Router.Route(path: prefix, upstream: "bank", stripsPrefix: true)], fallback: "bank")
        let proxy = try TestProxy(.bank(port: upstream.port), router: router)
        #expect(try proxy.fetch(get("/accounts/7?x")).body == "GET /7?x HTTP/1.1")
        guard !prefix.hasSuffix("/") else { return }
        #expect(try proxy.fetch(get("/accounts")).body == "GET / HTTP/1.1")
        #expect(try proxy.fetch(get("/accounts?x=1")).body == "GET /?x=1 HTTP/1.1")
    }

    @Test("OPTIONS * asks about the server, whatever the upstream's path is")
    func asterisk() throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", String(head.prefix { $0 != "\r\n" })) }
        let proxy = try TestProxy(.bank(port: upstream.port, path: "/api/"))
        #expect(
            try proxy.fetch("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n").body == "OPTIONS * HTTP/1.1")
    }

    @Test("an absolute target without a path asks for the root")
    func absolute() throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", String(head.prefix { $0 != "\r\n" })) }
        let proxy = try TestProxy(.bank(port: upstream.port, path: "/api"))
        let request = "GET http://localhost?q HTTP/1.1\r\nHost: ignored.example\r\n\r\n"
        #expect(try proxy.fetch(request).body == "GET /api/?q HTTP/1.1")
    }
}

@Suite("Targets that browsers, curl and libraries send")
struct TargetTests {
    @Test(
        "reach the upstream as they came",
        arguments: [
            "/film [2020].mkv".replacing(" ", with: "%20"), "/_next/[slug].js", "/a|b", "/a^b", "/{id}", "/`x`",
            "/api/v1/query?query=up{job=\"x\"}", "/?q=m\u{fc}nchen", "/?q=100%", "/?q=%&r=%4&s=%zz", "/?a=<b>'c'",
            "/?ids[]=1|2^3", "/a?b?c/../d",
        ])
    func forwarded(_ target: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get(target))
        let server = try upstream.accept()
        #expect(try server.head().hasPrefix("GET \(target) HTTP/1.1\r\n"))
        try server.send(answer())
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 "))
    }

    @Test(
        "are 400 if servers read them in several ways",
        arguments: [
            "/a\\b", "/a?b\\c", "/%", "/%4", "/%zz", "/a\"b", "/a<b>", "/\u{fc}", "/a#b", "/a?b#c", "/a\tb", "/a?b\tc",
            "/a?\u{7f}", "/a?\u{0}", "/a?\u{1b}",
        ])
    func refused(_ target: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        #expect(try proxy.fetch(get(target)).head.hasPrefix("HTTP/1.1 400 "))
    }

    @Test("are 400 if a route or a challenge is written with the encoded form", arguments: ["/a[b]/x", "/a%5bb]/x"])
    func encodedRoute(_ path: String) throws {
        let router = Router(routes: [.init(path: "/a%5Bb%5D/", users: [0], upstream: "other")], fallback: "bank")
        #expect(router.decide(host: "", path: path, method: "GET", user: 1) == .ambiguous)
        #expect(router.decide(host: "", path: "/a[c]/x", method: "GET", user: 1) == .found(.init(upstream: "bank")))
        let raw = Router(routes: [.init(path: "/a[b]/", users: [0], upstream: "other")], fallback: "bank")
        #expect(raw.decide(host: "", path: "/a%5Bb%5D/x", method: "GET", user: 1) == .ambiguous)
        #expect(raw.decide(host: "", path: "/a[b]/x", method: "GET", user: 1) == .notAllowed(route: 0))
    }
}
