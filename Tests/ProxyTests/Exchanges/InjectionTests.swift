// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import HTTPTypes
import Proxy
import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Values of a credential on their way through the proxy")
struct InjectionTests {
    private static let secret = "s3cr3t-key"

    private func login(port: UInt16, body: Bool = false) -> Authenticator {
        let values = RequestInjections(
            parameters: body ? [] : [.init(name: Array("key".utf8), value: Secret(Self.secret))],
            path: Secret("/bot\(Self.secret)"),
            members: body ? [BodyMember(names: [Array("key".utf8)], value: Secret(Self.secret))] : [],
            secrets: [Secret(Self.secret)])
        let key = SessionKey(
            origin: Origin(scheme: .http, host: "127.0.0.1", port: port), challenge: "key", credential: "key")
        return Authenticator(
            name: "key", trigger: .ahead, isAhead: true, key: key, credentials: [], isShareable: false,
            changesBodies: body
        ) { _ in Rendering(values: values) }
    }

    private struct Rendering: SessionLogin {
        let values: RequestInjections

        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            var session = Session()
            session.injections = values
            return session
        }
    }

    @Test("an upstream with HTTP/2 gets the same target and body as one with HTTP/1.1")
    func http2() throws {
        let upstream = try H2Upstream()
        let values = RequestInjections(
            parameters: [.init(name: Array("key".utf8), value: Secret(Self.secret))],
            members: [BodyMember(names: [Array("key".utf8)], value: Secret(Self.secret))])
        let key = SessionKey(
            origin: Origin(scheme: .https, host: "127.0.0.1", port: upstream.port), challenge: "key", credential: "key")
        let login = Authenticator(
            name: "key", trigger: .ahead, isAhead: true, key: key, credentials: [], isShareable: false,
            changesBodies: true
        ) { _ in Rendering(values: values) }
        let proxy = try TestProxy(upstream.plan(version: .http2, logins: [login]))
        let body = try proxy.fetch(
            """
            POST /echo?key=mine&a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
            Content-Length: 7\r\n\r\n{"n":1}
            """
        ).body
        #expect(body.contains(#"[":path", "/echo?a&key=s3cr3t-key"]"#), "\(body)")
        #expect(body.contains(#"["content-length", "26"]"#) && body.contains(#""length": 26"#), "\(body)")
    }

    @Test("a caller that waits for 100 gets it before its body is read, and the upstream a body of known length")
    func expectation() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(port: upstream.port, body: true)]))
        let caller = try proxy.connect()
        try caller.send(
            """
            POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\
            Transfer-Encoding: chunked\r\n\r\n
            """)
        #expect(try caller.head().hasPrefix("HTTP/1.1 100 "))
        #expect(!upstream.hasCaller)
        try caller.send("2\r\n{}\r\n0\r\n\r\n")
        let server = try upstream.accept()
        let head = try server.head()
        #expect(head.hasPrefix("POST /bots3cr3t-key/x HTTP/1.1\r\n"))
        #expect(head.contains("\r\nContent-Length: 20\r\n") && !head.contains("chunked"))
        if head.contains("Expect:") { try server.send("HTTP/1.1 100 Continue\r\n\r\n") }
        try server.expect(#"{"key":"s3cr3t-key"}"#)
        try server.send(answer("200 OK", "in"))
        #expect(try caller.message().body == "in")
    }

    @Test("a chunked body with trailers stays chunked when values are injected, so that the trailers are kept")
    func requestTrailers() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(port: upstream.port, body: true)]))
        let caller = try proxy.connect()
        try caller.send(
            """
            POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTrailer: X-Sum\r\n\
            Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n
            """)
        let server = try upstream.accept()
        #expect(try server.head().contains("\r\nTransfer-Encoding: chunked\r\n"))
        try server.expect("14\r\n{\"key\":\"s3cr3t-key\"}\r\n0\r\nX-Sum: 1\r\n\r\n")
        try server.send(answer("200 OK", "in"))
        #expect(try caller.message().body == "in")
    }

    @Test("the trailers of a response are removed if one of them has the secret")
    func responseTrailers() throws {
        for (trailer, wanted) in [
            ("X-Sum: 1", "2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n"), ("X-Sum: s3cr3t%2Dkey", "2\r\nok\r\n0\r\n\r\n"),
        ] {
            let upstream = try ScriptedUpstream()
            let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(port: upstream.port)]))
            let caller = try proxy.connect()
            try caller.send(get("/", "TE: trailers\r\nConnection: TE\r\n"))
            let server = try upstream.accept()
            _ = try server.head()
            try server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\(trailer)\r\n\r\n")
            _ = try caller.head()
            #expect(try caller.read(until: "\r\n\r\n") == wanted)
        }
    }

    @Test("a redirect to the upstream's own address leads back through the proxy, and is sent with the values again")
    func followed() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(port: upstream.port)]))
        let caller = try proxy.connect()
        try caller.send(get("/a"))
        let server = try upstream.accept()
        #expect(try server.head().hasPrefix("GET /bots3cr3t-key/a?key=s3cr3t-key HTTP/1.1\r\n"))
        let address = "http://127.0.0.1:\(upstream.port)/bots3cr3t-key/b?x=1&key=s3cr3t-key"
        try server.send(answer("302 Found", "", "Location: \(address)\r\n"))
        let head = try caller.message().head
        #expect(head.contains("\r\nLocation: http://localhost/b?x=1\r\n"))
        try caller.send(get("/b?x=1"))
        #expect(try server.head().hasPrefix("GET /bots3cr3t-key/b?x=1&key=s3cr3t-key HTTP/1.1\r\n"))
        try server.send(answer("200 OK", "in"))
        #expect(try caller.message().body == "in")
    }
}

