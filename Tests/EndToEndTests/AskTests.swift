// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("A PIN that nobody stores", .enabled(if: unsafe access(Agent.program, X_OK) == 0))
struct AskTests {
    private static func configuration(_ agent: Agent) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.asked = "{ bank-pin: [pin] }"
        configuration.environment = ["XDG_RUNTIME_DIR": agent.folder.path]
        return configuration
    }

    @Test("is asked for once for all who wait, and kept in memory only")
    func asked() async throws {
        let agent = try Agent()
        try await withBank(Self.configuration(agent)) { bank in
            try await withThrowingTaskGroup { group in
                for _ in 0..<5 { group.addTask { try await bank.expect("/balance", status: 200) } }
                #expect(try await agent.reply("1234").contains("Message=Please enter the pin of bank-pin:"))
                try await group.waitForAll()
            }
            #expect(bank.record.answers["PinCodeAttempts"] == [["pin": "1234"]])
            #expect(agent.questions.isEmpty)
            bank.upstream.mobileFirst.expire(check: "PinCodeAttempts")
            bank.upstream.mobileFirst.revokeTokens()
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 2)

            // Another process knows nothing of it.
            await bank.stopDaemon()
            bank.upstream.mobileFirst.expire(check: "PinCodeAttempts")
            bank.upstream.mobileFirst.revokeTokens()
            try await bank.startDaemon()
            async let answer = bank.expect("/balance", status: 200)
            _ = try await agent.reply("1234")
            _ = try await answer
        }
    }

    @Test("is not asked for again where it was rejected, until the operator opens the latch")
    func rejected() async throws {
        let agent = try Agent()
        try await withBank(Self.configuration(agent)) { bank in
            async let first = bank.expect("/balance", code: "login-rejected")
            _ = try await agent.reply("99990000")
            _ = try await first
            for _ in 0..<3 { try await bank.expect("/balance", code: "login-latched") }
            #expect(agent.questions.isEmpty)
            #expect(try await bank.admin("/unlatch?name=bank-pin", "-X", "POST").json?["opened"] == 1)
            async let second = bank.expect("/balance", status: 200)
            _ = try await agent.reply("1234")
            _ = try await second
            #expect(bank.record.answers["PinCodeAttempts"] == [["pin": "99990000"], ["pin": "1234"]])
            for file in bank.folder.files + agent.folder.files {
                #expect(!String(decoding: readFile(file), as: UTF8.self).contains("99990000"), "\(file)")
            }
        }
    }

    @Test("that nobody wants to give is no-credential with the reason, and not asked for at once again")
    func withdrawn() async throws {
        let agent = try Agent()
        try await withBank(Self.configuration(agent)) { bank in
            async let first = bank.expect("/balance", code: "no-credential")
            _ = try await agent.reply(nil)
            #expect(try await first.detail.contains("the prompt was withdrawn"))
            try await bank.expect("/balance", code: "no-credential")
            #expect(agent.questions.isEmpty)
            #expect(bank.pinAnswers == 0)
        }
    }

    @Test("has its question taken back where the daemon ends")
    func stopped() async throws {
        let agent = try Agent()
        try await withBank(Self.configuration(agent)) { bank in
            let caller = try bank.connect()
            #expect(caller.send("GET /balance HTTP/1.1\r\nHost: localhost\r\n\r\n"))
            #expect(await eventually { !agent.questions.isEmpty })
            caller.finish()
            await bank.stopDaemon()
            #expect(agent.questions.isEmpty)
        }
    }

    @Test("may as well be the passphrase of the keyring")
    func passphrase() async throws {
        let agent = try Agent()
        var configuration = Self.configuration(agent)
        configuration.asked = nil
        configuration.sources = ["keyring: ${FOLDER}/keyring\nask: true"]
        try await withBank(configuration, startsDaemon: false) { bank in
            let words = "a passphrase of many words"
            for arguments in [["init"], ["set", "bank-pin", "pin"]] {
                let done = try await Command.run(
                    [Binary.path, "keyring", arguments[0], "--config", bank.folder.path(of: "countersign.yaml")]
                        + arguments.dropFirst(),
                    environment: bank.environment.merging(["COUNTERSIGN_KEYRING_PASSPHRASE": words]) { $1 },
                    input: Array("1234".utf8), in: bank.folder)
                #expect(done.exit == 0, "\(done)")
            }
            try await bank.startDaemon()
            async let answer = bank.expect("/balance", status: 200)
            #expect(
                try await agent.reply(words).contains(
                    "Message=Please enter the passphrase of \(bank.folder.path(of: "keyring")):"))
            _ = try await answer
            #expect(bank.pinAnswers == 1)
        }
    }
}

/// A user who answers questions, with systemd's program for password prompts.
final class Agent: Sendable {
    static let program = "/lib/systemd/systemd-reply-password"
    /// Its `$XDG_RUNTIME_DIR`.
    let folder: Folder

    init() throws {
        folder = try Folder()
        folder.makeFolder("systemd")
        folder.makeFolder("systemd/ask-password")
    }

    /// The files of the questions that are open.
    var questions: [String] { folder.files.filter { $0.contains("/ask.") } }

    /// Waits for a question, answers it (`nil`: withdraws it) and returns its lines.
    func reply(_ answer: String?) async throws -> [String] {
        guard await eventually({ !questions.isEmpty }), let file = questions.first else {
            throw ChildError(description: "nobody asks")
        }
        let lines = String(decoding: readFile(file), as: UTF8.self).split(separator: "\n").map(String.init)
        let socket = try #require(lines.first { $0.hasPrefix("Socket=") }).dropFirst(7)
        // Not into a file of the bank's folder, which is looked through for the answer.
        let place = try Folder()
        let done = try await Command.run(
            [Self.program, answer == nil ? "0" : "1", String(socket)], input: Array("\(answer ?? "")\n".utf8), in: place
        )
        #expect(done.exit == 0, "\(done)")
        #expect(await eventually { !questions.contains(file) })
        return lines
    }
}
