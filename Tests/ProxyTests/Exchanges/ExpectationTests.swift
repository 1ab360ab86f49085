// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

/// `Expect: 100-continue` (RFC 9110 §10.1.1): the body is sent once, and only if it is wanted.
@Suite("Callers that wait for 100")
struct ExpectationTests {
    private let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    private let go = "HTTP/1.1 100 Continue\r\n\r\n"

    @Test("the expectation goes upstream, and its 100 comes back, once")
    func passed() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        for number in 0..<3 {
            try caller.send(head)
            let server = try upstream.accept()
            #expect(try server.head().contains("Expect: 100-continue\r\n"))
            proxy.settle()
            #expect(!caller.hasNews)
            try server.send(String(repeating: go, count: number + 1))
            try caller.expect(go)
            try caller.send("hello")
            try server.expect("hello")
            try server.send(answer("200 OK", "well", "Connection: close\r\n"))
            #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 OK\r\n"))
        }
    }

    @Test("a caller that does not wait for 100 gets none")
    func impatient() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(head + "hello")
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(go)
        try server.expect("hello")
        try server.send(answer("200 OK", "well"))
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test("a caller with HTTP/1.0 gets no 100, and its body does not wait")
    func oldCaller() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
        let server = try upstream.accept()
        let (head, body) = try server.message()
        #expect(!head.contains("Expect"))
        #expect(body == "hello")
        try server.send(answer("200 OK", "well"))
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test(
        "a final answer in place of 100 sends no body and ends both connections, with Connection: close for the caller",
        arguments: ["413 Content Too Large", "401 Unauthorized", "302 Found", "200 OK"])
    func refused(status: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(head)
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer(status, "no"))
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 \(status)\r\n"))
        #expect(head.contains("\r\nConnection: close\r\n"))
        #expect(body == "no")
        try caller.expectEnd()
        // Bytes that are sent later must not be read as the body.
        let other = try proxy.connect()
        try other.send(get("/2"))
        let second = try upstream.accept()
        #expect(try second.head().hasPrefix("GET /2 "))
        #expect(try server.readAll() == "")
    }

    @Test("an upstream that does not say 100 gets the body all the same, after a second", arguments: [false, true])
    func silent(isChunked: Bool) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let framed = isChunked ? head.replacing("Content-Length: 5", with: "Transfer-Encoding: chunked") : head
        let body = isChunked ? "5\r\nhello\r\n0\r\n\r\n" : "hello"
        var server: Peer?
        for _ in 0..<2 {
            try caller.send(framed)
            let peer = try server ?? upstream.accept()
            server = peer
            #expect(try peer.head().contains("Expect: 100-continue\r\n"))
            proxy.settle()
            proxy.pass(.milliseconds(999))
            #expect(!caller.hasNews)
            proxy.pass(.milliseconds(1))
            try caller.expect(go)
            try caller.send(body)
            try peer.expect(body)
            // The 100 comes after all.
            try peer.send(go + answer("200 OK", "well"))
            #expect(try caller.message().body == "well")
        }
    }

    @Test("a final answer that begins in place of 100 ends the wait, and no body follows it")
    func slowRefusal() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(head)
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwe")
        _ = try caller.head()
        proxy.settle()
        proxy.pass(.seconds(5))
        try caller.send("hello")
        proxy.settle()
        try server.send("ll")
        #expect(try server.readAll() == "")
    }

    @Test("a login that must come first delays the body, which is sent once, after the login")
    func challenged() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, replay: ReplayTiers(memory: 1), logins: [login]))
        let caller = try proxy.connect()
        try caller.send(head.replacing("Content-Length: 5", with: "Transfer-Encoding: chunked"))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(challenge)
        #expect(try server.readAll() == "")
        let second = try upstream.accept()
        #expect(try second.head().contains("Authorization: Bearer one\r\n"))
        proxy.settle()
        #expect(!caller.hasNews)
        try second.send(go)
        try caller.expect(go)
        try caller.send("5\r\nhello\r\n0\r\n\r\n")
        try second.expect("5\r\nhello\r\n0\r\n\r\n")
        try second.send(answer("200 OK", "well"))
        #expect(try caller.message().body == "well")
    }

    @Test("an upstream that will not say 100 is asked without it")
    func expectationFailed() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(head)
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(answer("417 Expectation Failed", "no"))
        try server.expectEnd()
        let second = try upstream.accept()
        #expect(try !second.head().contains("Expect"))
        try caller.expect(go)
        try caller.send("hello")
        try second.expect("hello")
        try second.send(answer("200 OK", "well"))
        #expect(try caller.message().body == "well")
    }

    @Test("a 417 to a request without our expectation is passed on to the caller")
    func unasked() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("417 Expectation Failed", "no") }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let (head, body) = try proxy.fetch("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
        #expect(head.hasPrefix("HTTP/1.1 417 "))
        #expect(body == "no")
    }

    @Test("a request with a local reply does not make the caller send its body")
    func local() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(head.replacing("Host: localhost", with: "Host: evil.example"))
        #expect(try caller.head().hasPrefix("HTTP/1.1 421 "))
        proxy.settle()
        #expect(!upstream.hasCaller)
    }

    @Test("an unknown expectation is refused before the body, for which its caller may wait")
    func unknownAtOnce() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: wonders, 100-continue\r\n\r\n")
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 417 "))
    }

    @Test("bytes after a refused CONNECT are not read as a request")
    func connect() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n" + get("/tunnelled"))
        let answers = try caller.readAll() ?? ""
        #expect(answers.hasPrefix("HTTP/1.1 405 "))
        #expect(answers.contains("\r\nConnection: close\r\n"))
        #expect(!answers.dropFirst().contains("HTTP/1.1 "))
    }
}
