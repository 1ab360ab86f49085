// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
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

@Suite("A credential that is changed while its session serves")
struct RotationTests {
    /// Replaces a file as editors and `kubelet` do.
    private static func replace(_ name: String, in folder: Folder, with text: String) {
        folder.write(text, to: ".new")
        #expect(unsafe rename(folder.path(of: ".new"), folder.path(of: name)) == 0)
    }

    private static func configuration(_ credentials: Folder, _ challenge: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.sources = ["env", "systemd"]
        configuration.challenges = [challenge]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        return configuration
    }

    @Test("is used before the server refuses the old one, and rewriting the same value does nothing")
    func basic() async throws {
        let credentials = try Folder()
        credentials.write("ann", to: "ann.username")
        credentials.write("first", to: "ann.password")
        let configuration = Self.configuration(
            credentials,
            """
            name: ann
            upstream: server
            scheme: basic
            credential: ann
            """)
        try await withBank(configuration) { bank in
            // "ann:first", "ann:second", "ann:third"
            let values = ["Basic YW5uOmZpcnN0", "Basic YW5uOnNlY29uZA==", "Basic YW5uOnRoaXJk"]
            let seen = Notes()
            bank.upstream.override { request in
                guard request.path.hasPrefix("/basic/") else { return nil }
                let value = request.field("authorization") ?? ""
                seen.add(value)
                guard values.contains(value) else {
                    return .text(401, "who?\n", fields: [("WWW-Authenticate", #"Basic realm="Demo""#)])
                }
                return .text(200, "welcome\n")
            }
            try await bank.expect("/basic/", status: 200)
            #expect(seen.all == ["", values[0]])

            for (text, value) in [("second", values[1]), ("third", values[2])] {
                Self.replace("ann.password", in: credentials, with: text)
                let isUsed = await eventually {
                    _ = try? await bank.expect("/basic/", status: 200)
                    return seen.all.last == value
                }
                #expect(isUsed)
                // The same once more, by another file.
                Self.replace("ann.password", in: credentials, with: text)
            }
            // No password was refused on the way: a new one is first tried with a challenge. And no more changes were
            // reported than there were.
            #expect(seen.all.allSatisfy { $0 == "" || values.contains($0) })
            #expect(seen.all.count { $0 == "" } <= 3)
            #expect(try bank.daemon.log.components("credential changed") == 2)
            #expect(try bank.daemon.log.components(#""login succeeded""#) == 3)
        }
    }

    @Test("to one that the server rejects is tried once, while the old session goes on")
    func rejected() async throws {
        let credentials = try Folder()
        credentials.write("test", to: "reports.client-id")
        credentials.write("test", to: "reports.client-secret")
        var configuration = Self.configuration(
            credentials,
            """
            name: reports
            upstream: bank
            scheme: bearer
            credential: reports
            token: { grant: mobilefirst, scope: accessRestricted }
            """)
        configuration.mobileFirst = []
        try await withBank(configuration) { bank in
            func tokenRequests() -> Int { bank.record.count("POST", "/mfp/api/az/v1/token") }
            try await bank.expect("/balance", status: 200)
            #expect(tokenRequests() == 1)
            Self.replace("reports.client-secret", in: credentials, with: "wrong")
            #expect(await eventually { tokenRequests() == 2 })
            #expect(try await bank.daemon.waitForLog("login-rejected"))
            for _ in 0..<3 { try await bank.expect("/balance", status: 200) }
            // And the right one again.
            Self.replace("reports.client-secret", in: credentials, with: "test")
            #expect(try await bank.daemon.waitForLog("credential changed", times: 2))
            #expect(await eventually { tokenRequests() == 3 })
            try await bank.expect("/balance", status: 200)
        }
    }
}
