// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport

/// nginx with a certificate of its own, which puts HTTPS and HTTP/2 in front of a plain upstream.
final class TLSFront: Sendable {
    /// The port that it listens on.
    let port = Ports.next()
    /// The certificate, which is also its own authority; for `localhost` and 127.0.0.1.
    let certificate: String
    /// The key's file.
    let key: String
    /// The pin of its key, as `tls.pin` wants it.
    let pin: String
    private let folder: Folder
    private let child: Child

    /// Starts it in front of that port, with further locations as its configuration writes them.
    init(before upstreamPort: UInt16, locations: String = "") async throws {
        folder = try Folder()
        certificate = folder.path(of: "certificate.pem")
        key = folder.path(of: "key.pem")
        let made = try await Command.run(
            ["/bin/sh", "-c", Self.makeCertificate], environment: ["KEY": key, "CERTIFICATE": certificate], in: folder)
        guard made.exit == 0 else { throw ChildError(description: "no certificate: \(made.errors)") }
        pin = "sha256//" + made.output.filter { !$0.isWhitespace }
        folder.makeFolder("temporary")
        let configuration = folder.write(
            """
            daemon off; master_process off; pid \(folder.path)/pid; error_log \(folder.path)/error.log;
            events {}
            http {
                log_format via '$request_uri $http_via'; access_log \(folder.path)/access.log via; client_max_body_size 0;
                client_body_temp_path temporary/a; proxy_temp_path temporary/b; fastcgi_temp_path temporary/c;
                uwsgi_temp_path temporary/d; scgi_temp_path temporary/e;
                server {
                    listen 127.0.0.1:\(port) ssl http2; listen 127.0.0.2:\(port) ssl http2;
                    ssl_certificate \(certificate); ssl_certificate_key \(key);
                    \(locations)
                    location / {
                        proxy_pass http://127.0.0.1:\(upstreamPort); proxy_http_version 1.1;
                        add_header X-Protocol $server_protocol always;
                    }
                }
            }

            """, to: "nginx.conf")
        child = try await Child.start(
            Child.Start(
                arguments: [
                    "/usr/sbin/nginx", "-p", folder.path, "-c", configuration, "-e", "\(folder.path)/error.log",
                ],
                environment: baseEnvironment(folder), folder: folder.path, output: folder.path(of: "out"),
                errors: folder.path(of: "err")))
        let port = port
        guard await eventually({ (try? RawConnection(port: port)) != nil }) else {
            child.signal(SIGKILL)
            throw ChildError(description: "nginx: \(folder.text(of: "error.log"))\(folder.text(of: "err"))")
        }
    }

    /// The requests that came, each with its `Via`.
    var requests: [String] { folder.text(of: "access.log").split(separator: "\n").map(String.init) }

    /// Ends it.
    func stop() async { await child.end() }

    private static let makeCertificate = """
        set -e
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
            -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -keyout "$KEY" -out "$CERTIFICATE" 2>/dev/null
        openssl x509 -in "$CERTIFICATE" -noout -pubkey | openssl pkey -pubin -outform der \
            | openssl dgst -sha256 -binary | openssl base64
        """
}
