// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

/// Bytes that are not a valid answer.
private let nonsense: [String] = [
    switching(to: "other"), switching(to: "echo, other"), "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\n\r\n",
    "HTTP/1.1 101 Yes\r\nUpgrade: echo\r\n\r\n",
    "HTTP/1.0 101 Yes\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\nX: y\n\n",
    "HTTP/2 101\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: " + String(repeating: "y", count: 70_000),
    "SSH-2.0-OpenSSH_9.2\r\n\r\n",
]

@Suite("Requests for another protocol")
struct UpgradeTests {
    let server: ScriptedUpstream
    let proxy: TestProxy

    init() throws {
        server = try ScriptedUpstream()
        proxy = try TestProxy(.bank(port: server.port, path: "/api/"))
    }

    @Test("an upgrade request is forwarded with its fields, and the 101 with all fields about the switch")
    func handshake() throws {
        let caller = try proxy.connect()
        try caller.send(
            get(
                "/chat?x=1",
                "Connection: keep-alive, Upgrade, X-Mine\r\nUpgrade: websocket\r\nX-Mine: 1\r\nX-Empty:\r\n"
                    + "Sec-WebSocket-Key: dGhl\r\nSec-WebSocket-Version: 13\r\n"))
        let upstream = try server.accept()
        let head = try upstream.head()
        #expect(head.hasPrefix("GET /api/chat?x=1 HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"))
        for line in [
            "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhl", "Sec-WebSocket-Version: 13",
            "Via: 1.1 countersign", "X-Empty:",
        ] {
            #expect(head.contains("\r\n\(line)\r\n"), "\(line)")
        }
        #expect(!head.contains("X-Mine"))
        #expect(!head.contains("keep-alive"))
        #expect(!head.contains("Content-Length"))
        try upstream.send(
            switching(
                to: "WebSocket",
                "Sec-WebSocket-Accept: s3pP\r\nKeep-Alive: 5\r\nContent-Length: 0\r\n"
                    + "WWW-Authenticate: Bearer\r\nSet-Cookie: a=b; Domain=127.0.0.1; Path=/api/x; Secure\r\n"))
        let answer = try caller.head()
        #expect(answer.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
        for line in [
            "Connection: Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Accept: s3pP", "Via: 1.1 countersign",
            "Set-Cookie: a=b; Path=/x", "WWW-Authenticate: Bearer",
        ] {
            #expect(answer.contains("\r\n\(line)\r\n"), "\(line)")
        }
        #expect(!answer.contains("Keep-Alive"))
        #expect(!answer.contains("Content-Length"))
        #expect(proxy.server.figures.openTunnels == 1)
    }