@Suite("Requests that are signed as they go on the wire")
struct SigningTests {
    private static let signature = HTTPField.Name("X-Signature") ?? .authorization
    private static let host = HTTPField.Name("Host") ?? .authorization
    private static let via = HTTPField.Name("Via") ?? .authorization
    private static let key = HTTPField.Name("X-Key") ?? .authorization

    /// Signer of origin, method, target, all fields, and the values of two fields. It refuses to sign `/unsigned`.
    private final class Signer: RequestSigner {
        let names = [SigningTests.signature]

        func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
            if request.target.hasSuffix("/unsigned") {
                throw LoginFailure(.failed, challenge: "bank", detail: "It cannot be signed.")
            }
            var lines = ["\(request.origin) \(request.method) \(request.target)"]
            request.fields?.forEach { lines.append("\(SigningTests.text($0)): \(SigningTests.text($1))") }
            let (host, via) = (
                request.fields?.values(of: SigningTests.host) ?? [], request.fields?.values(of: SigningTests.via) ?? []
            )
            lines += host + via
            let value = Secret(SigningTests.hexadecimal(lines))
            return SignedFields([InjectedField(name: SigningTests.signature, value: value)])
        }

        func learn(status: Int, fields: HTTPFields, target: String) {}
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
    }

    private static func hexadecimal(_ lines: [String]) -> String {
        lines.joined(separator: "\n").utf8.map { String($0, radix: 16) }.joined(separator: ".")
    }

    private func proxy(_ upstream: ScriptedUpstream) throws -> TestProxy {
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, _ in
            var session = Session(fields: [InjectedField(name: Self.key, value: Secret("k"))])
            session.signer = Signer()
            return session
        }
        return try TestProxy(.bank(port: upstream.port, path: "/api/", logins: [login]))
    }

    /// Requests of the proxy's own HTTP/1.1 client, and of libcurl, which sends those of unknown length.
    @Test(
        "a signer sees what the upstream sees: rewritten, removed, injected and merged fields",
        arguments: [
            ("GET", "", ""), ("POST", "Content-Length: 2\r\n", "hi"),
            ("POST", "Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"),
        ])
    func whole(method: String, framing: String, body: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(upstream)
        let caller = try proxy.connect()
        try caller.send(
            "\(method) /a?b HTTP/1.1\r\nHost: localhost\r\nVia: 1.1 before\r\nX-Empty:\r\nX-Signature: forged\r\n"
                + "Connection: x-two\r\nX-Two: gone\r\nCookie: a=1\r\nCookie: b=2\r\n\(framing)\r\n\(body)")
        let server = try upstream.accept()
        let lines = try server.head().split(separator: "\r\n").map(String.init)
        let framed = ["Content-Length:", "Transfer-Encoding:", "Expect:", "X-Signature:"]
        let fields = lines.dropFirst().filter { line in !framed.contains { line.hasPrefix($0) } }
        #expect(fields.contains("Host: 127.0.0.1:\(upstream.port)") && fields.contains("Via: 1.1 countersign"))
        #expect(fields.contains("Cookie: a=1; b=2") && fields.contains("X-Key: k"))
        #expect(!fields.contains { $0.hasPrefix("X-Two") || $0.hasPrefix("Connection") })
        let expected =
            ["http://127.0.0.1:\(upstream.port) \(method) /api/a?b"]
            + fields.map { $0 == "X-Empty:" ? "X-Empty: " : $0 }
            + ["127.0.0.1:\(upstream.port)", "1.1 before", "1.1 countersign"]
        let signatures = lines.filter { $0.hasPrefix("X-Signature:") }
        #expect(signatures == ["X-Signature: \(Self.hexadecimal(expected))"])
        try server.send(answer("200 OK", "in"))
        #expect(try caller.message().body == "in")
    }

    @Test("a request that cannot be signed is not sent, and the next one is")
    func unsigned() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(upstream)
        let caller = try proxy.connect()
        for round in 0..<3 {
            try caller.send(get("/unsigned"))
            let (head, body) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 502 ") && body.contains("It cannot be signed."))
            try caller.send(get("/\(round)"))
            let server = try upstream.accept()
            #expect(try server.head().hasPrefix("GET /api/\(round) "))
            try server.send(answer("200 OK", "\(round)", "Connection: close\r\n"))
            #expect(try caller.message().body == "\(round)")
        }
    }
}
