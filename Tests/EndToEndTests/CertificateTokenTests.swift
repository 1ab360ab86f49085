// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

@Suite("A token server that demands the client's certificate")
struct CertificateTokenTests {
    /// A bank that tells which token each request brings, and a token server with TLS of its own. `$SERVER` is the latter's origin,
    /// and `$NAME` a file of `Tests/Scripts/certificates`.
    private func withServer(
        _ challenges: [String], _ body: (_ bank: Bank, _ server: ScriptServer) async throws -> Void
    ) async throws {
        try await withBank(startsDaemon: false) { bank in
            try await makeCertificates(in: bank.folder)
            let port = Ports.next()
            let server = try await ScriptServer(
                "fakes/certificate-tokens", ["\(port)", bank.folder.path], in: bank.folder)
            bank.upstream.override { request in
                if request.path.hasPrefix("/.well-known/oauth-protected-resource") {
                    let own = "http://127.0.0.1:\(bank.upstream.port)/"
                    return .text(
                        200, #"{"resource":"\#(own)","authorization_servers":["https://localhost:\#(port)"]}"#,
                        fields: [("Content-Type", "application/json")])
                }
                guard let token = request.field("authorization")?.dropFirst("Bearer ".count) else {
                    return .text(401, "who?\n", fields: [("WWW-Authenticate", "Bearer")])
                }
                return .text(200, String(token))
            }
            bank.configure {
                $0.mobileFirst = []
                $0.listeners = """
                    address: 127.0.0.1:${PROXY_PORT}
                    routes:
                      - { path: /other, upstream: bank }
                      - { path: /, upstream: server }
                    """
                $0.challenges = challenges.map {
                    $0.replacing("$SERVER", with: "https://localhost:\(port)").replacing(
                        "$FILES", with: bank.folder.path)
                }
                $0.environment = [
                    "COUNTERSIGN_ONE__CLIENT_ID": "first", "COUNTERSIGN_TWO__CLIENT_ID": "second",
                    "COUNTERSIGN_TWO__CLIENT_SECRET": "s3cret",
                ]
            }
            do {
                try await bank.startDaemon()
                try await body(bank, server)
            } catch {
                await server.stop()
                throw error
            }
            await server.stop()
        }
    }

    private static func challenge(_ name: String, at upstream: String, _ credential: String, _ token: String) -> String
    {
        """
        name: \(name)
        upstream: \(upstream)
        scheme: bearer
        credential: \(credential)
        token: { grant: client-credentials, \(token) }
        """
    }

    private func files(_ certificate: String) -> String {
        "tls: { ca: $FILES/ca.pem, certificate: $FILES/\(certificate).pem, key: $FILES/\(certificate).key }"
    }

    @Test("each login has its own certificate, and no other login's connection, at one server")
    func certificates() async throws {
        try await withServer([
            Self.challenge(
                "one", at: "server", "one",
                "url: $SERVER/token, revocation: $SERVER/revoke, client-auth: tls, \(files("client"))"),
            Self.challenge("two", at: "bank", "two", "url: $SERVER/token, client-auth: tls, \(files("renewed"))"),
        ]) { bank, server in
            for _ in 0..<2 {
                let (one, two) = (
                    try await bank.expect("/a", status: 200), try await bank.expect("/other", status: 200)
                )
                #expect(one.text == "client.first" && two.text == "renewed.second")
            }
            let dropped = try await bank.admin("/sessions/drop?name=one", "-X", "POST")
            #expect(dropped.status == 200, "\(dropped.summary)")
            #expect(await eventually { server.output.contains("POST /revoke client ") })
            let lines = server.output.split(separator: "\n").dropFirst().map(String.init)
            #expect(
                Set(lines) == [
                    "POST /token client client_id,grant_type", "POST /token renewed client_id,grant_type",
                    "POST /revoke client client_id,token,token_type_hint",
                ], "\(lines)")
            let doctor = try await bank.countersign("doctor")
            #expect(doctor.output.contains("login at https://localhost"), "\(doctor)")
            #expect(!doctor.output.contains("self-signed") && !doctor.output.contains("is not trusted"), "\(doctor)")
        }
    }

    @Test("metadata and the alias of the token endpoint are asked with the certificate")
    func alias() async throws {
        try await withServer([
            Self.challenge("one", at: "server", "one", "issuers: $SERVER, client-auth: tls, \(files("client"))")
        ]) { bank, server in
            let answer = try await bank.expect("/a", status: 200)
            #expect(answer.text == "client.first")
            let lines = server.output.split(separator: "\n").dropFirst().map(String.init)
            #expect(
                lines == [
                    "GET /.well-known/oauth-authorization-server client -",
                    "POST /token client client_id,grant_type,resource",
                ], "\(lines)")
        }
    }

    @Test(
        "without a certificate, with a stranger's, and under another authority there is no token, and the caller is told"
    )
    func refused() async throws {
        for tls in [
            "tls: { ca: $FILES/ca.pem }",
            "tls: { ca: $FILES/ca.pem, certificate: $FILES/stranger.pem, key: $FILES/stranger.key }",
            "tls: { ca: $FILES/other-ca.pem, certificate: $FILES/client.pem, key: $FILES/client.key }",
        ] {
            try await withServer([Self.challenge("one", at: "server", "two", "url: $SERVER/token, \(tls)")]) {
                bank, server in
                let answer = try await bank.expect("/a", status: 502)
                #expect(["login-failed", "upstream-tls"].contains(answer.code), "\(tls): \(answer.summary)")
                #expect(!answer.text.contains("s3cret") && !server.output.contains("POST"))
            }
        }
    }
}
