// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

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
