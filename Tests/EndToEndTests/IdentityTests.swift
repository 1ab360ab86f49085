// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

/// Callers are programs of two real users of this machine, `nobody` and `daemon`, and of root.
@Suite("Credentials by the caller's user", .enabled(if: getuid() == 0))
struct IdentityTests {
    private static let challenge = """
        name: corp
        upstream: corp
        scheme: ntlm
        credential: { by-user: { nobody: ann, daemon: bob } }
        """

    private func withServer(
        _ challenge: String = Self.challenge, _ body: (_ bank: Bank, _ server: ScriptServer) async throws -> Void
    ) async throws {
        try await withBank(startsDaemon: false) { bank in
            let port = Ports.next()
            let server = try await ScriptServer("ntlm-upstream", ["\(port)"], in: bank.folder)
            bank.configure {
                $0.upstreams = ["corp: { url: 'http://127.0.0.1:\(port)/' }"]
                $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: corp"
                $0.challenges = [challenge]
                for name in ["ANN", "BOB"] {
                    $0.environment["COUNTERSIGN_\(name)__USERNAME"] = "TEST\\\(name.lowercased())"
                    $0.environment["COUNTERSIGN_\(name)__PASSWORD"] = "right"
                }
            }
            try await bank.startDaemon()
            try await body(bank, server)
            await server.stop()
        }
    }

    /// One process that sends several requests over one connection, as that user; the users that the server took them for.
    private func ask(
        as user: String, _ bank: Bank, times: Int = 3, over socket: String? = nil
    ) async throws -> [String] {
        let urls = (0..<times).flatMap { ["-o", "/dev/null", "http://127.0.0.1:\(bank.port)/\($0)"] }
        let way = socket.map { ["--unix-socket", $0] } ?? []
        let run = try await Command.run(
            ["/usr/bin/setpriv", "--clear-groups", "--reuid", user, "/usr/bin/curl", "-q", "-s", "--noproxy", "*"]
                + ["--max-time", "200", "-w", "%{http_code} %header{x-user}\\n"] + way + urls, in: bank.folder)
        return run.output.split(separator: "\n").map(String.init)
    }

    @Test("NTLM: each user's connections are that user's own, with 20 programs of two users at once")
    func connectionBound() async throws {
        try await withServer { bank, server in
            let users = [("nobody", "ann"), ("daemon", "bob")]
            try await withThrowingTaskGroup(of: (name: String, answers: [String]).self) { group in
                for number in 0..<20 {
                    let (user, name) = users[number % 2]
                    group.addTask { (name, try await ask(as: user, bank)) }
                }
                for try await (name, answers) in group {
                    #expect(answers == Array(repeating: "200 \(name)", count: 3))
                }
            }
            // Nobody is named who is neither of the two.
            let others = try await bank.expect("/", status: 403, code: "caller-not-allowed")
            #expect(others.text.contains("by caller"))
            let lines = server.output.split(separator: "\n").filter { $0.hasPrefix("arrived ") }
            #expect(lines.count == 60)
        }
    }

    @Test("over a Unix socket, and with a credential for all others; the commands name each credential")
    func unixSocket() async throws {
        try await withServer(
            """
            name: corp
            upstream: corp
            scheme: ntlm
            credential: { by-user: { "65534": ann, "*": bob } }
            """
        ) { bank, _ in
            let socket = "/tmp/countersign-identity-\(bank.port).sock"
            defer { _ = unsafe unlink(socket) }
            await bank.stopDaemon()
            bank.configure {
                $0.listeners = "address: unix:\(socket)?mode=0666\nupstream: corp"
            }
            try await bank.startDaemon()
            for _ in 0..<2 {
                #expect(try await ask(as: "nobody", bank, over: socket) == Array(repeating: "200 ann", count: 3))
                #expect(try await ask(as: "daemon", bank, over: socket) == Array(repeating: "200 bob", count: 3))
                #expect(try await ask(as: "root", bank, times: 1, over: socket) == ["200 bob"])
            }
            let list = try await bank.countersign("sessions")
            #expect(list.output.contains("corp/corp by ann: held"))
            #expect(list.output.contains("corp/corp by bob: held"))
            let explained = try await bank.countersign("explain", bank.url("/"))
            #expect(explained.output.contains("corp: ntlm, credential by user: 65534 ann, others bob"), "\(explained)")
            let json = try await bank.countersign("explain", "--json", bank.url("/"))
            #expect(json.output.contains(#""by_user":{"65534":"ann"}"#), "\(json)")
            // A login for each.
            let login = try await bank.countersign("login", "corp")
            #expect(login.output.contains("corp by ann at http://"))
            #expect(login.output.contains("corp by bob at http://"))
        }
    }

    @Test("a user who is not on this machine is told at the start")
    func unknownUser() async throws {
        try await withBank(startsDaemon: false) { bank in
            bank.configure {
                $0.challenges = [
                    "name: c\nupstream: bank\nscheme: basic\ncredential: { by-user: { no-such-user: ann } }"
                ]
            }
            let run = try await bank.countersign("serve")
            #expect(run.exit == 78)
            #expect(run.errors.contains("challenge c: there is no user no-such-user on this machine"), "\(run)")
        }
    }
}
