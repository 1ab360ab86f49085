// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("countersign serve --to")
struct FirstTryTests {
    private func withServer(_ scenario: (Bank) async throws -> Void) async throws {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.challenges = []
        try await withBank(configuration, startsDaemon: false, scenario)
    }

    private func start(_ bank: Bank, _ path: String, _ environment: [String: String]) async throws -> Child {
        try await Child.start(
            Child.Start(
                arguments: [
                    Binary.path, "serve", "--to", "http://127.0.0.1:\(bank.upstream.port)\(path)", "--credential",
                    "ann",
                    "--listen", "127.0.0.1:\(bank.port)",
                ],
                environment: baseEnvironment(bank.folder).merging(environment) { $1 }, folder: bank.folder.path,
                output: bank.folder.path(of: "out"), errors: bank.folder.path(of: "err")))
    }

    @Test("serves an upstream without a file, with the login that it asks for", arguments: ["/basic/", "/form/"])
    func serves(_ path: String) async throws {
        try await withServer { bank in
            let child = try await start(
                bank, path, ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "demo"])
            let isReady = await eventually { bank.folder.text(of: "out").contains("Press Ctrl-C") }
            #expect(isReady, "\(bank.folder.text(of: "err"))")
            try await bank.expect(path, status: 200)
            child.signal(SIGTERM)
            #expect(await child.waitForExit() == 0)
            let output = bank.folder.text(of: "out")
            #expect(output.contains("Try it:      curl http://127.0.0.1:\(bank.port)\(path)\n"), "\(output)")
            #expect(!(output + bank.folder.text(of: "err")).contains("demo"), "\(output)")
            // The output is a configuration.
            let kept = output.split(separator: "Try it:").first.map(String.init) ?? ""
            _ = bank.folder.write(kept, to: "kept.yaml")
            let check = try await bank.countersignCheck("kept.yaml")
            #expect(check.exit == 0, "\(check)\n\(output)")
        }
    }

    @Test("says what is missing: a value, a login, an address")
    func faults() async throws {
        try await withServer { bank in
            let base = "http://127.0.0.1:\(bank.upstream.port)"
            let cases: [([String], Int32, String)] = [
                (["--to", "\(base)/basic/", "--credential", "ann"], 78, "set COUNTERSIGN_ANN__USERNAME"),
                (["--to", "\(base)/open/", "--credential", "ann"], 69, "open to everybody"),
                (["--to", "nowhere"], 64, "is not an http or https address"),
                (["--to", "http://127.0.0.1:1/"], 69, "was not answered"),
                (["--credential", "ann"], 64, "belong to --to"),
                (["--to", base, "--check"], 64, "serves without a file"),
            ]
            for (arguments, code, words) in cases {
                let run = try await Command.run([Binary.path, "serve"] + arguments, in: bank.folder)
                #expect(run.exit == code && run.errors.contains(words), "\(arguments) \(run)")
            }
        }
    }
}

extension Bank {
    fileprivate func countersignCheck(_ name: String) async throws -> Command {
        try await Command.countersign("check", folder.path(of: name), in: folder)
    }
}
