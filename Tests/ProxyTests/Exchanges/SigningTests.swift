// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Testing

@Suite("Requests that are signed as they go on the wire")
struct SigningTests {
    private static let signature = HTTPField.Name("X-Signature") ?? .authorization
    private static let host = HTTPField.Name("Host") ?? .authorization
    private static let via = HTTPField.Name("Via") ?? .authorization
    private static let key = HTTPField.Name("X-Key") ?? .authorization

    /// Signs origin, method, target and all fields, and after them the values of two; not what asks for `/unsigned`.
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

    /// By a line of our own, and by libcurl, which has the requests whose length nobody knows.
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
