// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("Three nodes that share sessions through a real Redis")
struct SharedSessionNodeTests {
    @Test(
        "log in once in all, cold and with a hundred requests each at once, and hold the session through ten seconds without the session store"
    )
    func oneLogin() async throws {
        try await NodeScenario().run("one-login")
    }

    @Test("lose the one that logs in, and log in once more within the life of its lease")
    func leaderKilled() async throws {
        try await NodeScenario().run("leader-killed")
    }

    @Test("send a rejected credential once, and let it be sent again when one of them is told so")
    func rejected() async throws {
        var scenario = NodeScenario()
        scenario.pins = ["9999", "9999", "9999"]
        try await scenario.run("rejected")
    }

    @Test("end a session for all when one of them is told so, and win it once again")
    func dropped() async throws {
        try await NodeScenario().run("dropped")
    }

    @Test("a node without the shared key does not start, and says how to make one")
    func noKey() async throws {
        try await NodeScenario().run("no-key")
    }

    @Test("log in each for itself where the session store was never there, and share from then on")
    func storeLate() async throws {
        try await NodeScenario().run("store-late")
    }
}

/// Sharing as the hardened units allow it, with a real Redis, under a real systemd.
@Suite("Services that share a session")
struct SharedSessionServiceTests {
    private static func configuration(listener: String) -> String {
        """
        sessions: { store: "redis://127.0.0.1:6379", key: shared, spread: 1s }
        \(SystemdScenario.bank(listener: listener))
        """
    }

    @Test("use what one of them has won, outlive the session store and give it back what it lost")
    func sharing() async throws {
        var scenario = SystemdScenario()
        scenario.configuration = Self.configuration(listener: "127.0.0.1:8080")
        scenario.files["/etc/countersign/other.yaml"] = Self.configuration(listener: "127.0.0.1:8086")
        scenario.files["/etc/countersign/secrets/shared.key"] = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
        scenario.dropIn = """
            [Service]
            LoadCredential=bank-pin.pin:/etc/countersign/secrets/bank-pin.pin
            LoadCredential=shared.key:/etc/countersign/secrets/shared.key

            """
        try await scenario.run("shared-session")
    }
}

/// A scenario with three nodes in front of the demonstration's upstream. Each is in a network namespace of its own, and
/// they share their sessions through a real Redis.
struct NodeScenario {
    /// The PIN that each node has; the right one is 1234.
    var pins = ["1234", "1234", "1234"]
    /// Further lines of the section `sessions`.
    var sessions: [String] = []
    /// The time limit, in seconds.
    var limit = 90

    /// Runs `Tests/Scenarios/shared-sessions/NAME.sh`, which must end with `step end`. If this machine allows no such namespaces the test is
    /// cancelled.
    func run(_ name: String) async throws {
        let folder = try Folder()
        for (index, pin) in pins.enumerated() {
            let node = "node\(index + 1)"
            folder.makeFolder(node)
            folder.write(configuration, to: "\(node)/countersign.yaml")
            folder.write(
                "COUNTERSIGN_BANK_PIN__PIN=\(pin)\nCOUNTERSIGN_SHARED__KEY=\(String(repeating: "node_key_", count: 5))\n",
                to: "\(node)/environment")
        }
        let run = try await Slots.run {
            try await Repository.script(
                "node-namespaces",
                ["\(pins.count)", "bash", Repository.path(of: "Tests/Scenarios/shared-sessions/\(name).sh")],
                environment: [
                    "COUNTERSIGN": Binary.path, "SCRIPTS": Repository.path(of: "Tests/Scripts"),
                    "NODES": "\(pins.count)",
                ], in: folder)
        }
        if run.exit == 77 { try Test.cancel("\(run.errors)") }
        let logs =
            run.exit == 0
            ? ""
            : pins.indices.map { "node \($0 + 1): \(folder.text(of: "node\($0 + 1)/log"))" }
                .joined(separator: "\n")
        #expect(run.exit == 0, "\(run.output)\(run.errors)\(logs)")
        #expect(run.output.hasSuffix("step: end\n"))
    }

    private var configuration: String {
        """
        listeners:
          - address: 127.0.0.1:8080
            upstream: bank
        upstreams:
          bank:
            url: http://10.9.0.1:8082/mfp/api/adapters/bank/
            plaintext: allow
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
        credentials: { sources: [env] }
        sessions:
          store: redis://10.9.0.1:6379
          key: shared
          lease: 5s
          spread: 1s
        \(sessions.map { "  \($0)\n" }.joined())challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }
        log: { level: debug, format: json }

        """
    }
}

