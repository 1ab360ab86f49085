// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

@Suite("nginx that demands a client's certificate")
struct ClientCertificateTests {
    @Test("knows the caller by the configured certificate, and its refusals pass as they came")
    func certificates() async throws {
        try await withBank(startsDaemon: false) { bank in
            let folder = bank.folder
            try await makeCertificates(in: folder)
            let (deep, shallow) = (Ports.next(), Ports.next())
            folder.write(Self.server(deep: deep, shallow: shallow), to: "nginx.conf")
            let nginx = try await Child.start(
                Child.Start(
                    arguments: ["/usr/sbin/nginx", "-p", folder.path, "-c", "nginx.conf", "-e", "nginx.log"],
                    environment: baseEnvironment(folder), folder: folder.path, output: folder.path(of: "nginx.out"),
                    errors: folder.path(of: "nginx.err")))
            #expect(await eventually { (try? RawConnection(port: shallow)) != nil }, "\(folder.text(of: "nginx.log"))")
            bank.configure { Self.configure(&$0, deep: deep, shallow: shallow, folder: folder) }
            try await bank.startDaemon()

            let answer = try await bank.expect("/right/", "-d", "hello", status: 200)
            #expect(answer.text == "CN=client SUCCESS POST\n")
            let chained = try await bank.expect("/chained/", status: 200)
            #expect(chained.text == "CN=chained SUCCESS GET\n")
            for (path, told) in [
                ("/none/", "No required SSL certificate was sent"), ("/stranger/", "The SSL certificate error"),
                ("/too-deep/", "The SSL certificate error"),
            ] {
                let refused = try await bank.expect(path, status: 400)
                #expect(refused.text.contains(told) && refused.code == nil, "\(path): \(refused.summary)")
                #expect(refused.field("server")?.hasPrefix("nginx") == true)
            }
            let direct = try await Curl.run(["-k", "https://localhost:\(deep)/"], in: folder)
            #expect(try await bank.curl("/none/").body == direct.body, "byte for byte")
            let untrusted = try await bank.expect("/wrong-authority/", status: 502, code: "upstream-tls")
            #expect(untrusted.detail.contains("certificate"), "\(untrusted.detail)")
            #expect(try await bank.daemon.waitForLog("unable to get local issuer certificate"))

            nginx.signal(SIGTERM)
            #expect(await nginx.waitForExit() == 0)
        }
    }

    /// One that takes a certificate over one authority between, and one that does not.
    private static func server(deep: UInt16, shallow: UInt16) -> String {
        func server(_ port: UInt16, depth: Int) -> String {
            """
            server {
                listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate server.pem; ssl_certificate_key server.key;
                ssl_client_certificate ca.pem; ssl_verify_client on; ssl_verify_depth \(depth);
                location / { return 200 "$ssl_client_s_dn $ssl_client_verify $request_method\\n"; }
            }
            """
        }
        return """
            daemon off; master_process off; pid nginx.pid; error_log nginx.log;
            events {}
            http {
                access_log off;
                client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
                \(server(deep, depth: 1))
                \(server(shallow, depth: 0))
            }

            """
    }

    private static func configure(
        _ configuration: inout BankConfiguration, deep: UInt16, shallow: UInt16, folder: Folder
    ) {
        func upstream(_ name: String, _ port: UInt16, ca: String = "ca", certificate: String? = nil) -> String {
            let file = { folder.path(of: $0) }
            let own = certificate.map { ", certificate: \(file("\($0).pem")), key: \(file("\($0).key"))" } ?? ""
            return "\(name): { url: \"https://localhost:\(port)/\", tls: { ca: \(file("\(ca).pem"))\(own) } }"
        }
        configuration.upstreams = [
            upstream("right", deep, certificate: "client"), upstream("none", deep),
            upstream("chained", deep, certificate: "chained"), upstream("stranger", deep, certificate: "stranger"),
            upstream("too-deep", shallow, certificate: "chained"),
            upstream("wrong-authority", deep, ca: "other-ca", certificate: "client"),
        ]
        let names = ["right", "none", "chained", "stranger", "too-deep", "wrong-authority"]
        let routes = names.map { "  - { path: /\($0)/, upstream: \($0), strip-prefix: true }" }
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nroutes:\n" + routes.joined(separator: "\n")
        configuration.challenges = []
        configuration.mobileFirst = []
    }
}

@Suite("A token server that demands the client's certificate")
struct CertificateTokenTests {
    /// Runs a scenario with a bank that records the token of each request, and a token server with TLS of its own.
    /// `$SERVER` is the latter's origin, and `$NAME` a file of `Tests/Scripts/certificates`.
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
