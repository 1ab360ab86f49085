// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import HTTPWire
import Proxy
import Synchronization
import TestSupport
import Testing

/// Random behaviour of callers and upstreams for a while. Afterwards everything must be as at the beginning.
@Suite("Callers and upstreams that do what they like")
struct ChaosTests {
    /// Answers of a faulty upstream; if empty, it closes without an answer.
    private static let answers = [
        answer("200 OK", "fine"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
        "", "nonsense", "HTTP/1.1 200 OK\r\nX", "HTTP/1.1 100 Continue\r\n\r\n", challenge, challenge, challenge,
        answer("401 Unauthorized", String(repeating: "x", count: 100_000), "WWW-Authenticate: Bearer\r\n"),
        answer("409 Conflict", "", "MFP-Conflict: yes\r\n"), answer("204 No Content"), answer("304 Not Modified"),
        answer("403 Forbidden", "", "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"a\"\r\n"),
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer\r\nContent-Length: 10\r\n\r\nhalf",
        answer("200 OK", String(repeating: "y", count: 200_000)),
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end",
    ]

    private static let requests = [
        get(), get("/2", "Connection: close\r\n"), "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        get() + get("/2") + get("/3"),
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n" + String(repeating: "z", count: 200_000),
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get(),
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", "nonsense\r\n\r\n",
        "GET",
        "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]

    @Test(
        "after random faults nothing leaks, and the next request is served", arguments: [1, 2, 3, 4] as [UInt64])
    func chaos(seed: UInt64) throws {
        let random = Mutex(SplitMix(state: seed))
        let isWell = Signal()
        let upstream = try AnsweringUpstream { head, _ in
            if isWell.isSet { return answer("200 OK", "well") }
            let answer = random.withLock { Self.answers.randomElement(using: &$0) ?? "" }
            guard head.hasPrefix("HEAD "), let end = answer.utf8.firstRange(of: "\r\n\r\n".utf8) else { return answer }
            // Bytes after a head without a body would be read as the next answer.
            return String(answer[..<end.upperBound])
        }
        let login = Authenticator.scripted(port: upstream.port) { number, _, _ async throws(LoginFailure) in
            if number % 3 == 0 { throw .rejected }
            return .bearer("t\(number)")
        }
        let limits = WorkerLimits(exchanges: 16, headTime: .milliseconds(300), bodyTime: .milliseconds(200))
        let proxy = try TestProxy(
            .bank(
                port: upstream.port, timeouts: .init(response: .milliseconds(300), idle: .milliseconds(200)),
                replay: ReplayTiers(memory: 1000), logins: [login]), workers: 2, limits: limits)
        var callers: [Peer] = []
        for round in 0..<150 {
            let caller = try proxy.connect()
            let (request, ending) = random.withLock {
                (Self.requests.randomElement(using: &$0) ?? "", Int.random(in: 0..<5, using: &$0))
            }
            try? caller.send(request)
            switch ending {
            case 0: caller.reset()
            case 1: caller.close()
            case 2: caller.finish()
            case 3 where round % 8 == 0:
                proxy.wait("an answer", passing: .milliseconds(100)) { caller.hasNews }
                _ = caller.peekHead()
            default: break
            }
            callers.append(caller)
            if callers.count > 20 { callers.removeFirst() }
        }
        callers = []
        proxy.wait("no connections", passing: .milliseconds(100)) { proxy.server.figures.openConnections == 0 }
        proxy.settle()
        isWell.set()
        for number in 0..<40 {
            let (head, body) = try proxy.fetch(get("/\(number)"))
            #expect(head.hasPrefix("HTTP/1.1 200 "))
            #expect(body == "well")
        }
    }
}

/// Upper bound of the bytes in the kernel's buffers of both connections.
private let onTheWay = 12_000_000

@Suite("Back-pressure")
struct BackPressureTests {
    @Test("a caller that does not read slows the upstream down, and loses nothing")
    func slowCaller() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect(receiveBuffer: 4096)
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        let sent = server.sendUntilHeld(1_000_000_000, by: proxy)
        #expect(sent < onTheWay)
        server.finish()
        _ = try caller.head()
        var count = 0
        while (try? caller.read(count: 1)) != nil { count += 1 + caller.drain() }
        #expect(count == sent)
    }

    @Test("an upstream that does not read slows the caller down, and gets the whole body in the end")
    func slowUpstream() throws {
        let upstream = try ScriptedUpstream(receiveBuffer: 4096)
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
        let server = try upstream.accept()
        let sent = caller.sendUntilHeld(1_000_000_000, by: proxy)
        #expect(sent < onTheWay)
        _ = try server.head()
        #expect(try server.read(count: sent).count == sent)
        caller.close()
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a long body is sent in both directions at once", arguments: [3_000_000])
    func both(length: Int) throws {
        let upstream = try AnsweringUpstream { _, body in answer("200 OK", body) }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let body = String(repeating: "0123456789", count: length / 10)
        for _ in 0..<3 {
            try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(length)\r\n\r\n\(body)")
            #expect(try caller.message().body == body)
        }
    }

    @Test("a caller that leaves during a body ends the transfer from the upstream")
    func callerGone() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect(receiveBuffer: 4096)
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        _ = server.sendUntilHeld(1_000_000_000, by: proxy)
        caller.reset()
        proxy.expectNoConnections()
        try server.expectEnd()
    }

    @Test("a caller that leaves while its answer is awaited ends the transfer from the upstream")
    func callerGoneWaiting() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        caller.reset()
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("callers that leave during exchanges leak no descriptors")
    func nothingLeaks() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", String(repeating: "x", count: 200_000)) }
        let proxy = try TestProxy(.bank(port: upstream.port), workers: 2)
        for round in 0..<200 {
            let caller = try proxy.connect()
            try caller.send(round % 3 == 0 ? "GET / HT" : get())
            if round % 3 == 1 { _ = try caller.head() }
            if round % 2 == 0 { caller.reset() } else { caller.close() }
        }
        proxy.expectNoConnections()
        let before = openSockets(at: [proxy.port, upstream.port])
        for _ in 0..<200 {
            let caller = try proxy.connect()
            try caller.send(get())
            _ = try caller.head()
            caller.reset()
        }
        proxy.expectNoConnections()
        // Idle connections to the upstream are kept.
        #expect(blockUntil { openSockets(at: [proxy.port, upstream.port]) < before + 100 })
    }
}