@Suite("Processes with one state directory")
struct SharedStateTests {
    /// Requests a path of an upstream by four `countersign run` at once; returns what their commands printed.
    private func run(_ path: String, at bank: Bank) async throws -> [String] {
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let run = try await bank.countersign(
                        "run", "--env", "BASE={listener}", "--", "sh", "-c",
                        "curl -sS -w ' status %{http_code}' $BASE\(path); exit 0")
                    return run.output + run.errors
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test("that start at once with a wrong value send it once between them, and each says so")
    func wrongPIN() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration, startsDaemon: false) { bank in
            bank.upstream.faults.add(Fault(.delay(.milliseconds(400)), at: .preauthorize))
            let outputs = try await run("/balance", at: bank)
            #expect(outputs.count { $0.contains("login-rejected") } == 1, "\(outputs)")
            #expect(outputs.count { $0.contains("login-latched") } == 3, "\(outputs)")
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("that start at once with a wrong password for Basic send it in one request between them")
    func wrongPassword() async throws {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = ["name: ann\nupstream: server\nscheme: basic\ncredential: ann"]
        configuration.environment = ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "wrong"]
        try await withBank(configuration, startsDaemon: false) { bank in
            bank.upstream.faults.add(Fault(.delay(.milliseconds(400)), at: .basic))
            let outputs = try await run("/basic/", at: bank)
            #expect(outputs.count { $0.contains("login-rejected") } == 1, "\(outputs)")
            #expect(outputs.count { $0.contains("login-latched") } == 3, "\(outputs)")
            #expect(bank.record.wrongAnswers["basic"] == 1)
        }
    }

    @Test("take turns with a refresh token that the server rotates: none is sent twice")
    func rotation() async throws {
        var configuration = BankConfiguration.oauth("grant: refresh-token")
        try await withBank(configuration, startsDaemon: false) { bank in
            configuration.environment["COUNTERSIGN_API__REFRESH_TOKEN"] = bank.upstream.oauth.issueRefreshToken()
            bank.configure { $0 = configuration }
            bank.upstream.faults.add(Fault(.delay(.milliseconds(300)), at: .oauthToken))
            let outputs = try await run("/oauth/api/echo", at: bank)
            #expect(outputs.allSatisfy { $0.contains(" status 200") }, "\(outputs)")
            #expect(bank.record.tokens.count == 4 && bank.record.wrongAnswers["oauth"] == nil)
        }
    }

    @Test("`login` beside the daemon waits for the daemon's login, and sends nothing that was rejected meanwhile")
    func commandBesideDaemon() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration) { bank in
            bank.upstream.faults.add(Fault(.delay(.seconds(1)), at: .preauthorize))
            async let served = bank.curl("/balance")
            // The first is of the login without a scope, which sends no PIN: the command could have the turn between the two.
            #expect(await eventually { bank.record.count("POST", "/mfp/api/preauth/v1/preauthorize") > 1 })
            let login = try await bank.countersign("login", "--here", "bank-pin")
            #expect(login.exit == 69 && login.output.contains("waiting for its end"), "\(login)")
            let answer = try await served
            #expect(answer.code == "login-rejected", "\(answer.summary)")
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("log in at once if the one before was killed in the middle of its login")
    func killed() async throws {
        try await withBank(startsDaemon: false) { bank in
            bank.upstream.faults.add(Fault(.hang, at: .preauthorize, times: 1))
            let first = try await start(
                "first", ["run", "--env", "BASE={listener}", "--", "sh", "-c", "exec curl -sS $BASE/balance"], at: bank)
            #expect(await eventually { bank.record.count("POST", "/mfp/api/preauth/v1/preauthorize") == 1 })
            let second = try await start("second", ["login", "--here", "bank-pin"], at: bank)
            #expect(await eventually { bank.folder.text(of: "second.out").contains("waiting for its end") })
            #expect(bank.record.count("POST", "/mfp/api/preauth/v1/preauthorize") == 1)
            first.signal(SIGKILL)
            _ = await first.waitForExit()
            #expect(await second.waitForExit() == 0)
        }
    }

    /// Starts a command of the program; its output goes to `NAME.out` and `NAME.err`.
    private func start(_ name: String, _ arguments: [String], at bank: Bank) async throws -> Child {
        let configuration = ["--config", bank.folder.path(of: "countersign.yaml")]
        return try await Child.start(
            Child.Start(
                arguments: [Binary.path, arguments[0]] + configuration + arguments.dropFirst(),
                environment: baseEnvironment(bank.folder).merging(bank.environment) { $1 }, folder: bank.folder.path,
                output: bank.folder.path(of: "\(name).out"), errors: bank.folder.path(of: "\(name).err")))
    }
}
