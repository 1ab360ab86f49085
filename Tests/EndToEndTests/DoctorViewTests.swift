// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

@Suite("The view of countersign doctor")
struct DoctorViewTests {
    private static let passphrase = "a passphrase of many words"

    /// A bank whose keyring asks for its passphrase, which only the tests' shell has.
    private static func asking(_ agent: Agent? = nil) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.sources = ["{ keyring: \"${FOLDER}/keyring\", ask: true }"]
        configuration.environment = agent.map { ["XDG_RUNTIME_DIR": $0.folder.path] } ?? [:]
        return configuration
    }

    private func makeKeyring(_ bank: Bank) async throws {
        let variable = ["COUNTERSIGN_KEYRING_PASSPHRASE": Self.passphrase]
        for (arguments, input) in [(["init"], nil), (["set", "bank-pin", "pin"], Array("1234".utf8))] {
            let run = try await Command.run(
                [Binary.path, "keyring"] + arguments + ["--config", bank.folder.path(of: "countersign.yaml")],
                environment: bank.environment.merging(variable) { $1 }, input: input, in: bank.folder)
            #expect(run.exit == 0, "\(run)")
        }
    }

    @Test(
        "a passphrase that only the shell has does not make a daemon well that lacks it",
        .enabled(if: unsafe access(Agent.program, X_OK) == 0))
    func otherEnvironment() async throws {
        let agent = try Agent()
        try await withBank(Self.asking(agent), startsDaemon: false) { bank in
            try await makeKeyring(bank)
            try await bank.startDaemon()
            async let refused = bank.expect("/balance", code: "login-failed")
            // Nobody at the console knows the passphrase.
            _ = try await agent.reply(nil)
            _ = try await refused
            var environment = bank.environment
            environment["COUNTERSIGN_KEYRING_PASSPHRASE"] = Self.passphrase
            let file = bank.folder.path(of: "countersign.yaml")
            for options in [[], ["--here"]] {
                let doctor = try await Command.run(
                    [Binary.path, "doctor", "--config", file] + options, environment: environment, input: [],
                    in: bank.folder)
                #expect(doctor.exit == 69, "\(doctor)")
                let reason = "the daemon is not ready: bank/bank: login-failed: The keyring"
                #expect(doctor.output.contains(reason), "\(doctor)")
                let looker = options.isEmpty ? "by the daemon, process " : "by this command, as uid \(geteuid())"
                #expect(doctor.output.contains(looker) && !doctor.output.contains("all is well"), "\(doctor)")
            }
        }
    }

    @Test("nobody is asked without a terminal: doctor and login end at once, and say why")
    func noTerminal() async throws {
        try await withBank(Self.asking(), startsDaemon: false) { bank in
            try await makeKeyring(bank)
            let began = ContinuousClock.now
            let file = bank.folder.path(of: "countersign.yaml")
            let doctor = try await Command.run(
                [Binary.path, "doctor", "--config", file], environment: bank.environment, input: [], in: bank.folder)
            #expect(doctor.exit == 0 && doctor.output.contains("was not looked up"), "\(doctor)")
            #expect(
                doctor.output.contains("no daemon was found") && !doctor.output.contains("all is well"), "\(doctor)")
            let login = try await Command.run(
                [Binary.path, "login", "--config", file], environment: bank.environment, input: [], in: bank.folder)
            #expect(login.exit == 69 && login.output.contains("no terminal to ask at"), "\(login)")
            #expect(ContinuousClock.now - began < .seconds(30))
            #expect(bank.pinAnswers == 0)
        }
    }

    @Test("a server that takes the connection and answers too late is told by timeouts.response")
    func lateAnswer() async throws {
        var configuration = BankConfiguration()
        configuration.bank = ["timeouts: { response: 1s }"]
        try await withBank(configuration, startsDaemon: false) { bank in
            bank.upstream.override { _ in
                var response = FakeResponse(200)
                response.delivery.hangs = true
                return response
            }
            let doctor = try await bank.countersign("doctor", "bank")
            #expect(
                doctor.exit == 69 && doctor.output.contains("the `timeouts.response` of this upstream"), "\(doctor)")
            #expect(!doctor.output.contains("timeouts.connect"), "\(doctor)")
        }
    }

    @Test(
        "a user who may not use the admin socket is told so in one line, and nothing about the daemon's files",
        .enabled(if: getuid() == 0))
    func strangerUser() async throws {
        try await withBank { bank in
            // The user may read the configuration, and the program.
            for path in [bank.folder.path, bank.folder.path(of: "countersign.yaml")] { unsafe chmod(path, 0o755) }
            let program = bank.folder.path(of: "program")
            #expect(try await Command.run(["/bin/cp", Binary.path, program], in: bank.folder).exit == 0)
            unsafe chmod(program, 0o755)
            let file = bank.folder.path(of: "countersign.yaml")
            let command = [
                "/usr/bin/setpriv", "--clear-groups", "--reuid", "4711", program, "doctor", "--config", file,
            ]
            let doctor = try await Command.run(command, environment: bank.environment, in: bank.folder)
            #expect(doctor.exit == 77 && doctor.output.isEmpty, "\(doctor)")
            #expect(doctor.errors.contains("run: sudo countersign doctor"), "\(doctor)")
            #expect(doctor.errors.split(separator: "\n").count == 1, "\(doctor)")
        }
    }
}
