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
            // No other user is named.
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

@Suite("countersign explain --user")
struct ExplainUserTests {
    private func explain(_ path: String, user: String?, users: String = "") async throws -> (exit: Int32, JSON) {
        let folder = try Folder()
        folder.write(
            """
            listeners:
              - address: 127.0.0.1:8080
                upstream: common
                \(users)
                routes:
                  - { path: /pay/, users: ["4001"], upstream: pay }
            upstreams: { common: { url: "https://common.example/" }, pay: { url: "https://pay.example/" } }
            challenges:
              - name: corp
                upstream: common
                scheme: basic
                credential: { by-user: { "4001": ann, root: admin } }
            """, to: "c.yaml")
        let who = user.map { ["--user", $0] } ?? []
        let run = try await Command.run(
            [Binary.path, "explain", "--config", folder.path(of: "c.yaml"), "http://127.0.0.1:8080\(path)", "--json"]
                + who,
            in: folder)
        return (run.exit, try #require(JSON(parsing: Array(run.output.utf8)), "\(run)"))
    }

    private func credential(_ json: JSON) -> JSON? { handler(json)?["credential"] }

    private func handler(_ json: JSON) -> JSON? {
        if case .array(let handlers)? = json["handlers"] { handlers.first } else { nil }
    }

    @Test("takes the routes of that user")
    func routes() async throws {
        #expect(try await explain("/pay/x", user: "4001").1["upstream"]?.string == "pay")
        // The first matching route decides: a refused caller gets neither another route nor the listener's own
        // upstream.
        let refused = try await explain("/pay/x", user: "4002")
        #expect(refused.exit == 1 && refused.1["upstream"] == .null)
        #expect(
            refused.1["reason"]?.string
                == "routes[0] matches, but its `users` do not include this user (403, caller-not-allowed)")
        #expect(
            try await explain("/pay/x", user: nil).1["reason"]?.string
                == "routes[0] matches, but its `users` restrict who may use it: give --user (403, caller-not-allowed)")
        #expect(
            try await explain("/x/..;/pay/x", user: "4001").1["reason"]?.string?.contains("400, bad-request") == true)
    }

    @Test("names the credential of that user, by number and by name, and tells who has none")
    func credentials() async throws {
        #expect(credential(try await explain("/x", user: "4001").1)?.string == "ann")
        #expect(credential(try await explain("/x", user: "root").1)?.string == "admin")
        let nobody = try await explain("/x", user: "4002").1
        #expect(credential(nobody) == .null)
        #expect(handler(nobody)?["kind"]?.string?.contains("no credential for this caller") == true)
        // Without a user, all of them are listed.
        #expect(handler(try await explain("/x", user: nil).1)?["by_user"]?["4001"]?.string == "ann")
    }

    @Test("tells whom the listener does not let in")
    func listener() async throws {
        let refused = try await explain("/x", user: "4002", users: "users: [\"4001\"]")
        #expect(refused.exit == 1)
        #expect(refused.1["reason"]?.string?.contains("403, caller-not-allowed") == true)
        #expect(try await explain("/x", user: "4001", users: "users: [\"4001\"]").exit == 0)
    }

    @Test("wants a user that there is")
    func unknown() async throws {
        let folder = try Folder()
        folder.write(
            "listeners: [{ address: 127.0.0.1:1, upstream: u }]\nupstreams: { u: { url: \"http://u/\" } }", to: "c")
        let run = try await Command.countersign(
            "explain", "--config", folder.path(of: "c"), "http://127.0.0.1:1/", "--user", "no-such-user", in: folder)
        #expect(run.exit == 64)
        #expect(run.errors.contains("there is no user no-such-user"))
    }
}
