// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import EventLoop
import HTTPWire
import Proxy
import Synchronization
import TestSupport
import Testing

@Suite("HTTP/1.1 to an upstream")
struct HTTP1StreamTests {
    @Test("requests of all kinds go over one connection, one after the other")
    func reuse() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/1", "X-Empty:\r\nX-Long: \(String(repeating: "z", count: 5000))\r\n"))
        let server = try upstream.accept()
        let first = try server.head()
        #expect(first.hasPrefix("GET /1 HTTP/1.1\r\n") && first.contains("\r\nX-Empty:"))
        #expect(first.contains("\r\nX-Long: zzz") && !first.lowercased().contains("content-length"))
        try server.send(answer("200 OK", "one"))
        #expect(try caller.message().body == "one")
        try caller.send("HEAD /2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try server.head().hasPrefix("HEAD /2 "))
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        #expect(try caller.head().contains("Content-Length: 1000\r\n"))
        try caller.send("POST /3 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody")
        let third = try server.message()
        #expect(third.head.contains("\r\nContent-Length: 4\r\n") && third.body == "body")
        try server.send("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(try caller.head().hasPrefix("HTTP/1.1 204 "))
        try caller.send("POST /4 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        #expect(try server.head().contains("\r\nContent-Length: 0\r\n"))
        try server.send(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfou\r\n"
        )
        #expect(try caller.head().hasPrefix("HTTP/1.1 103 "))
        try server.send("1\r\nr\r\n0\r\nX-Trailer: t\r\n\r\n")
        #expect(try caller.message().body.filter(\.isLetter) == "four")
        try caller.send("PURGE /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try server.head().hasPrefix("PURGE /5 "))
        try server.send(answer("200 OK", "five"))
        #expect(try caller.message().body == "five")
        #expect(!upstream.hasCaller)
    }

    @Test("a 408 on a connection that has rested is about its rest: what may go again goes by another")
    func idleTimeout() throws {
        let late = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlate"
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        func rested() throws -> Peer {
            try caller.send(get("/first"))
            let server = try upstream.accept()
            _ = try server.head()
            try server.send(answer("200 OK", "first"))
            #expect(try caller.message().body == "first")
            return server
        }
        var server = try rested()
        try caller.send(get("/again"))
        #expect(try server.head().hasPrefix("GET /again "))
        try server.send(late)
        server = try upstream.accept()
        #expect(try server.head().hasPrefix("GET /again "))
        // On a connection that was not idle it is the answer.
        try server.send(late)
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 408 "))

        // A request that could be executed twice is not sent twice.
        server = try rested()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody")
        _ = try server.message()
        try server.send(late)
        #expect(try caller.message().body == "late")
        #expect(!upstream.hasCaller)
    }

    @Test(
        "a connection to an upstream that cannot be reused takes no further request",
        arguments: [
            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
        ])
    func single(bytes: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        for path in ["/1", "/2"] {
            try caller.send(get(path))
            let server = try upstream.accept()
            #expect(try server.head().hasPrefix("GET \(path) "))
            try server.send(bytes)
            #expect(try caller.message().body.filter(\.isLetter) == "ok")
            try server.expectEnd()
        }
    }

    @Test("an answer that nobody asked for is not that of the next request, however late it comes")
    func unasked() throws {
        let upstream = try ScriptedUpstream()
        let (first, second) = (Stall(), Stall())
        let local = ListenerPlan(
            name: "local", service: .local(StallingService(stalls: ["/1": first, "/2": second])),
            router: Router(fallback: "bank"), hosts: HostPolicy())
        let point = ListenPoint.tcp(host: "127.0.0.1", port: 0)
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: point, plan: .proxy()), (point: point, plan: local)],
                upstreams: [.bank(port: upstream.port)]))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer("200 OK", "one"))
        #expect(try caller.message().body == "one")

        let stalling = try (0..<2).map { _ in try Peer(port: port(of: proxy.server.descriptors[1])) }
        for peer in stalling {
            try peer.send(get("/0"))
            _ = try peer.message()
        }
        // The worker gets the next two requests at once, and blocks again at the first of them.
        try stalling[0].send(get("/1"))
        #expect(first.isThere.wait())
        try stalling[1].send(get("/2"))
        try caller.send(get("/next"))
        first.goesOn.set()
        #expect(second.isThere.wait())
        try server.send(answer("200 OK", "of nobody's"))
        // Runs on the loop's thread, so that this turn takes two milliseconds.
        second.atItsEnd.withLock { $0 = { [time = proxy.time] in time.advance(by: .milliseconds(2)) } }
        second.goesOn.set()
        proxy.settle()
        #expect(!caller.hasNews)
        let next = try upstream.accept()
        #expect(try next.head().hasPrefix("GET /next "))
        try next.send(answer("200 OK", "two"))
        #expect(try caller.message().body == "two")
    }

    @Test("an answer that arrives byte by byte is read the same way")
    func bytewise() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        for byte in Array("HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".utf8) {
            try server.send([byte])
        }
        #expect(try caller.message().body.filter(\.isLetter) == "ok")
        try caller.send(get("/2"))
        #expect(try server.head().hasPrefix("GET /2 "))
    }

    @Test("an answer is read the same way wherever it is split", arguments: [false, true])
    func cuts(isChunked: Bool) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: 8"
        let body = isChunked ? "5;a=b\r\nhello\r\n3\r\nyou\r\n0\r\nX-Sum: 1\r\n\r\n" : "helloyou"
        let bytes = Array("\(interim)HTTP/1.1 200 OK\r\n\(framing)\r\n\r\n\(body)".utf8)
        var server: Peer?
        for cut in 1..<bytes.count {
            try caller.send(get("/\(cut)"))
            let peer = try server ?? upstream.accept()
            server = peer
            #expect(try peer.head().hasPrefix("GET /\(cut) "))
            try peer.send(Array(bytes[..<cut]))
            proxy.settle()
            try peer.send(Array(bytes[cut...]))
            #expect(try caller.head().hasPrefix("HTTP/1.1 103 "))
            let told = try caller.message().body
            #expect(told.filter(\.isLetter) == "helloyou", "cut at \(cut): \(told)")
        }
    }

    @Test("a body in chunks is the same wherever the caller splits it, and its chunks have their declared sizes")
    func chunks() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        let body = Array("5\r\nhello\r\n2\r\n, \r\n5\r\nworld\r\n0\r\nX-Sum: 1\r\n\r\n".utf8)
        var server: Peer?
        for cut in 0..<body.count {
            try caller.send(Array(head.utf8) + body[..<cut])
            proxy.settle()
            let peer = try server ?? upstream.accept()
            server = peer
            try caller.send(Array(body[cut...]))
            #expect(try peer.head().contains("\r\nTransfer-Encoding: chunked\r\n"))
            #expect(try decoded(from: peer) == "hello, world")
            try peer.expect("X-Sum: 1\r\n\r\n")
            try peer.send(answer("200 OK", "well"))
            #expect(try caller.message().body == "well")
        }
        for count in [1, 15, 16, 255, 256, 4095, 4096, 65_535, 65_536, 65_537, 200_000] {
            let text = String(repeating: "z", count: count)
            startThread(sending: Array("\(head)\(String(count, radix: 16))\r\n\(text)\r\n0\r\n\r\n".utf8), to: caller)
            let peer = try #require(server)
            _ = try peer.head()
            #expect(try decoded(from: peer).utf8.count == count)
            try peer.expect("\r\n")
            try peer.send(answer("200 OK", "well"))
            #expect(try caller.message().body == "well")
        }
    }

    /// Returns the data of the chunks that arrive, up to and including the last.
    private func decoded(from peer: Peer) throws -> String {
        var text = ""
        while true {
            let line = try peer.read(until: "\r\n")
            let size = try #require(Int(line.dropLast(1), radix: 16))
            if size == 0 { return text }
            #expect(line.first != "0")
            text += String(decoding: try peer.read(count: size), as: UTF8.self)
            try peer.expect("\r\n")
        }
    }

    @Test("after an early answer the body is still sent, unless the answer is a refusal")
    func early() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST /1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nhalf")
        let server = try upstream.accept()
        _ = try server.head()
        #expect(try server.read(count: 4) == Array("half".utf8))
        try server.send(answer("200 OK", "early"))
        #expect(try caller.message().body == "early")
        try caller.send("rest")
        #expect(try server.read(count: 4) == Array("rest".utf8))
        // The whole body has arrived, so the connection can be used again.
        try caller.send("POST /2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nhalf")
        _ = try server.head()
        try server.send(answer("413 Content Too Large", "no"))
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 413 "))
        try server.expectEnd()
    }

    @Test("the pieces of a body are forwarded as they arrive, also after an earlier request and from the first on")
    func pieces() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let piece = String(repeating: "p", count: 40_000)
        var server: Peer?
        for path in ["/1", "/2", "/3"] {
            try caller.send("POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 120000\r\n\r\n" + piece)
            let peer = try server ?? upstream.accept()
            server = peer
            #expect(try peer.head().hasPrefix("POST \(path) "))
            for left in [2, 1, 0] {
                #expect(try peer.read(count: piece.utf8.count) == Array(piece.utf8))
                if left > 0 { try caller.send(piece) }
            }
            try peer.send(answer("200 OK", path))
            #expect(try caller.message().body == path)
        }
    }

    @Test("a reload keeps the connections to an unchanged upstream, and closes the others")
    func reload() throws {
        let (upstream, other) = try (ScriptedUpstream(), ScriptedUpstream())
        let proxy = try TestProxy(.bank(port: upstream.port))
        let point = ListenPoint.tcp(host: "127.0.0.1", port: 0)
        let caller = try proxy.connect()
        try caller.send(get("/1"))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer())
        _ = try caller.message()
        try proxy.server.apply(
            ProxyPlan(listeners: [(point: point, plan: .proxy())], upstreams: [.bank(port: upstream.port)]))
        try caller.send(get("/2"))
        #expect(try server.head().hasPrefix("GET /2 "))
        // During an exchange: its connection is closed after it.
        try proxy.server.apply(
            ProxyPlan(listeners: [(point: point, plan: .proxy())], upstreams: [.bank(port: other.port)]))
        try server.send(answer("200 OK", "two"))
        #expect(try caller.message().body == "two")
        try server.expectEnd()
    }

    @Test("a TLS connection takes several requests in sequence")
    func secure() throws {
        let upstream = try TLSUpstream()
        let proxy = try TestProxy(
            .secure(port: upstream.port, connections: .trusting { $0.version = .http1 }))
        let caller = try proxy.connect()
        var bodies: Set<String> = []
        for number in 1...20 {
            try caller.send("POST /\(number) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc")
            let (head, body) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 200 "))
            bodies.insert(body)
        }
        #expect(!bodies.isEmpty)
    }
}
