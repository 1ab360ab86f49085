// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Gateway
import Glibc
import HTTPWire
import Testing

@Suite("Patience with slow callers")
struct PatienceTests {
    private static let large = String(repeating: "x", count: 8_000_000)

    @Test("a body that trickles in is 408, however steadily it does")
    func tricklingBody() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try Proxy(.bank(port: upstream.port), limits: WorkerLimits(bodyTime: .milliseconds(300)))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        let server = try upstream.accept()
        while !caller.hasNews(within: 20) { try caller.send("1\r\nx\r\n") }
        #expect(try caller.head().hasPrefix("HTTP/1.1 408 "))
        try server.expectEnd()
    }

    @Test("a body that gets ahead may take as long as it likes")
    func slowBody() throws {
        let upstream = try AnsweringUpstream { _, body in answer("200 OK", "\(body.utf8.count)") }
        let proxy = try Proxy(.bank(port: upstream.port), limits: WorkerLimits(bodyTime: .milliseconds(800)))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n")
        for _ in 0..<9 {
            try caller.send(String(repeating: "x", count: 1000))
            usleep(150_000)
        }
        #expect(try caller.message().body == "9000")
    }

    @Test("a caller whom we refuse gets its answer when its body does not come")
    func refusedBody() throws {
        let proxy = try Proxy(
            .bank(port: 1), limits: WorkerLimits(bodyTime: .milliseconds(100)), router: Router(fallback: nil))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 404 "))
        #expect(head.contains("Connection: close\r\n"))
        #expect(body.contains("no-route"))
        caller.finish()
        try caller.expectEnd()
    }

    @Test("a caller who does not read its response is cut off, and the upstream with it", arguments: [0, 1])
    func slowReader(bytesAtATime: Int) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try Proxy(.bank(port: upstream.port), limits: WorkerLimits(writeTime: .milliseconds(300)))
        let caller = try proxy.connect(receiveBuffer: 4096)
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        startThread(sending: answer("200 OK", Self.large), on: server)
        if bytesAtATime > 0 {
            _ = try caller.head()
            // A byte now and then does not help.
            while proxy.gateway.figures.openConnections > 0 {
                guard (try? caller.read(count: caller.drain() + bytesAtATime)) != nil else { break }
                usleep(20_000)
            }
        }
        proxy.expectNoConnections()
        // The response is not complete, and does not look as if it were.
        #expect(try caller.readAll() == nil)
    }

    @Test("a caller who reads steadily gets all of its last response, however long that takes")
    func steadyReader() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", Self.large) }
        let proxy = try Proxy(
            .bank(port: upstream.port),
            limits: WorkerLimits(
                headTime: .milliseconds(200), writeTime: .milliseconds(700), idleTime: .milliseconds(200)))
        for field in ["", "Connection: close\r\n"] {
            let caller = try proxy.connect(receiveBuffer: 65_536)
            try caller.send(get("/", field))
            _ = try caller.head()
            var left = Self.large.utf8.count
            // All but what may lie in the kernel's buffers slowly, so that the end of the exchange is well behind.
            while left > 0 {
                left -= try caller.read(count: min(left, 400_000)).count
                usleep(60_000)
            }
            try caller.expectEnd()
        }
    }

    @Test("a caller who sends requests and reads no answers is cut off")
    func pipelining() throws {
        let body = String(repeating: "x", count: 200_000)
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", body) }
        let proxy = try Proxy(
            .bank(port: upstream.port),
            limits: WorkerLimits(
                headTime: .milliseconds(100), writeTime: .milliseconds(400), idleTime: .milliseconds(100)))
        let caller = try proxy.connect(receiveBuffer: 4096)
        _ = try? caller.send(String(repeating: get(), count: 500))
        proxy.wait("the caller is accepted") { proxy.gateway.figures.acceptedConnections == 1 }
        proxy.expectNoConnections()
        #expect(try caller.readAll() == nil)
    }

    @Test("a connection that was quiet for a while works as before, and ends when its time is over")
    func quiet() throws {
        let upstream = try AnsweringUpstream { head, body in answer("200 OK", head.contains("POST") ? body : "in") }
        var limits = WorkerLimits(idleTime: .milliseconds(600))
        limits.quietTime = .milliseconds(30)
        let proxy = try Proxy(.bank(port: upstream.port), limits: limits)
        let caller = try proxy.connect()
        for _ in 0..<3 {
            try caller.send(get())
            #expect(try caller.message().body == "in")
            usleep(150_000)
            let body = String(repeating: "b", count: 100_000)
            try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + body)
            #expect(try caller.message().body == body)
            usleep(150_000)
        }
        #expect(try caller.readAll() == "")
    }

    @Test("a quiet connection takes the head limits of the last reload")
    func reload() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        var limits = WorkerLimits()
        limits.quietTime = .milliseconds(30)
        let proxy = try Proxy(.bank(port: upstream.port), limits: limits)
        let caller = try proxy.connect()
        let long = get("/", "X-Long: \(String(repeating: "x", count: 10_000))\r\n")
        try caller.send(long)
        #expect(try caller.message().body == "in")
        let plan = ListenerPlan(
            name: "test", service: .proxy, router: Router(fallback: "bank"), hosts: HostPolicy(),
            headLimits: HeadLimits(line: 1024, head: 1024))
        try proxy.gateway.apply(
            GatewayPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: plan)],
                upstreams: [.bank(port: upstream.port)]))
        // It falls quiet at some moment after the reload.
        try caller.send(get())
        #expect(try caller.message().body == "in")
        usleep(300_000)
        try caller.send(long)
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 431 "))
    }
}

/// Sends `text` on `peer` from a thread of its own, as far as it is taken.
private func startThread(sending text: String, on peer: Peer) {
    struct Carrier: @unchecked Sendable {
        // Handed over: whoever starts the thread does not use it any more.
        let peer: Peer
    }
    let carrier = Carrier(peer: peer)
    startThread { _ = try? carrier.peer.send(text) }
}
