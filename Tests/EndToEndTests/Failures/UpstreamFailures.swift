// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

/// Upstreams that cannot be reached, that fail the TLS handshake, or whose answer is not HTTP.
enum UpstreamFailures {
    /// Returns the answer to each request, by its name in the list.
    static func answers() async throws -> [String: Curl] {
        var answers: [String: Curl] = [:]
        let servers = try await TLSServers()
        let full = try FullListener()
        let silent = try RawListener()
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.challenges = []
        let addresses = servers.addresses.merging([
            "dns": (url: "http://no-such-host.invalid/", more: ""),
            "refused": (url: "http://127.0.0.1:\(Ports.next())/", more: ""),
            "unreachable": (url: "http://224.0.0.1/", more: ""),
            "connect-timeout": (url: "http://127.0.0.1:\(full.port)/", more: "timeouts: { connect: 300ms }"),
            "tls-timeout": (url: "https://127.0.0.1:\(silent.port)/", more: "timeouts: { connect: 300ms }"),
            "response-timeout": (url: "http://127.0.0.1:${UPSTREAM_PORT}/", more: "timeouts: { response: 300ms }"),
            "no-answer": (url: "http://127.0.0.1:${UPSTREAM_PORT}/", more: ""),
            "cut-head": (url: "http://127.0.0.1:${UPSTREAM_PORT}/", more: ""),
            "malformed-head": (url: "http://127.0.0.1:${UPSTREAM_PORT}/", more: ""),
            // The proxy itself.
            "no-tls": (url: "https://127.0.0.1:${PROXY_PORT}/", more: ""),
        ]) { $1 }
        configuration.upstreams = addresses.map { name, address in
            "\(name):\n  url: \"\(address.url)\"" + (address.more.isEmpty ? "" : "\n  \(address.more)")
        }
        let routes = addresses.keys.map { "  - { path: /\($0)/, upstream: \($0) }" }
        configuration.listeners = (["address: 127.0.0.1:${PROXY_PORT}", "routes:"] + routes).joined(separator: "\n")
        try await withBank(configuration) { bank in
            bank.upstream.override { request in
                switch request.path.split(separator: "/").first {
                case "response-timeout": with { $0.delivery.hangs = true }
                case "no-answer": with { $0.delivery.cutsAfter = 0 }
                case "cut-head": with { $0.delivery.cutsAfter = 20 }
                case "malformed-head": with { $0.body = .raw(Array("HTTP/1.1 200 OK\r\nNo field\r\n\r\n".utf8)) }
                default: nil
                }
            }
            for name in addresses.keys { answers[name] = try await bank.curl("/\(name)/x") }
        }
        await servers.stop()
        withExtendedLifetime((full, silent)) {}
        return answers
    }

    private static func with(_ change: (inout FakeResponse) -> Void) -> FakeResponse {
        var response = FakeResponse(200, body: Array("well".utf8))
        change(&response)
        return response
    }
}

/// TLS servers of one nginx, each with a faulty certificate.
final class TLSServers: Sendable {
    /// A port at which the same nginx speaks no TLS.
    let plainPort = Ports.next()
    /// Their addresses, and further lines of the configuration for each.
    let addresses: [String: (url: String, more: String)]
    private let folder: Folder
    private let nginx: Child

    init() async throws {
        folder = try Folder()
        try await makeCertificates(in: folder)
        let ca = "ca: \(folder.path(of: "ca.pem"))"
        let kinds = [
            ("tls-name", "elsewhere", ""), ("tls-expired", "expired", ""), ("tls-not-yet-valid", "future", ""),
            ("tls-unknown-authority", "stranger", ""), ("tls-self-signed", "self", ""),
            ("tls-pin", "server", #", pin: "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=""#),
            ("tls-version", "server", #", minimum: "1.3""#),
        ]
        var servers = ""
        var addresses: [String: (url: String, more: String)] = [:]
        for (name, certificate, more) in kinds {
            let port = Ports.next()
            let key = ["stranger", "self"].contains(certificate) ? certificate : "server"
            servers += """
                server {
                    listen 127.0.0.1:\(port) ssl; ssl_protocols TLSv1.2;
                    ssl_certificate \(certificate).pem; ssl_certificate_key \(key).key;
                }

                """
            addresses[name] = ("https://localhost:\(port)/", "tls: { \(ca)\(more) }")
        }
        self.addresses = addresses
        let configuration = folder.write(
            """
            daemon off; master_process off; pid pid; error_log error.log;
            events {}
            http {
            access_log off; client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d;
            scgi_temp_path e;
            \(servers)
            server { listen 127.0.0.1:\(plainPort); }
            }

            """, to: "nginx.conf")
        nginx = try await Child.start(
            Child.Start(
                arguments: ["/usr/sbin/nginx", "-p", folder.path, "-c", configuration, "-e", "error.log"],
                environment: baseEnvironment(folder), folder: folder.path, output: folder.path(of: "out"),
                errors: folder.path(of: "err")))
        let ports = addresses.values.compactMap { $0.url.split(separator: ":").last.flatMap { UInt16($0.dropLast()) } }
        let areUp = await eventually { ports.allSatisfy { (try? RawConnection(port: $0)) != nil } }
        guard areUp else {
            nginx.signal(SIGKILL)
            throw ChildError(description: "nginx: \(folder.text(of: "error.log"))\(folder.text(of: "err"))")
        }
    }

    func stop() async { await nginx.end() }
}

/// A port at which connections wait for ever: its queue is full, and none is accepted.
final class FullListener: Sendable {
    let port: UInt16
    private let listener: RawListener
    private let waiting: [Int32]

    init() throws {
        listener = try RawListener()
        port = listener.port
        // One more than the argument of `listen`, as the kernel adds one.
        waiting = (0..<4).map { _ in
            socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        }
        for descriptor in waiting { _ = unsafe withLoopback(port: port) { unsafe connect(descriptor, $0, $1) } }
    }

    deinit { for descriptor in waiting { close(descriptor) } }
}
