// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@Suite("Answers that come before the request's body is complete")
struct EarlyAnswerTests {
    private let upload = "POST /up HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"

    @Test("a refusal goes to the caller at once, and both connections end")
    func refused() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(upload + "begin")
        let server = try upstream.accept()
        _ = try server.read(until: "begin")
        try server.send(answer("413 Content Too Large", "too long"))
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 413 "))
        #expect(body == "too long")
        try server.expectEnd()
        try caller.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a refusal in chunks is completed although the caller sends nothing more")
    func refusedInChunks() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(upload + "begin")
        let server = try upstream.accept()
        _ = try server.read(until: "begin")
        try server.send("HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n")
        _ = try caller.head()
        try caller.expect("2\r\nno\r\n0\r\n\r\n")
        try caller.expectEnd()
    }

    @Test(
        "an answer that ends with its connection is completed although the caller sends nothing more",
        arguments: ["403 No\r\nConnection: close", "403 No", "200 OK\r\nConnection: close", "200 OK"],
        ["Content-Length: 1000", "Transfer-Encoding: chunked"])
    func untilEnd(head: String, framing: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        let begin = framing.hasPrefix("T") ? "5\r\nbegin\r\n" : "begin"
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\n\(framing)\r\n\r\n\(begin)")
        let server = try upstream.accept()
        _ = try server.read(until: "begin")
        try server.send("HTTP/1.1 \(head)\r\n\r\nfor")
        _ = try caller.head()
        try caller.expect("3\r\nfor\r\n")
        try server.send("ever")
        try caller.expect("4\r\never\r\n")
        server.close()
        try caller.expect("0\r\n\r\n")
        try caller.expectEnd()
        caller.close()
        proxy.expectNoConnections()
    }

    @Test(
        "a refusal that ends with its connection is complete when its body is",
        arguments: ["Content-Length: 2\r\n\r\nno", "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"])
    func refusedAndClosed(rest: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(upload + "begin")
        let server = try upstream.accept()
        _ = try server.read(until: "begin")
        try server.send("HTTP/1.1 403 No\r\nConnection: close\r\n\(rest)")
        #expect(try caller.head().contains("Connection: close\r\n"))
        try caller.expect(rest.components(after: "\r\n\r\n"))
        try caller.expectEnd()
        try server.expectEnd()
    }

    @Test("an early success is delivered completely at once, and the body is sent to its end")
    func earlySuccess() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello")
        let server = try upstream.accept()
        _ = try server.read(until: "hello")
        try server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
        #expect(try !caller.head().contains("Connection: close"))
        try caller.expect("2\r\nok\r\n0\r\n\r\n")
        try caller.send("world")
        try server.expect("world")
        try caller.send(get("/2"))
        #expect(try server.head().hasPrefix("GET /2 "))
        try server.send(answer("200 OK", "two"))
        #expect(try caller.message().body == "two")
    }

    @Test("a caller that stops sending after an early success gets the answer all the same", arguments: [true, false])
    func earlySuccessBrokenOff(breaksRules: Bool) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        let server = try upstream.accept()
        _ = try server.read(until: "hello")
        try server.send(answer("200 OK", "ok"))
        if breaksRules { try caller.send("broken") }
        caller.finish()
        #expect(try caller.readAll()?.hasSuffix("\r\n\r\nok") == true)
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a challenge that ends its connection in the middle of an upload is answered")
    func challengedAndClosed() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello")
        let server = try upstream.accept()
        _ = try server.read(until: "hello")
        try server.send("HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\n\r\ndenied")
        server.close()
        let second = try upstream.accept()
        #expect(try second.head().contains("Authorization: Bearer one\r\n"))
        try caller.send("world")
        try second.expect("helloworld")
        try second.send(answer("200 OK", "done"))
        #expect(try caller.message().body == "done")
    }

    @Test("a caller that goes on sending after a refusal still reads it")
    func refusedWhileSending() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\nbegin")
        let server = try upstream.accept()
        _ = try server.read(until: "begin")
        try server.send(answer("413 Content Too Large", "too long"))
        try server.expectEnd()
        // The proxy discards these bytes for a while, so that no reset destroys the answer.
        try? caller.send([UInt8](repeating: 0x62, count: 500_000))
        #expect(try caller.message().body == "too long")
    }

    @Test("a challenge is answered while the body still comes, and the body is sent whole")
    func challenged() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        let body = String((0..<1000).map { Character(UnicodeScalar(UInt8(0x30 + $0 % 64))) })
        try caller.send(upload + body.prefix(300))
        let server = try upstream.accept()
        _ = try server.read(until: String(body.prefix(300)))
        try server.send(challenge)
        // The caller sends nothing more until its request is repeated.
        let second = try upstream.accept()
        #expect(try second.head().contains("Authorization: Bearer one\r\n"))
        try caller.send(String(body.dropFirst(300)))
        #expect(String(decoding: try second.read(count: 1000), as: UTF8.self) == body)
        try second.send(answer("200 OK", "done"))
        #expect(try caller.message().body == "done")
    }

    @Test("a body that goes on during a login is sent whole, however long it grows meanwhile")
    func challengedWhileSending() throws {
        let upstream = try ScriptedUpstream()
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in
            await gate.pass()
            return .bearer("one")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, replay: ReplayTiers(memory: 1000), logins: [login]))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n")
        let server = try upstream.accept()
        _ = try server.read(until: "begin")
        try server.send(challenge)
        proxy.wait("the login") { proxy.log.count == 1 }
        try caller.send("2710\r\n\(String(repeating: "x", count: 10_000))\r\n0\r\n\r\n")
        // What was sent is read before the login ends: the proxy answers another caller after it.
        _ = try? proxy.fetch("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        gate.open()
        let second = try upstream.accept()
        _ = try second.head()
        let chunks = try second.read(until: "\r\n0\r\n\r\n")
        #expect(chunks.filter { $0 == "x" }.count == 10_000)
        #expect(chunks.contains("begin"))
        try second.send(answer("200 OK", "done"))
        #expect(try caller.message().body == "done")
    }

    @Test("a challenge after more of the body than is kept fails the exchange, with a remedy")
    func tooLong() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, replay: ReplayTiers(memory: 1000), logins: [login]))
        let caller = try proxy.connect()
        try caller.send(
            "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2710\r\n"
                + String(repeating: "x", count: 10_000))
        let server = try upstream.accept()
        _ = try server.head()
        _ = try server.read(count: 10_000)
        try server.send(challenge)
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 413 "))
        #expect(body.contains("body-not-replayable"))
        proxy.wait("the login for the next request") { proxy.log.finished == 1 }
        proxy.settle()
    }

    @Test("an early successful answer is passed on while the body continues")
    func early() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello")
        let server = try upstream.accept()
        _ = try server.read(until: "hello")
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nea")
        #expect(try caller.head().hasPrefix("HTTP/1.1 200 OK\r\n"))
        try caller.expect("ea")
        try caller.send("world")
        try server.expect("world")
        try server.send("rl")
        try caller.expect("rl")
    }

}

extension String {
    /// Returns the text after `separator`.
    fileprivate func components(after separator: String) -> String {
        let bytes = Array(utf8)
        guard let range = bytes.firstRange(of: Array(separator.utf8)) else { return "" }
        return String(decoding: bytes[range.upperBound...], as: UTF8.self)
    }
}
