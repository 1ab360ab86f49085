// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Synchronization
import Testing

@Suite("Pages that may be a login's")
struct PageLookTests {
    private static let html = "Content-Type: text/html\r\n"

    private func proxy(_ upstream: UInt16, timeouts: UpstreamPlan.Timeouts = .init()) throws -> TestProxy {
        let login = Authenticator.scripted(port: upstream, trigger: .detected(PageDetector())) { number, _, _ in
            .bearer("t\(number)")
        }
        return try TestProxy(.bank(port: upstream, timeouts: timeouts, logins: [login]))
    }

    @Test("a login page is answered, and what comes after the login is the answer")
    func loginPage() throws {
        let upstream = try AnsweringUpstream { head, body in
            head.contains("Bearer t1")
                ? answer("200 OK", "welcome \(body)", Self.html) : answer("200 OK", "<b>LOGIN</b>", Self.html)
        }
        let proxy = try proxy(upstream.port)
        for _ in 0..<2 { #expect(try proxy.fetch(get()).body == "welcome ") }
        #expect(upstream.requests == 3)
    }

    @Test("a page that is not a login page is forwarded unchanged, short, empty, and longer than the examined part")
    func otherPages() throws {
        let long = String(repeating: "0123456789abcdef", count: 40_000)
        let upstream = try AnsweringUpstream { head, _ in
            if head.contains(" /long ") { return answer("200 OK", long, Self.html) }
            if head.contains(" /empty ") { return answer("200 OK", "", Self.html) }
            return answer("404 Not Found", "<p>no</p>", Self.html)
        }
        let proxy = try proxy(upstream.port)
        #expect(try proxy.fetch(get("/long")).body == long)
        #expect(try proxy.fetch(get("/empty")).body == "")
        #expect(try proxy.fetch(get("/other")).body == "<p>no</p>")
        #expect(proxy.log.count == 0)
    }

    @Test("a login page in answer to a new session is forwarded unchanged, and leads to no second login there")
    func again() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "LOGIN", Self.html) }
        let proxy = try proxy(upstream.port)
        for _ in 0..<3 {
            let (head, body) = try proxy.fetch(get())
            #expect(head.hasPrefix("HTTP/1.1 200 ") && body == "LOGIN")
        }
        #expect(proxy.log.count == 1 && upstream.requests == 4)
    }

    @Test("a slow page is delayed for at most two seconds")
    func trickle() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(upstream.port)
        let caller = try proxy.connect()
        try caller.send(get())
        let connection = try upstream.accept()
        _ = try connection.head()
        try connection.send("HTTP/1.1 200 OK\r\n\(Self.html)Transfer-Encoding: chunked\r\n\r\n3\r\nfoo\r\n")
        proxy.pass(.milliseconds(1999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try caller.head().hasPrefix("HTTP/1.1 200 "))
        try connection.send("3\r\nbar\r\n0\r\n\r\n")
        #expect(try caller.read(until: "0\r\n\r\n").contains("bar"))
    }

    @Test("a login that takes longer than the examination of its page succeeds")
    func slowLogin() throws {
        let upstream = try ScriptedUpstream()
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port, trigger: .detected(PageDetector())) { number, _, _ in
            await gate.pass()
            return .bearer("t\(number)")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(get())
        let first = try upstream.accept()
        _ = try first.head()
        try first.send(answer("200 OK", "<b>LOGIN</b>", Self.html))
        proxy.wait("the login") { proxy.waiters == 1 }
        // The examination of a slow page begins later on the same worker, and ends by its time limit.
        let other = try proxy.connect()
        try other.send(get("/trickles"))
        proxy.wait("the other request") { proxy.waitingRequests == 2 }
        proxy.pass(.seconds(1))
        // Uses the connection of the login page again.
        _ = try first.head()
        try first.send("HTTP/1.1 200 OK\r\n\(Self.html)Transfer-Encoding: chunked\r\n\r\n3\r\nfoo\r\n")
        proxy.pass(.seconds(2))
        #expect(try other.head().hasPrefix("HTTP/1.1 200 "))
        gate.open()
        let second = try upstream.accept()
        #expect(try second.head().contains("Authorization: Bearer t1\r\n"))
        try second.send(answer("200 OK", "welcome"))
        #expect(try caller.message().body == "welcome")
    }

    @Test("the rest of a login page is awaited until the response timeout")
    func unfinishedPage() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(upstream.port, timeouts: .init(response: .seconds(30)))
        let caller = try proxy.connect()
        try caller.send(get())
        let connection = try upstream.accept()
        _ = try connection.head()
        try connection.send("HTTP/1.1 200 OK\r\n\(Self.html)Content-Length: 1000\r\n\r\nLOGIN")
        // The examination of the page comes first.
        proxy.pass(.seconds(2))
        proxy.pass(.milliseconds(29_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 504 "))
        #expect(body.contains("\"code\":\"upstream-timeout\""))
        #expect(proxy.log.count == 0)
    }

    @Test("behind a login page that ends a session no more of a body goes up; then the request is sent whole")
    func restOfBody() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(upstream.port)
        let key = SessionKey(
            origin: Origin(scheme: .http, host: "127.0.0.1", port: upstream.port), challenge: "bank", credential: "pin")
        #expect(proxy.services.gate.adopt(key, .bearer("t0"), establishedAt: 0))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabcde")
        let first = try upstream.accept()
        #expect(try first.head().contains("Authorization: Bearer t0\r\n"))
        #expect(try first.read(count: 5) == Array("abcde".utf8))
        try first.send("HTTP/1.1 200 OK\r\n\(Self.html)Content-Length: 10\r\n\r\nLOGIN")
        // The examination of the page ends, and its rest is awaited.
        proxy.pass(.seconds(2))
        try caller.send("fghij")
        proxy.settle()
        try first.send("-----")
        #expect(!first.readByte())
        let second = try upstream.accept()
        #expect(try second.head().contains("Authorization: Bearer t1\r\n"))
        #expect(try second.read(count: 10) == Array("abcdefghij".utf8))
        try second.send(answer("200 OK", "in"))
        #expect(try caller.message().body == "in")
    }

    @Test("a stream that is not a page is not delayed")
    func stream() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(upstream.port)
        let caller = try proxy.connect()
        try caller.send(get())
        let connection = try upstream.accept()
        _ = try connection.head()
        // The clock stands still.
        try connection.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfoo\r\n")
        #expect(try caller.head().hasPrefix("HTTP/1.1 200 "))
    }

    @Test(
        "the upstream is offered no coding that cannot be undone for the look",
        arguments: [
            ("br, gzip;q=0.5", "gzip;q=0.5"), ("br", "identity"), ("gzip, deflate, zstd", "gzip, deflate"),
        ])
    func codings(offered: String, passed: String) throws {
        let seen = Mutex("")
        let upstream = try AnsweringUpstream { head, _ in
            seen.withLock { $0 = head }
            return answer("200 OK", "x")
        }
        let proxy = try proxy(upstream.port)
        _ = try proxy.fetch(get("/", "Accept-Encoding: \(offered)\r\n"))
        let line = seen.withLock { $0 }.split(separator: "\r\n").first { $0.hasPrefix("Accept-Encoding:") }
        let members = line?.dropFirst(16).split(separator: ",").map { $0.filter { $0 != " " } }
        #expect(members == passed.split(separator: ",").map { $0.filter { $0 != " " } })
    }
}

