// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import FoundationEssentials
internal import Glibc
import Testing

@Suite("The output of commands as JSON")
struct CommandOutputTests {
    /// Returns the keys of the first object of each command, from `docs/commands.md`.
    private static func documented() throws -> [String: Set<String>] {
        let repository = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let text = try String(contentsOfFile: "/\(repository)/docs/commands.md", encoding: .utf8)
        let section = try #require(text.split(separator: "## Output as JSON").last)
        var keys: [String: Set<String>] = [:]
        for line in section.split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
            let name = cells[0].filter { $0 != "`" }.split(separator: " ").joined(separator: " ")
            let first = cells[2].prefix { $0 != ";" && $0 != ":" }
            keys[name] = Set(
                first.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                    .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) })
        }
        return keys
    }

    @Test("each command prints the keys that docs/commands.md lists, and no others")
    func keys() async throws {
        let documented = try Self.documented()
        #expect(documented.count == 14)
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            let commands: [String: [String]] = [
                "check": [], "doctor": ["bank"], "explain": [bank.url("/balance")], "login": ["bank-pin"],
                "reload": [], "sessions drop": ["--all"], "status": [], "unlatch": ["bank-pin"], "wait": [],
            ]
            for (name, arguments) in commands.sorted(by: { $0.key < $1.key }) {
                let words = name.split(separator: " ").map(String.init) + arguments
                let run = try await Command.run(
                    [Binary.path] + words + ["--json", "--config", bank.folder.path(of: "countersign.yaml")],
                    environment: bank.environment, in: bank.folder)
                // No latch is closed here.
                #expect(run.exit == (name == "unlatch" ? 69 : 0), "\(name) \(run)")
                guard name != "unlatch" else { continue }
                let value = try #require(JSON(parsing: Array(run.output.utf8)), "\(name) \(run)")
                var object: JSON? = value
                if case .array(let list) = value { object = list.first }
                let keys = try #require(object?.members, "\(name) \(run)").map(\.name)
                #expect(Set(keys) == documented[name], "\(name)")
            }
            let match = try await Command.run(
                [Binary.path, "match", "http://a/b", "http://a/*", "--json"], in: bank.folder)
            #expect(match.output == "{\"pattern\":\"http://a/*\"}\n")
        }
    }
}

@Suite("A command that cannot do its work")
struct CommandFailureTests {
    @Test("says in one line that the state cannot be used, and ends with 69", arguments: ["login", "serve"])
    func unusableState(command: String) async throws {
        let folder = try Folder()
        folder.makeFolder("state")
        folder.write("readable by all, so it may be known to others", to: "state/key", mode: 0o644)
        folder.write(
            BankConfiguration().text(port: 8080, upstreamPort: 8081, folder: folder), to: "countersign.yaml")
        let run = try await Command.countersign(
            command, "--config", folder.path(of: "countersign.yaml"), in: folder)
        #expect(run.exit == 69)
        let lines = run.errors.split(separator: "\n").filter { !$0.contains(": warning: ") }
        #expect(lines.count == 1)
        #expect(lines.first?.hasPrefix("countersign: \(folder.path(of: "state/key"))") == true)
    }
}

@Suite("countersign reload")
struct ReloadCommandTests {
    @Test("waits until the new configuration is in force, and tells a refusal by its exit")
    func reload() async throws {
        try await withBank { bank in
            bank.configure {
                $0.listeners = """
                    address: 127.0.0.1:${PROXY_PORT}
                    upstream: bank
                    routes: [{ path: /new/, upstream: open, strip-prefix: true }]
                    """
                $0.upstreams = ["open:\n  url: http://127.0.0.1:${UPSTREAM_PORT}/open/"]
            }
            #expect(try await bank.countersign("reload").exit == 0)
            try await bank.expect("/new/x", status: 200)

            let file = bank.folder.write("listeners: [ {\n", to: "countersign.yaml")
            let refused = try await bank.countersign("reload", "--process", "\(bank.daemon.child.pid)")
            #expect(refused.exit == 78)
            #expect(
                refused.errors.hasPrefix("countersign: reload refused, the old configuration stays in force: \(file):"))
            try await bank.expect("/new/x", status: 200)
            // The file has errors, and status needs none of it.
            let status = try await bank.countersign("status")
            #expect(status.exit == 0 && status.output.contains("file      \(file)\n"), "\(status)")
            #expect(status.output.contains("reload    refused ") && status.output.contains("stays in force: \(file):"))
            let ready = try await bank.admin("/readyz")
            #expect(ready.status == 200 && ready.text.contains("\"configuration\":\"reload refused\""), "\(ready.text)")

            bank.configure { _ in }
            #expect(try await bank.countersign("reload").exit == 0)
        }
    }

    @Test("reaches a daemon that is process 1, as in a container")
    func firstProcess() async throws {
        if getuid() != 0 { try Test.cancel("only root may make a namespace of processes") }
        let folder = try Folder()
        folder.makeFolder("run")
        let socket = folder.path(of: "caller.sock")
        let file = folder.write(
            "listeners: [{ address: \"unix:\(socket)\", upstream: a }]\nupstreams: { a: \"http://127.0.0.1:9/\" }\n",
            to: "countersign.yaml")
        // The command asks again until the daemon is there; the daemon ends only if a reload has succeeded.
        let run = try await Command.run(
            [
                "unshare", "--pid", "--fork", "--mount-proc", "sh", "-c",
                "(until $0 reload --config $1 2>/dev/null; do :; done; kill -TERM 1) & exec $0 serve --config $1",
                Binary.path, file,
            ], in: folder)
        #expect(run.exit == 0, "\(run)")
    }

    @Test("finds no daemon where none runs")
    func nobody() async throws {
        try await withBank { bank in
            let other = try await bank.countersign("reload", "--process", "\(getpid())")
            #expect(other.exit == 69)
            #expect(other.errors.contains("is not a running daemon"))
            #expect(await bank.stopDaemon() == 0)
            let none = try await bank.countersign("reload")
            #expect(none.exit == 69)
            #expect(none.errors.contains("no daemon runs with"))
            #expect(try await bank.countersign("reload", "--timeout", "soon").exit == 64)
        }
    }

    @Test("keeps no watchdog waiting, however often it is asked for")
    func watchdog() async throws {
        let manager = try NotifySocket()
        var configuration = BankConfiguration()
        configuration.environment["NOTIFY_SOCKET"] = manager.path
        configuration.environment["WATCHDOG_USEC"] = "400000"
        try await withBank(configuration) { bank in
            let daemon = try bank.daemon.child
            // Less than a beat is between two of them, until two beats have come.
            let beats = await eventually {
                daemon.signal(SIGHUP)
                let lines = manager.lines
                return lines.count { $0 == "WATCHDOG=1" } >= 2 && lines.count { $0 == "RELOADING=1" } >= 5
            }
            #expect(beats)
        }
    }

    @Test("names the keys that take effect at the next start only")
    func keysOfStart() async throws {
        try await withBank { bank in
            bank.configure {
                $0.workers = 3
                $0.more.append("limits: { waiters: 7 }")
            }
            #expect(try await bank.countersign("reload").exit == 0)
            let log = try bank.daemon.log
            #expect(log.contains("takes effect at the next start"))
            #expect(log.contains(#""key":"workers""#))
            #expect(log.contains(#""key":"limits.waiters""#))
        }
    }
}
