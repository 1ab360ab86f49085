// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("Where credentials come from")
struct CredentialSourceTests {
    @Test("a JSON file of the systemd directory, and the first source that knows the name")
    func systemdJSON() async throws {
        let credentials = try Folder()
        credentials.write(#"{"pin": "1234"}"#, to: "bank-pin")
        var configuration = BankConfiguration()
        configuration.sources = ["env", "systemd"]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", status: 200)
            #expect(bank.record.answers["PinCodeAttempts"] == [["pin": "1234"]])
        }
    }

    @Test("a helper program, which is asked by name and sees nothing of other credentials")
    func exec() async throws {
        let helper = try Folder()
        let program = helper.write(
            """
            #!/bin/sh
            read -r question
            echo "$question" >"\(helper.path)/asked"
            env >"\(helper.path)/environment"
            echo '{"fields": {"pin": "1234"}}'

            """, to: "helper", mode: 0o700)
        var configuration = BankConfiguration()
        configuration.sources = ["exec: [\(program)]"]
        configuration.environment = ["COUNTERSIGN_OTHER__KEY": "s3cr3t", "CREDENTIALS_DIRECTORY": "/nowhere"]
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", status: 200)
            #expect(helper.text(of: "asked").contains(#""bank-pin""#))
            #expect(!helper.text(of: "environment").contains("s3cr3t"))
        }
    }

    @Test(
        "a helper that fails is no-credential or login-failed, and tried again later",
        arguments: ["exit 1", "echo nonsense"])
    func brokenHelper(line: String) async throws {
        let helper = try Folder()
        let program = helper.write("#!/bin/sh\n\(line)\n", to: "helper", mode: 0o700)
        var configuration = BankConfiguration()
        configuration.sources = ["exec: [\(program)]"]
        configuration.environment = [:]
        try await withBank(configuration) { bank in
            let answer = try await bank.expect("/balance", status: 502)
            #expect(["login-failed", "no-credential"].contains(answer.code))
            helper.write("#!/bin/sh\necho '{\"fields\": {\"pin\": \"1234\"}}'\n", to: "helper", mode: 0o700)
            #expect(try await eventually { try await bank.curl("/balance").status == 200 })
            #expect(bank.pinAnswers == 1)
        }
    }
}

@Suite("The encrypted keyring")
struct KeyringTests {
    private static var configuration: BankConfiguration {
        var configuration = BankConfiguration()
        configuration.sources = ["keyring: ${FOLDER}/keyring"]
        configuration.environment = ["COUNTERSIGN_KEYRING_PASSPHRASE": "a passphrase of many words"]
        return configuration
    }

    @Test("gives the daemon its PIN, and a changed one opens the latch without a restart")
    func changed() async throws {
        try await withBank(Self.configuration, startsDaemon: false) { bank in
            let made = try await bank.keyring("init")
            #expect(made.exit == 0, "\(made)")
            let wrong = try await bank.keyring("set", "bank-pin", "pin", input: "99990000")
            #expect(wrong.exit == 0, "\(wrong)")
            try await bank.startDaemon()
            try await bank.expect("/balance", code: "login-rejected")
            try await bank.expect("/balance", code: "login-latched")

            let right = try await bank.keyring("set", "bank-pin", "pin", input: "1234")
            #expect(right.exit == 0, "\(right)")
            try await bank.expect("/balance", status: 200)
            #expect(bank.record.answers["PinCodeAttempts"] == [["pin": "99990000"], ["pin": "1234"]])
            let file = bank.folder.text(of: "keyring")
            #expect(!file.contains("99990000"))
        }
    }

    @Test("lists names and never values, gives one back byte for byte, and forgets what is removed")
    func commands() async throws {
        try await withBank(Self.configuration, startsDaemon: false) { bank in
            _ = try await bank.keyring("init")
            _ = try await bank.keyring("set", "ann", "password", input: "p\u{e4}ss w\u{f6}rd")
            _ = try await bank.keyring("set", "ann", "username", input: "ann")
            let list = try await bank.keyring("list")
            #expect(list.output.contains("ann") && list.output.contains("password"))
            #expect(!list.output.contains("w\u{f6}rd"))
            #expect(try await bank.keyring("get", "ann", "password").output == "p\u{e4}ss w\u{f6}rd")
            #expect(try await bank.keyring("remove", "ann", "password").exit == 0)
            let gone = try await bank.keyring("get", "ann", "password")
            #expect(gone.exit != 0)
            #expect(gone.errors.split(separator: "\n").count == 1)
            #expect(try await bank.keyring("get", "ann", "username").output == "ann")
        }
    }

    @Test("is refused where others may read it, and where the passphrase is wrong")
    func refused() async throws {
        try await withBank(Self.configuration, startsDaemon: false) { bank in
            _ = try await bank.keyring("init")
            _ = try await bank.keyring("set", "bank-pin", "pin", input: "1234")
            let other = try await bank.keyring("list", passphrase: "another")
            #expect(other.exit != 0)
            #expect(!other.errors.contains("another"))
            unsafe chmod(bank.folder.path(of: "keyring"), 0o644)
            let open = try await bank.keyring("list")
            #expect(open.exit == 77 || open.exit == 78, "\(open)")
            try await bank.startDaemon()
            let answer = try await bank.expect("/balance", status: 502)
            #expect(["login-failed", "no-credential"].contains(answer.code))
            #expect(bank.pinAnswers == 0)
        }
    }
}

extension Bank {
    /// Runs `countersign keyring`.
    fileprivate func keyring(
        _ command: String, _ arguments: String..., input: String? = nil, passphrase: String? = nil
    ) async throws -> Command {
        var environment = environment
        if let passphrase { environment["COUNTERSIGN_KEYRING_PASSPHRASE"] = passphrase }
        return try await Command.run(
            [Binary.path, "keyring", command, "--config", folder.path(of: "countersign.yaml")] + arguments,
            environment: environment, input: input.map { Array($0.utf8) }, in: folder)
    }
}