    @Test(
        "an upgrade to h2c is not forwarded, and the request is an ordinary one",
        arguments: ["h2c", "H2C, HTTP/2.0", "h2"])
    func http2(name: String) throws {
        let caller = try proxy.connect()
        try caller.send(
            get("/", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: \(name)\r\nHTTP2-Settings: AAMAAABk\r\n"))
        let upstream = try server.accept()
        let head = try upstream.head().lowercased()
        for word in ["upgrade", "h2", "http2"] { #expect(!head.contains(word), "\(word)") }
        try upstream.send(answer("200 OK", "plain"))
        #expect(try caller.message().body == "plain")
        try caller.send(get("/again"))
        #expect(try upstream.head().hasPrefix("GET /api/again "))
    }

    @Test(
        "an upgrade request without a possible switch is an ordinary request",
        arguments: [
            "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\nContent-Length: 2\r\n\r\nhi",
            "GET / HTTP/1.0\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: echo\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo/\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: a b\r\n\r\n",
        ])
    func ignored(request: String) throws {
        let caller = try proxy.connect()
        try caller.send(request)
        let upstream = try server.accept()
        let message = try upstream.message()
        #expect(!message.head.contains("pgrade"))
        #expect(message.body == (request.hasSuffix("hi") ? "hi" : ""))
        try upstream.send(answer("200 OK", "plain"))
        #expect(try caller.message().body == "plain")
    }

    @Test("a refusal of an upgrade is passed on unchanged, and ends the connection", arguments: [403, 426, 200, 503])
    func refused(status: Int) throws {
        let caller = try proxy.connect()
        // The bytes after it might be a request, or already the other protocol.
        try caller.send(upgrade() + get("/smuggled"))
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(answer("\(status) No", "not here", "Upgrade: other\r\nConnection: Upgrade\r\n"))
        let refusal = try caller.message()
        #expect(refusal.head.hasPrefix("HTTP/1.1 \(status) No\r\n"))
        #expect(refusal.head.contains("\r\nConnection: close\r\n"))
        #expect(refusal.head.contains("\r\nUpgrade: other\r\n") == (status == 426))
        #expect(refusal.body == "not here")
        try caller.expectEnd()
        proxy.settle()
        #expect(!server.hasCaller)
        proxy.expectNoConnections()
    }

    @Test("the body of a refused upgrade streams, in chunks or until the end", arguments: [true, false])
    func longRefusal(isChunked: Bool) throws {
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        let framing = isChunked ? "Transfer-Encoding: chunked\r\n" : ""
        try upstream.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\n\(framing)\r\n")
        let piece = String(repeating: "x", count: 100_000)
        for _ in 0..<5 { try upstream.send(isChunked ? "186a0\r\n\(piece)\r\n" : piece) }
        if isChunked { try upstream.send("0\r\nX-End: 1\r\n\r\n") } else { upstream.close() }
        let answer = try #require(try caller.readAll())
        #expect(answer.filter { $0 == "x" }.utf8.count == 500_000)
        #expect(answer.hasSuffix("0\r\n\r\n"))
    }

    @Test(
        "an invalid answer to an upgrade request is 502",
        arguments: nonsense)
    func noAnswer(response: String) throws {
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(response)
        let reply = try caller.message()
        #expect(reply.head.hasPrefix("HTTP/1.1 502 "))
        #expect(reply.body.contains("upstream-protocol"))
        try upstream.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a 101 without an upgrade request is 502, at once")
    func unasked() throws {
        let caller = try proxy.connect()
        try caller.send(get())
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(switching() + "something else")
        let reply = try caller.message()
        #expect(reply.head.hasPrefix("HTTP/1.1 502 "))
        #expect(reply.body.contains("upstream-protocol"))
        try upstream.expectEnd()
    }

    @Test(
        "an upstream that closes during an upgrade is 502",
        arguments: [("", "upstream-unreachable"), ("HTTP/1.1 101 Swi", "upstream-protocol")])
    func lost(beginning: String, code: String) throws {
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(beginning)
        upstream.close()
        let reply = try caller.message()
        #expect(reply.head.hasPrefix("HTTP/1.1 502 "))
        #expect(reply.body.contains(code))
    }

    @Test("a caller that leaves during an upgrade cancels it")
    func callerGone() throws {
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        caller.reset()
        try upstream.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("an upgrade without an answer ends with the response timeout")
    func late() throws {
        let proxy = try TestProxy(.bank(port: server.port, timeouts: .init(response: .seconds(30))))
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        proxy.pass(.milliseconds(29_999))
        #expect(!caller.hasNews)
        proxy.pass(.milliseconds(1))
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 504 "))
        try upstream.expectEnd()
    }
}

@Suite("Challenges to requests for another protocol")
struct ChallengedUpgradeTests {
    let server: ScriptedUpstream

    init() throws { server = try ScriptedUpstream() }

    @Test("a challenge to a handshake is answered, and the handshake is sent again with the session")
    func challenged() throws {
        let login = Authenticator.scripted(port: server.port) { _, _, _ in .bearer("won") }
        let proxy = try TestProxy(.bank(port: server.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(upgrade("/feed", to: "echo", "Authorization: Bearer mine\r\n") + "early")
        let first = try server.accept()
        #expect(try first.head().contains("\r\nUpgrade: echo\r\n"))
        try first.send(challenge)
        let second = try server.accept()
        let head = try second.head()
        #expect(head.hasPrefix("GET /feed "))
        #expect(head.contains("\r\nAuthorization: Bearer won\r\n"))
        #expect(!head.contains("mine"))
        #expect(head.contains("\r\nUpgrade: echo\r\n"))
        try first.expectEnd()
        proxy.settle()
        #expect(!second.hasNews, "nothing is sent before the upstream has switched")
        try second.send(switching(to: "echo", "Authentication-Info: of=won\r\n") + "welcome")
        let answer = try caller.head()
        #expect(answer.hasPrefix("HTTP/1.1 101 "))
        #expect(!answer.contains("Authentication-Info"))
        try caller.expect("welcome")
        try second.expect("early")
        #expect(proxy.log.count == 1)
    }

    @Test("a handshake whose login fails gets a local reply, and nothing is switched")
    func failed() throws {
        let login = Authenticator.scripted(port: server.port) { (_, _, _) throws(LoginFailure) in throw .rejected }
        let proxy = try TestProxy(.bank(port: server.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(challenge)
        let reply = try caller.message()
        #expect(reply.head.hasPrefix("HTTP/1.1 502 "))
        #expect(reply.body.contains("login-rejected"))
    }

    @Test("a session from a login before the request is in the first handshake")
    func ahead() throws {
        let login = Authenticator.scripted(port: server.port, isAhead: true) { _, _, _ in .bearer("won") }
        let proxy = try TestProxy(.bank(port: server.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        #expect(try upstream.head().contains("\r\nAuthorization: Bearer won\r\n"))
        try upstream.send(switching())
        #expect(try caller.head().hasPrefix("HTTP/1.1 101 "))
    }
}
