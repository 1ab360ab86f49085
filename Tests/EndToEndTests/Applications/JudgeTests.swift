// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

/// Logins by HTTP schemes, compared with those of `curl --anyauth` at the same servers.
@Suite("HTTP authentication compared with curl's", .serialized)
struct CurlChallengeTests {
    private static let environment = ["COUNTERSIGN_CORP__USERNAME": "ann", "COUNTERSIGN_CORP__PASSWORD": "demo"]

    @Test("curl and the daemon log in by the scheme that the table says for each set of fields")
    func sets() async throws {
        let rows = JudgeTable("curl-challenges").rows
        let port = Ports.next()
        try await withBank(Self.configuration(rows.map { $0[0] }, port: port)) { bank in
            let server = try await ScriptServer(
                "curl-challenges", ["serve", "\(port)", Repository.path(of: "Tests/Judges/curl-challenges.tsv")],
                in: bank.folder)
            let asked = try await Command.run(
                [Repository.path(of: "Tests/Scripts/curl-challenges"), "ask", "\(port)"] + rows.map { $0[0] },
                in: bank.folder)
            let found = asked.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            #expect(found == rows.map { [$0[0], $0[2]] }, "curl: \(asked.errors)")
            for row in rows {
                let answer = try await bank.curl("/\(row[0])/")
                let scheme = answer.status == 200 ? answer.text : answer.status == 401 ? "-" : answer.summary
                #expect(scheme == row[3], "\(row)")
            }
            await server.stop()
        }
    }

    @Test("curl logs in at the fake of each scheme as the daemon does", arguments: ["/basic/", "/digest/"])
    func fakes(path: String) async throws {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = ["name: corp\nupstream: server\ncredential: corp\nscheme: [digest, basic]"]
        configuration.environment = Self.environment
        for algorithm in path == "/digest/" ? ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess"] : [""] {
            try await withBank(configuration) { bank in
                bank.upstream.digest.configure { $0.algorithms = [algorithm] }
                try await bank.expect(path, status: 200)
                let curl = try await Curl.run(
                    ["--anyauth", "-u", "ann:demo", "http://127.0.0.1:\(bank.upstream.port)\(path)"], in: bank.folder)
                #expect(curl.status == 200, "\(algorithm): \(curl.summary)")
            }
        }
    }

    /// Creates the configuration of an upstream for each set.
    private static func configuration(_ numbers: [String], port: UInt16) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.upstreams = numbers.map { "u\($0): { url: 'http://127.0.0.1:\(port)/' }" }
        configuration.listeners =
            "address: 127.0.0.1:${PROXY_PORT}\nupstream: server\nroutes:\n"
            + numbers.map { "  - { path: /\($0)/, upstream: u\($0) }" }.joined(separator: "\n")
        configuration.challenges = numbers.map {
            "name: c\($0)\nupstream: u\($0)\ncredential: corp\nscheme: [digest, basic]"
        }
        configuration.environment = environment
        return configuration
    }
}

@Suite("Login pages of a grammar, submitted by Chromium and by the daemon's reader")
struct ChromiumFormsTests {
    private static let script =
        #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/Scripts/form-submissions"

    @Test("are the same requests, or refused with a reason", .timeLimit(.minutes(15)))
    func same() async throws {
        let seed = Int.random(in: 1000...1_000_000)
        let folder = try Folder()
        var forms: [SubmittedForm] = []
        // In pieces: a program gets half a minute.
        for piece in 0..<10 {
            let run = try await Command.run([Self.script, "--seed", "\(seed + piece)", "--count", "30"], in: folder)
            #expect(run.exit == 0, "\(run.errors)")
            forms += run.output.split(separator: "\n").map { line in
                SubmittedForm(line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init))
            }
        }
        #expect(forms.count >= 200)
        var refusals = 0
        for form in forms {
            switch form.outcome {
            case .same: #expect(!form.isHeld, "seed \(seed): \(form)")
            case .refused: if !form.isHeld { refusals += 1 }
            case .different(let difference): Issue.record("seed \(seed): \(form)\n\(difference)")
            }
        }
        // Inputs that a browser would not submit either, or that need a person: about one form in 25.
        #expect(refusals * 10 < forms.count, "seed \(seed): \(refusals) refused")
    }
}
