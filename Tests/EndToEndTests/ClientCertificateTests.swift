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
