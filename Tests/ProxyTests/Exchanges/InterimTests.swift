// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@Suite("Interim responses")
struct InterimTests {
    private let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    private let passedHints =
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nVia: 1.1 countersign\r\n\r\n"
    private let final =
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nDate: Sat, 21 Nov 2026 16:00:00 GMT\r\nVia: 1.1 countersign\r\n\r\nwell"

    @Test("interim responses pass in order, each at once, before the final one")
    func passed() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        for _ in 0..<3 {
            try caller.send(get())
            let server = try upstream.accept()
            _ = try server.head()
            try server.send("HTTP/1.1 102 Processing\r\n\r\n")
            try caller.expect("HTTP/1.1 102 Processing\r\nVia: 1.1 countersign\r\n\r\n")
            try server.send(hints + "HTTP/1.1 199 \r\nX-A: 1\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            try caller.expect(
                passedHints + "HTTP/1.1 199 \r\nX-A: 1\r\nVia: 1.1 countersign\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            try server.send(hints + answer("200 OK", "well", "Connection: close\r\n"))
            try caller.expect(passedHints + final)
        }
    }

    @Test("a caller with HTTP/1.0 gets no interim response")
    func oldCaller() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("GET / HTTP/1.0\r\n\r\n")
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(hints + answer("200 OK", "well"))
        #expect(try caller.head().hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test("interim responses carry no fields of a connection, body, session or login")
    func stripped() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        let fields = [
            "Connection: close, x-hop\r\nX-Hop: 1", "Content-Length: 5", "Keep-Alive: 5", "Set-Cookie: a=b",
            "WWW-Authenticate: Basic", "Authentication-Info: x", "Trailer: X", "Upgrade: x",
        ]
        for field in fields {
            try server.send("HTTP/1.1 103 Early Hints\r\n\(field)\r\nX-Stays: 1\r\n\r\n")
            try caller.expect("HTTP/1.1 103 Early Hints\r\nX-Stays: 1\r\nVia: 1.1 countersign\r\n\r\n")
        }
        try server.send(answer("200 OK", "well"))
        try caller.expect(final)
    }

    @Test("interim responses before an answered challenge do no harm")
    func beforeChallenge() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=b\r\nWWW-Authenticate: Bearer\r\n\r\n" + challenge)
        #expect(try server.head().contains("Authorization: Bearer one\r\n"))
        try server.send(hints + answer("200 OK", "well"))
        try caller.expect("HTTP/1.1 103 Early Hints\r\nVia: 1.1 countersign\r\n\r\n" + passedHints + final)
    }

    @Test(
        "too many, too long or invalid interim responses, and an unrequested switch, are 502",
        arguments: [
            String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 65),
            String(
                repeating: "HTTP/1.1 103 Early Hints\r\nX: \(String(repeating: "x", count: 9_000))\r\n\r\n", count: 8),
            "HTTP/1.1 103 Early Hints\r\nX : 1\r\n\r\n", "HTTP/1.1 103 Early Hints\nX: 1\n\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "HTTP/1.1 100 Continue\r\nX: a\rb\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\rX: 1\r\n\r\n",
        ])
    func refused(interims: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send(interims)
        let text = try caller.read(until: "\"code\":\"upstream-protocol\"")
        #expect(text.contains("HTTP/1.1 502 Bad Gateway\r\n"))
        #expect(!text.contains("X : 1") && !text.contains("HTTP/1.1 101"))
        try server.expectEnd()
    }
}
