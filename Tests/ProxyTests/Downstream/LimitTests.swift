// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc
import HTTPWire
import Proxy
import Testing

@Suite("Limits and timeout")
struct LimitTests {
    @Test("a head that does not arrive in time is 408, and a connection without one just ends")
    func slowHead() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let slow = try proxy.connect()
        try slow.send("GET / HT")
        let silent = try proxy.connect()
        proxy.pass(.milliseconds(9_999))
        #expect(!silent.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try silent.readAll() == "")
        proxy.pass(.milliseconds(19_999))
        #expect(!slow.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try slow.head().hasPrefix("HTTP/1.1 408 "))
        try slow.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("bytes that trickle in do not extend the time for a head")
    func tricklingHead() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let slow = try proxy.connect()
        try slow.send("G")
        for _ in 0..<29 {
            proxy.pass(.seconds(1))
            #expect(!slow.hasNews)
            try slow.send("E")
        }
        proxy.pass(.seconds(1))
        #expect(try slow.head().hasPrefix("HTTP/1.1 408 "))
    }

    @Test("a body that does not arrive in time is 408, and its transfer to the upstream ends")
    func slowBody() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
        let server = try upstream.accept()
        proxy.pass(.milliseconds(59_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try caller.head().hasPrefix("HTTP/1.1 408 "))
        try server.expectEnd()
        try caller.expectEnd()
    }

    @Test("an idle kept connection ends without a reply")
    func idle() throws {
        let upstream = try AnsweringUpstream { _, _ in answer() }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        _ = try caller.message()
        proxy.pass(.milliseconds(299_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try caller.readAll() == "")
    }

    @Test("a caller beyond the limit gets a reply that says so, and the others are served")
    func callers() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try TestProxy(.bank(port: upstream.port), limits: WorkerLimits(callers: 2))
        let kept = try [proxy.connect(), proxy.connect()]
        for caller in kept {
            try caller.send(get())
            _ = try caller.message()
        }
        let third = try proxy.connect()
        let (head, body) = try third.message()
        #expect(head.hasPrefix("HTTP/1.1 503 "))
        #expect(body.contains("\"code\":\"overloaded\""))
        third.finish()
        try third.expectEnd()
        for caller in kept {
            try caller.send(get())
            #expect(try caller.message().body == "in")
        }
    }

    @Test("an exchange beyond the limit gets a reply that says so, and its connection stays open")
    func exchanges() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port), limits: WorkerLimits(exchanges: 1))
        let first = try proxy.connect()
        try first.send(get("/1"))
        let server = try upstream.accept()
        _ = try server.head()
        let second = try proxy.connect()
        try second.send(get("/2"))
        let (head, _) = try second.message()
        #expect(head.hasPrefix("HTTP/1.1 503 "))
        #expect(head.contains("Retry-After: 1\r\n"))
        try server.send(answer())
        _ = try first.message()
        try second.send(get("/3"))
        #expect(try server.head().hasPrefix("GET /3 "))
        try server.send(answer("200 OK", "in"))
        #expect(try second.message().body == "in")
    }

    @Test(
        "what is no HTTP is 400, whatever the request before it was", arguments: ["\u{16}\u{3}\u{1}", "hello\r\n\r\n"])
    func garbage(bytes: String) throws {
        let upstream = try AnsweringUpstream { _, _ in "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try caller.head()
        try caller.send(bytes)
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 400 "))
        #expect(head.contains("Connection: close\r\n"))
        #expect(body.contains("\"code\":\"bad-request\""))
        caller.finish()
        try caller.expectEnd()
    }

    @Test("a body in broken chunks ends the exchange with 400")
    func brokenChunks() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        let server = try upstream.accept()
        _ = try server.read(until: "1\r\na\r\n")
        try caller.send("zz\r\n")
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 400 "))
        try server.expectEnd()
    }
}
