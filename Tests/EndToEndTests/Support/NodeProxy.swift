// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

/// The proxy of several nodes with its shipped configuration: between the callers and the upstream, with countersign
/// beside it.
final class NodeProxy: Sendable {
    /// The proxies for which a configuration is shipped.
    enum Kind: String, Sendable, CaseIterable {
        case envoy = "envoy/envoy.yaml"
        case haproxy = "haproxy/haproxy.cfg"
        case nginx = "nginx/countersign.conf"
    }

    /// The port for callers.
    let port: UInt16
    private let child: Child
    private let folder: Folder

    /// Starts it with the addresses of a scenario in place of those of the shipped configuration. With `isWhole` it
    /// also has the parts that the configuration shows commented out.
    init(_ kind: Kind, at addresses: NodeAddresses, isWhole: Bool) async throws {
        folder = try Folder()
        port = addresses.callers
        let text = Repository.text(of: "config/\(kind.rawValue)")
        let shipped = addresses.put(into: isWhole ? text.replacing("#error_page", with: "error_page") : text)
        child = try await Child.start(
            Child.Start(
                arguments: try await Self.command(kind, shipped, in: folder), environment: baseEnvironment(folder),
                folder: folder.path, output: folder.path(of: "out"), errors: folder.path(of: "err")))
        let port = port
        guard await eventually({ (try? RawConnection(port: port)) != nil }) else {
            child.signal(9)
            throw ChildError(description: "no \(kind): \(log)")
        }
    }

    /// The log and the output of the proxy.
    var log: String { folder.text(of: "error.log") + folder.text(of: "err") + folder.text(of: "out") }

    /// Requests a path, under the name that callers use.
    func curl(_ path: String, _ options: String...) async throws -> Curl {
        try await Curl.run(
            options + ["-H", "Host: bank.example.com", "http://127.0.0.1:\(port)\(path)"], in: folder)
    }

    /// Ends it.
    func stop() async {
        await child.end()
        folder.removeAll()
    }

    private static func command(_ kind: Kind, _ shipped: String, in folder: Folder) async throws -> [String] {
        switch kind {
        case .envoy:
            let found = try await Command.run([Repository.path(of: "Tests/Scripts/envoy")], in: folder)
            try #require(found.exit == 0, "\(found.errors)")
            let program = found.output.split(separator: "\n").last.map(String.init) ?? ""
            let file = folder.write(shipped, to: "envoy.yaml")
            return [program, "-c", file, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"]
        case .haproxy:
            let sessionStore = Repository.text(of: "config/haproxy/countersign-spoe.conf")
            folder.write(
                sessionStore.replacing("groups ask\n", with: "groups ask\n log global\n"), to: "countersign-spoe.conf")
            let part = shipped.replacing("/etc/haproxy", with: folder.path)
                .replacing("global\n", with: "global\n log stdout format raw daemon\n")
                .replacing("defaults\n", with: "defaults\n log global\n option httplog\n")
            return ["/usr/sbin/haproxy", "-db", "-f", folder.write(part, to: "haproxy.cfg")]
        case .nginx:
            let part = shipped.replacing("/run/nginx-countersign", with: folder.path(of: "cache"))
            folder.write(part, to: "countersign.conf")
            folder.makeFolder("temporary")
            let file = folder.write(
                """
                daemon off; master_process off; pid \(folder.path)/pid; error_log \(folder.path)/error.log;
                events {}
                http {
                    access_log off; client_body_temp_path temporary/a; proxy_temp_path temporary/b;
                    fastcgi_temp_path temporary/c; uwsgi_temp_path temporary/d; scgi_temp_path temporary/e;
                    include \(folder.path)/countersign.conf;
                }

                """, to: "nginx.conf")
            return ["/usr/sbin/nginx", "-p", folder.path, "-c", file, "-e", "\(folder.path)/error.log"]
        }
    }
}

/// The addresses in a scenario with a proxy in front of several nodes.
struct NodeAddresses: Sendable {
    let callers = Ports.next()
    let authority = Ports.next()
    let ordinary: UInt16
    let upstream: UInt16

    /// Returns the text with these ports in place of those that the shipped files have.
    func put(into text: String) -> String {
        var text = text
        for (shipped, port) in [(8000, callers), (8080, ordinary), (8081, authority), (9000, upstream)] {
            text = text.replacing("127.0.0.1:\(shipped)", with: "127.0.0.1:\(port)")
            text = text.replacing("port_value: \(shipped)", with: "port_value: \(port)")
        }
        // The other proxy runs as this process does.
        return text.replacing("users: [www-data]", with: "users: [\"\(getuid())\"]")
    }
}

/// Runs a scenario with the bank's upstream, the daemon with `config/auth-requests.yaml`, and the proxy in front of both.
func withNodes(
    _ kind: NodeProxy.Kind, secret: String = "demo:secret+%", isWhole: Bool = false,
    changing: @Sendable (String) -> String = { $0 }, _ scenario: (Bank, NodeProxy) async throws -> Void
) async throws {
    try await withBank(startsDaemon: false) { bank in
        let addresses = NodeAddresses(ordinary: bank.port, upstream: bank.upstream.port)
        bank.configure { configuration in
            configuration.whole = addresses.put(into: changing(Repository.text(of: "config/auth-requests.yaml")))
            configuration.environment = [
                "COUNTERSIGN_BANK__CLIENT_ID": "demo", "COUNTERSIGN_BANK__CLIENT_SECRET": secret,
                "COUNTERSIGN_BANK__USERNAME": "ann", "COUNTERSIGN_BANK__PASSWORD": "demo",
            ]
        }
        try await bank.startDaemon()
        let proxy = try await NodeProxy(kind, at: addresses, isWhole: isWhole)
        do {
            try await scenario(bank, proxy)
            await proxy.stop()
        } catch {
            await proxy.stop()
            throw error
        }
    }
}
