// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
internal import Testing

@Suite("An upstream over TLS, served by nginx")
struct TLSTests {
    @Test("HTTP/2 by ALPN, HTTP/1.1 where asked for, and each failed handshake a 502 that names TLS")
    func handshakes() async throws {
        try await Slots.run(run)
    }

    private func run() async throws {
        let folder = try Folder()
        let (tls, port) = (Ports.next(), Ports.next())
        let certificate = try await Command.run(
            [
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
            ], in: folder)
        #expect(certificate.exit == 0)
        folder.write(server(port: tls, folder: folder), to: "nginx.conf")
        let nginx = try await Child.start(
            Child.Start(
                arguments: ["nginx", "-p", folder.path, "-c", "nginx.conf"], environment: baseEnvironment(folder),
                folder: folder.path, output: folder.path(of: "nginx.out"), errors: folder.path(of: "nginx.err")))
        folder.write(configuration(port: port, tls: tls, folder: folder), to: "countersign.yaml")
        let daemon = try await DaemonProcess.start(in: folder)
        let isUp = await eventually { (try? RawConnection(port: tls)) != nil }
        #expect(isUp)

        let local = "http://127.0.0.1:\(port)"
        #expect(try await Curl.run(["\(local)/a?b=%2F"], in: folder).text == "HTTP/2.0 GET /x/a?b=%2F\n")
        #expect(try await Curl.run(["-X", "POST", "\(local)/a"], in: folder).text == "HTTP/2.0 POST /x/a\n")
        // Which version, is libcurl's.
        #expect(try await Curl.run(["-d", "hello", "\(local)/a"], in: folder).text.hasSuffix(" POST /x/a\n"))
        #expect(try await Curl.run(["\(local)/one/a"], in: folder).text == "HTTP/1.1 GET /one/a\n")
        for path in ["/unknown/", "/pinned/", "/named/", "/plain/"] {
            let refused = try await Curl.run(["\(local)\(path)"], in: folder)
            #expect(refused.status == 502, "\(path)")
            #expect(refused.text.contains(#""code":"upstream-tls""#), "\(path): \(refused.text)")
        }
        #expect(await daemon.waitForLog("self-signed certificate"))

        #expect(await daemon.child.end() == 0)
        nginx.signal(SIGTERM)
        #expect(await nginx.waitForExit() == 0)
    }

    private func server(port: UInt16, folder: Folder) -> String {
        """
        daemon off;
        worker_processes 1;
        pid nginx.pid;
        error_log nginx.log;
        events { worker_connections 64; }
        http {
            access_log off;
            client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
            server {
                listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate cert.pem;
                ssl_certificate_key key.pem;
                location / { return 200 "$server_protocol $request_method $request_uri\\n"; }
            }
        }
        """
    }

    private func configuration(port: UInt16, tls: UInt16, folder: Folder) -> String {
        let ca = "ca: \(folder.path(of: "cert.pem"))"
        return """
            listeners:
              - address: 127.0.0.1:\(port)
                upstream: two
                routes:
                  - { path: /one/, upstream: one }
                  - { path: /unknown/, upstream: unknown }
                  - { path: /pinned/, upstream: pinned }
                  - { path: /named/, upstream: named }
                  - { path: /plain/, upstream: plain }
            upstreams:
              two: { url: "https://localhost:\(tls)/x/", tls: { \(ca) } }
              one: { url: "https://localhost:\(tls)/", http: "1.1", tls: { \(ca) } }
              unknown: { url: "https://localhost:\(tls)/" }
              named: { url: "https://127.0.0.1:\(tls)/", tls: { \(ca) } }
              pinned:
                url: https://localhost:\(tls)/
                tls: { \(ca), pin: "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" }
              # A peer that speaks no TLS: the proxy's own listener.
              plain: { url: "https://localhost:\(port)/", tls: { \(ca) } }
            log: { format: json }
            """
    }
}

@Suite("A MobileFirst server behind TLS")
struct TLSLoginTests {
    /// Runs a scenario with the bank at `https`, with these lines of `tls` and this `http`; `$CERTIFICATE` and `$PIN`
    /// are the front's.
    private func withTLS(
        host: String = "127.0.0.1", _ tls: String, http: String = "auto", _ scenario: (Bank) async throws -> Void
    ) async throws {
        try await withBank(startsDaemon: false) { bank in
            let front = try await TLSFront(before: bank.upstream.port)
            let lines = tls.replacing("$CERTIFICATE", with: front.certificate).replacing("$PIN", with: front.pin)
            let server = "https://\(host):\(front.port)"
            bank.configure {
                $0.upstreams = [
                    """
                    secure:
                      url: \(server)/mfp/api/adapters/bank/
                      http: \(http)
                      tls: \(lines)
                      mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
                    """
                ]
                $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: secure"
                $0.challenges = [BankConfiguration.pinChallenge.replacing("upstream: bank", with: "upstream: secure")]
            }
            do {
                try await bank.startDaemon()
                try await scenario(bank)
            } catch {
                await front.stop()
                throw error
            }
            await front.stop()
        }
    }

    @Test(
        "is logged in to and served, over the version of HTTP that was asked for",
        arguments: [
            ("auto", "HTTP/2.0"), ("1.1", "HTTP/1.1"), ("2", "HTTP/2.0"),
        ])
    func served(version: String, expected: String) async throws {
        try await withTLS("{ ca: $CERTIFICATE }", http: version) { bank in
            let answer = try await bank.expect("/balance", status: 200)
            #expect(answer.field("x-protocol") == expected)
            let body = pattern(200_000)
            let file = bank.folder.write(body, to: "body")
            try await bank.expect("/transfer", "-d", "{}", status: 201)
            let receipt = try await bank.expect("/transfer", "--data-binary", "@\(file)", status: 201)
            #expect(receipt.json?["sha256"]?.string == sha256(body))
            let large = try await bank.expect("/bytes?count=3000000", status: 200)
            #expect(large.body.count == 3_000_000)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("gets no secret, and the caller is told, where the certificate is not trusted")
    func untrusted() async throws {
        try await withTLS("{}") { bank in
            let answer = try await bank.expect("/balance", status: 502, code: "upstream-tls")
            #expect(answer.field("proxy-status")?.contains("tls") == true)
            #expect(bank.record.transcript.isEmpty)
        }
    }

    @Test("is served by the right pin, and not by another")
    func pins() async throws {
        try await withTLS("{ ca: $CERTIFICATE, pin: $PIN }") { bank in
            try await bank.expect("/balance", status: 200)
        }
        let other = "sha256//" + String(repeating: "A", count: 43) + "="
        try await withTLS("{ ca: $CERTIFICATE, pin: \"\(other)\" }") { bank in
            try await bank.expect("/balance", status: 502, code: "upstream-tls")
            #expect(bank.record.transcript.isEmpty)
        }
    }

    @Test("gets no secret where its certificate is for another name")
    func otherName() async throws {
        try await withTLS(host: "127.0.0.2", "{ ca: $CERTIFICATE }") { bank in
            try await bank.expect("/balance", status: 502, code: "upstream-tls")
            #expect(bank.record.transcript.isEmpty)
        }
    }
}