@Suite("Answers that are made to be read for long")
struct NestedAnswerTests {
    @Test(
        "a deeply nested answer of 60 KB is forwarded unchanged, and delays no other caller",
        arguments: [
            String(repeating: "[", count: 500) + Array(repeating: "[]", count: 19_000).joined(separator: ",")
                + String(repeating: "]", count: 500),
            String(repeating: "[", count: 30_000), String(repeating: #"{"a":"#, count: 10_000),
            "\"" + String(repeating: "\\u0300\\u0316", count: 4_900) + "\"",
            "\"" + String(repeating: "\u{300}\u{316}", count: 14_000) + "\"",
        ])
    func nested(value: String) throws {
        let body = #"{"challenges":{"PinCheck":"# + value + "}}"
        let upstream = try AnsweringUpstream { head, _ in
            head.contains(" /nested ")
                ? answer("401 Unauthorized", body, "Content-Type: application/json\r\n") : answer("200 OK", "in")
        }
        let login = Authenticator.scripted(
            port: upstream.port, trigger: .detected(ResourceCheckDetector(checks: ["PinCheck"]))
        ) { _, _, _ throws(LoginFailure) in throw .failed }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let callers = try (0..<4).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get("/nested")) }
        let other = try proxy.connect()
        try other.send(get("/other"))
        // Each read waits ten seconds at most; a quadratic parser took minutes for one such answer.
        #expect(try other.message().body == "in")
        for caller in callers {
            let (head, received) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 401 ") && received == body)
        }
    }
}
