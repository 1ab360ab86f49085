// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import TestSupport
import Testing

/// Requests as they reach the upstream, including libcurl's own additions.
@Suite("Requests as they go upstream")
struct ForwardedRequestTests {
    /// Returns the fields that reach the upstream for a caller's `fields`. Host and Via are checked and left out.
    private func forwarded(_ fields: String, injecting: [InjectedField] = []) throws -> [String] {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, _ in
            Session(fields: injecting)
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: injecting.isEmpty ? [] : [login]))
        let caller = try proxy.connect()
        try caller.send(get("/", fields))
        let server = try upstream.accept()
        var lines = try server.head().split(separator: "\r\n").map(String.init)
        try server.send(answer())
        _ = try caller.message()
        #expect(lines.removeFirst() == "GET / HTTP/1.1")
        #expect(lines.removeFirst() == "Host: 127.0.0.1:\(upstream.port)")
        #expect(lines.contains("Via: 1.1 countersign"))
        return lines.filter { $0 != "Via: 1.1 countersign" }
    }

    @Test("a request without fields gets none but Host and Via")
    func none() throws {
        #expect(try forwarded("") == [])
    }

    @Test("fields are forwarded in order and as spelled, also repeated and empty ones")
    func order() throws {
        let fields = "b: 2\r\nA: 1\r\nb:   3  \r\nX-Empty:\r\nUser-Agent: x\r\nCookie: a=b\r\nX: \u{e4}\r\n"
        #expect(
            try forwarded(fields) == ["b: 2", "A: 1", "b: 3", "X-Empty:", "User-Agent: x", "Cookie: a=b", "X: \u{e4}"])
    }

    @Test("hop-by-hop fields of a request are not forwarded")
    func hopByHop() throws {
        let fields = """
            Connection: keep-alive\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nTrailer: X\r
            HTTP2-Settings: AAMAAABk\r\nUpgrade: h2c\r\nProxy-Authorization: Basic x\r\nProxy-Authenticate: x\r\nX-Stays: 1\r\n
            """
        #expect(try forwarded(fields) == ["X-Stays: 1"])
    }

    @Test("fields that Connection names are not forwarded, and it cannot remove an injected field")
    func nominated() throws {
        let fields = """
            Connection: authorization, X-API-KEY, cookie, host, accept, via\r\nAuthorization: Basic own\r\nx-api-key: own\r
            Cookie: own\r\nAccept: own\r\nX-Stays: 1\r\n
            """
        let injected = [
            InjectedField(name: .authorization, value: Secret("Bearer ours")),
            InjectedField(name: try #require(HTTPField.Name("X-Api-Key")), value: Secret("ours")),
        ]
        #expect(try forwarded(fields) == ["X-Stays: 1"])
        #expect(
            try forwarded(fields, injecting: injected)
                == ["X-Stays: 1", "Authorization: Bearer ours", "X-Api-Key: ours"])
    }

    @Test("a field that a CGI program takes for an injected one, or for one of the framing, does not go")
    func underscores() throws {
        let fields = """
            X_Api_Key: evil\r\nx-api_KEY: evil\r\nContent_Length: 5\r\nTransfer_Encoding: chunked\r\nProxy_Authorization: x\r
            Keep_Alive: 5\r\nX_Stays: 1\r\nX_Forwarded_For: 1\r\n
            """
        let name = try #require(HTTPField.Name("X-Api-Key"))
        #expect(
            try forwarded(fields, injecting: [InjectedField(name: name, value: Secret("ours"))])
                == ["X_Stays: 1", "X_Forwarded_For: 1", "X-Api-Key: ours"])
        #expect(
            try forwarded(fields)
                == ["X_Api_Key: evil", "x-api_KEY: evil", "X_Stays: 1", "X_Forwarded_For: 1"])
    }

    @Test("a field that a CGI program takes for a forwarding field of ours does not go")
    func forwardingFields() throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", head) }
        let proxy = try TestProxy(.bank(port: upstream.port, forwarding: ForwardingPolicy(caller: .xForwarded)))
        let head = try proxy.fetch(
            get("/", "X_Forwarded_For: 1.2.3.4\r\nX-Forwarded_Host: evil\r\nX_FORWARDED_PROTO: https\r\nX_Other: 1\r\n")
        ).body
        #expect(!head.contains("1.2.3.4") && !head.contains("evil") && !head.contains("https"))
        #expect(head.contains("X_Other: 1\r\n") && head.contains("X-Forwarded-Proto: http\r\n"))
    }

    @Test(
        "naming a field of the framing, or of the way, changes nothing about either",
        arguments: [
            ("content-length", "Content-Length: 2\r\n", "ok", ["Content-Length: 2"]),
            (
                "transfer-encoding", "Transfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n",
                ["Transfer-Encoding: chunked"]
            ),
            ("host", "Content-Length: 2\r\n", "ok", ["Content-Length: 2"]),
            ("expect", "Expect: 100-continue\r\nContent-Length: 2\r\n", "ok", ["Content-Length: 2"]),
            ("via", "Via: 1.1 hidden\r\nContent-Length: 2\r\n", "ok", ["Content-Length: 2"]),
        ])
    func nominatedFraming(named: String, fields: String, body: String, goOn: [String]) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: \(named)\r\n\(fields)\r\n\(body)")
        let server = try upstream.accept()
        let (head, received) = try server.message()
        #expect(
            Set(head.split(separator: "\r\n").dropFirst().map(String.init))
                == Set(goOn + ["Host: 127.0.0.1:\(upstream.port)", "Via: 1.1 countersign"]))
        #expect(received == body)
        try server.send(answer())
        #expect(try caller.read(until: " ") == "HTTP/1.1 ")
    }

    @Test("Via of those before stays before ours")
    func via() throws {
        #expect(try forwarded("Via: 1.0 first, 1.1 second\r\n") == ["Via: 1.0 first, 1.1 second"])
    }

    @Test("Max-Forwards of OPTIONS is decremented, and unchanged for other methods")
    func maxForwards() throws {
        let upstream = try AnsweringUpstream { head, _ in
            answer("200 OK", "\(head.split(separator: "\r\n").filter { $0.hasPrefix("Max-") || $0.hasPrefix("OPT") })")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, path: "/api/"))
        func fetch(_ method: String, _ value: String, _ target: String = "/") throws -> (head: String, body: String) {
            try proxy.fetch("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: \(value)\r\n\r\n")
        }
        #expect(try fetch("OPTIONS", "007").body == #"["OPTIONS /api/ HTTP/1.1", "Max-Forwards: 6"]"#)
        #expect(try fetch("OPTIONS", "1", "*").body == #"["OPTIONS * HTTP/1.1", "Max-Forwards: 0"]"#)
        #expect(try fetch("OPTIONS", "1", "http://localhost").body == #"["OPTIONS * HTTP/1.1", "Max-Forwards: 0"]"#)
        #expect(
            try fetch("OPTIONS", "1", "http://localhost/").body == #"["OPTIONS /api/ HTTP/1.1", "Max-Forwards: 0"]"#)
        #expect(
            try fetch("OPTIONS", "18446744073709551617").body
                == #"["OPTIONS /api/ HTTP/1.1", "Max-Forwards: 18446744073709551614"]"#)
        #expect(try fetch("GET", "0, x").body == #"["Max-Forwards: 0, x"]"#)
        let own = try fetch("OPTIONS", "0")
        #expect(own.head.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(own.head.contains("\r\nContent-Length: 0\r\n"))
        #expect(own.head.contains("\r\nAllow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"))
        #expect(!own.head.contains("Content-Type"))
        #expect(upstream.requests == 6)
    }

    @Test("a loop through the proxy itself ends with 508")
    func loop() throws {
        let port = Ports.next()
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: port), plan: .proxy())],
                upstreams: [.bank(port: port)]
            ))
        let reply = try proxy.fetch(get("/"))
        #expect(reply.head.hasPrefix("HTTP/1.1 508 Loop Detected\r\n"))
        #expect(
            reply.head.contains(
                "Proxy-Status: countersign; error=proxy_loop_detected; details=\"bad-request\"; exchange_id="))
        #expect(reply.body.contains("come through countersign 8 times"))
    }

    @Test("a caller's Accept fields are forwarded unchanged, and none is added")
    func accept() throws {
        #expect(
            try forwarded("Accept: text/html\r\nAccept-Encoding: br\r\n") == [
                "Accept: text/html", "Accept-Encoding: br",
            ])
    }

    @Test("any method is forwarded unchanged, in any order on one connection, with its body or without")
    func methods() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        var server: Peer?
        let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "get"]
        var random = Shuffled(methods: methods)
        for _ in 0..<80 {
            let (method, body) = random.next()
            let framing = body.map { "Content-Length: \($0.utf8.count)\r\n" } ?? ""
            try caller.send("\(method) /x HTTP/1.1\r\nHost: localhost\r\n\(framing)\r\n\(body ?? "")")
            let peer = try server ?? upstream.accept()
            server = peer
            let lines = try peer.head().split(separator: "\r\n").map(String.init)
            #expect(lines[0] == "\(method) /x HTTP/1.1")
            #expect(
                lines.filter { $0.hasPrefix("Content-Length") || $0.hasPrefix("Transfer") }
                    == framing.split(separator: "\r\n").map(String.init))
            #expect(
                !lines.contains { $0.hasPrefix("Expect") || $0.hasPrefix("Accept") || $0.hasPrefix("Content-Type") })
            #expect(String(decoding: try peer.read(count: body?.utf8.count ?? 0), as: UTF8.self) == body ?? "")
            try peer.send(method == "HEAD" ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" : answer("200 OK", "ok"))
            if method == "HEAD" { _ = try caller.head() } else { #expect(try caller.message().body == "ok") }
        }
    }

    /// Sequence of methods with and without bodies, in which each follows each.
    private struct Shuffled {
        let methods: [String]
        var step = 0

        mutating func next() -> (method: String, body: String?) {
            step += 1
            let method = methods[(step * step + step / 3) % methods.count]
            let bodies: [String?] = [nil, "", "hello", nil, String(repeating: "x", count: 3000)]
            return (method, method == "HEAD" ? nil : bodies[(step * 7 + step / 5) % bodies.count])
        }
    }
}
