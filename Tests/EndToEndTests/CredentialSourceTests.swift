// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
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
