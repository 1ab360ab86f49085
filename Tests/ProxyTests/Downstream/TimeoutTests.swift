// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import EventLoop
import HTTPWire
import Proxy
import TestSupport
import Testing

@Suite("Timeouts of slow callers")
struct TimeoutTests {
    private static let large = String(repeating: "x", count: 8_000_000)

    @Test("a body that arrives byte by byte is 408, however steadily")
    func tricklingBody() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        let server = try upstream.accept()
        for _ in 0..<59 {
            proxy.pass(.seconds(1))
            #expect(!caller.hasNews)
            try caller.send("1\r\nx\r\n")
        }
        proxy.pass(.seconds(1))
        #expect(try caller.head().hasPrefix("HTTP/1.1 408 "))
        try server.expectEnd()
    }

    @Test("a body that makes progress may take any time")
    func slowBody() throws {
        let upstream = try AnsweringUpstream { _, body in answer("200 OK", "\(body.utf8.count)") }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n")
        for _ in 0..<9 {
            try caller.send(String(repeating: "x", count: 1000))
            // Each two of these pieces extend the limit by a minute.
            proxy.pass(.seconds(29))
        }
        #expect(try caller.message().body == "9000")
    }

    @Test("a refused caller gets its answer even if its body does not arrive")
    func refusedBody() throws {
        let proxy = try TestProxy(.bank(port: 1), router: Router(fallback: nil))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
        proxy.pass(.milliseconds(59_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 404 "))
        #expect(head.contains("Connection: close\r\n"))
        #expect(body.contains("no-route"))
        caller.finish()
        try caller.expectEnd()
    }

    @Test("a caller who does not read its response is cut off, and the upstream with it", arguments: [false, true])
    func slowReader(readsBytes: Bool) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect(receiveBuffer: 4096)
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        // More than the kernel's buffers hold.
        let whole = Array(answer("200 OK", String(repeating: Self.large, count: 8)).utf8)
        #expect(server.sendUntilHeld(whole, by: proxy) < whole.count)
        for _ in 0..<299 {
            // A single byte per second does not extend the limit.
            if readsBytes { #expect(caller.readByte()) }
            proxy.pass(.seconds(1))
            #expect(proxy.server.figures.openConnections == 1)
        }
        proxy.pass(.seconds(1))
        #expect(proxy.server.figures.openConnections == 0)
        // The response is not complete, and does not look as if it were.
        #expect(try caller.readAll() == nil)
        try server.expectEnd()
    }

    @Test("a caller who reads steadily gets all of its last response, however long that takes")
    func steadyReader() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", Self.large) }
        let proxy = try TestProxy(
            .bank(port: upstream.port),
            limits: WorkerLimits(headTime: .seconds(20), writeTime: .seconds(70), idleTime: .seconds(20)))
        for field in ["", "Connection: close\r\n"] {
            let caller = try proxy.connect(receiveBuffer: 65_536)
            try caller.send(get("/", field))
            _ = try caller.head()
            var left = Self.large.utf8.count
            // Reads slowly, so that the exchange ends long before the caller has everything.
            while left > 0 {
                left -= try caller.read(count: min(left, 400_000)).count
                proxy.pass(.seconds(6))
            }
            proxy.pass(.seconds(20))
            try caller.expectEnd()
        }
    }

    @Test("a caller who sends requests and reads no answers is cut off")
    func pipelining() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(
            .bank(port: upstream.port),
            limits: WorkerLimits(headTime: .seconds(10), writeTime: .seconds(40), idleTime: .seconds(10)))
        let caller = try proxy.connect(receiveBuffer: 4096)
        try caller.send(String(repeating: get(), count: 500))
        let server = try upstream.accept()
        // The kernel buffers these for the caller.
        for _ in 0..<3 {
            _ = try server.head()
            try server.send(answer("200 OK", String(repeating: "x", count: 10_000)))
        }
        _ = try server.head()
        let whole = Array(answer("200 OK", String(repeating: Self.large, count: 8)).utf8)
        #expect(server.sendUntilHeld(whole, by: proxy) < whole.count)
        proxy.pass(.milliseconds(39_999))
        #expect(proxy.server.figures.openConnections == 1)
        proxy.pass(.milliseconds(1))
        #expect(proxy.server.figures.openConnections == 0)
        #expect(try caller.readAll() == nil)
        try server.expectEnd()
    }

    @Test("an idle connection still works before its timeout, and ends at it")
    func quiet() throws {
        let upstream = try AnsweringUpstream { head, body in answer("200 OK", head.contains("POST") ? body : "in") }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        for _ in 0..<3 {
            try caller.send(get())
            #expect(try caller.message().body == "in")
            proxy.pass(.seconds(200))
            let body = String(repeating: "b", count: 100_000)
            try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + body)
            #expect(try caller.message().body == body)
            proxy.pass(.seconds(200))
        }
        proxy.pass(.milliseconds(99_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try caller.readAll() == "")
    }

    @Test("an idle connection uses the head limits of the last reload")
    func reload() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let long = get("/", "X-Long: \(String(repeating: "x", count: 10_000))\r\n")
        try caller.send(long)
        #expect(try caller.message().body == "in")
        let plan = ListenerPlan(
            name: "test", service: .proxy, router: Router(fallback: "bank"), hosts: HostPolicy(),
            headLimits: HeadLimits(line: 1024, head: 1024))
        try proxy.server.apply(
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: plan)],
                upstreams: [.bank(port: upstream.port)]))
        try caller.send(long)
        #expect(try caller.message().body == "in", "it is not quiet yet")
        proxy.pass(.seconds(2))
        try caller.send(long)
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 431 "))
    }

    @Test("a request is not late that came while its worker had no processor", arguments: [false, true])
    func stalledWorker(inTwoParts: Bool) throws {
        let stall = Stall()
        let local = ListenerPlan(
            name: "local", service: .local(StallingService(stalls: ["/stall": stall])),
            router: Router(fallback: "bank"), hosts: HostPolicy())
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: local)], upstreams: [.bank(port: 1)]))
        let (caller, stalling) = (try proxy.connect(), try proxy.connect())
        for peer in [caller, stalling] {
            try peer.send(get("/0"))
            _ = try peer.message()
        }
        let request = get("/next")
        if inTwoParts {
            try caller.send(String(request.prefix(10)))
            proxy.settle()
        }
        try stalling.send(get("/stall"))
        #expect(stall.isThere.wait())
        try caller.send(inTwoParts ? String(request.dropFirst(10)) : request)
        // Longer than a connection may rest, and than a head may take.
        proxy.time.advance(by: .seconds(40))
        stall.goesOn.set()
        let head = try caller.message().head
        #expect(head.hasPrefix("HTTP/1.1 200 "), "\(head)")
    }
}
