// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("countersign learn")
struct LearnTests {
    private static let password = "demo"

    /// Runs `learn` at a path of the bank's server, as ann.
    private func learn(
        _ bank: Bank, _ path: String, _ arguments: String..., fields: [String: String] = ["PASSWORD": password]
    ) async throws -> Command {
        var environment = ["COUNTERSIGN_UPSTREAM__USERNAME": "ann"]
        for (field, value) in fields { environment["COUNTERSIGN_UPSTREAM__\(field)"] = value }
        return try await Command.run(
            [Binary.path, "learn", "http://127.0.0.1:\(bank.upstream.port)\(path)"] + arguments,
            environment: environment, in: bank.folder)
    }

    private func withServer(_ scenario: (Bank) async throws -> Void) async throws {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.challenges = []
        try await withBank(configuration, startsDaemon: false, scenario)
    }

    @Test(
        "prints a configuration that check accepts and login proves",
        arguments: [
            ("/basic/", "scheme: basic"), ("/digest/", "scheme: digest"), ("/form/", "gateway: j-security-check"),
        ])
    func whole(_ path: String, _ line: String) async throws {
        try await withServer { bank in
            let learned = try await learn(bank, path, "--yes")
            #expect(learned.exit == 0, "\(learned)")
            #expect(learned.output.contains("    \(line) "), "\(learned)")
            let file = bank.folder.path(of: "learned.yaml")
            _ = bank.folder.write(Array(learned.output.utf8), to: "learned.yaml")
            let check = try await Command.countersign("check", "--config", file, in: bank.folder)
            #expect(check.exit == 0, "\(check)")
            let login = try await Command.countersign(
                "login", "--config", file,
                environment: [
                    "COUNTERSIGN_UPSTREAM__USERNAME": "ann", "COUNTERSIGN_UPSTREAM__PASSWORD": Self.password,
                ],
                in: bank.folder)
            #expect(login.exit == 0 && login.output.contains("session established"), "\(login)\n\(learned.output)")
        }
    }

    @Test("spends no attempt without a terminal and without --yes, and says so")
    func consent() async throws {
        try await withServer { bank in
            for path in ["/basic/", "/form/"] {
                let before = bank.record.transcript.count
                let learned = try await learn(bank, path)
                #expect(learned.exit == 77 && learned.output.isEmpty, "\(learned)")
                #expect(learned.errors.contains("no attempt was allowed"))
                #expect(bank.record.transcript[before...].allSatisfy { $0.method == "GET" })
            }
        }
    }

    @Test("a wrong password ends with the page that refused it, and prints no configuration and no secret")
    func wrong() async throws {
        try await withServer { bank in
            for path in ["/basic/", "/form/"] {
                let learned = try await learn(bank, path, "--yes", fields: ["PASSWORD": "not-it-7"])
                #expect(learned.exit == 69 && learned.output.isEmpty, "\(learned)")
                #expect(learned.errors.contains("login-rejected") && !learned.errors.contains("not-it-7"), "\(learned)")
            }
        }
    }

    @Test("names the page that defeats it, and sends nothing")
    func defeats() async throws {
        try await withServer { bank in
            for (path, words) in [
                ("/checks/balance", "lists security checks"), ("/open/", "open to everybody"),
                ("/oauth/api/echo", "names no authorization server"),
            ] {
                let learned = try await learn(bank, path, "--yes")
                #expect(learned.exit == 69 && learned.errors.contains(words), "\(learned)")
            }
        }
    }

    @Test(
        "real applications are learned by one login and one wrong password",
        arguments: [Application.django, .jupyterHub])
    func application(_ application: Application) async throws {
        try await withFake(try application.kind()) { bank, fake in
            let path = "http://127.0.0.1:\(fake.port)\(application.page.path)"
            let environment = [
                "COUNTERSIGN_UPSTREAM__USERNAME": "ann", "COUNTERSIGN_UPSTREAM__PASSWORD": Self.password,
            ]
            let once = try await Command.countersign(
                "learn", path, "--yes", "--no-wrong-attempt", environment: environment, in: bank.folder)
            #expect(once.exit == 0 && fake.logins.count == 1, "\(once)")
            let twice = try await Command.countersign("learn", path, "--yes", environment: environment, in: bank.folder)
            #expect(twice.exit == 0 && twice.output == once.output && fake.logins.count == 3, "\(twice)")
            #expect(twice.errors.contains("a wrong password is recognised"))
        }
    }

    @Test("a login in JSON is learned from a browser's recording, whose secrets are not printed")
    func recording() async throws {
        try await withFake(.token) { bank, fake in
            let server = "http://127.0.0.1:\(fake.port)"
            let recording = """
                {"log": {"entries": [
                  {"request": {"method": "POST", "url": "\(server)/api/login", "headers": [],
                    "postData": {"mimeType": "application/json", "text": "{\\"user\\": \\"ann\\", \\"password\\": \\"demo\\"}"}},
                   "response": {"status": 200, "headers": [], "content": {"text": "{\\"data\\": {\\"token\\": \\"of-a-browser-7\\"}}"}}},
                  {"request": {"method": "GET", "url": "\(server)/api/accounts",
                    "headers": [{"name": "Authorization", "value": "Session of-a-browser-7"}]}, "response": {"status": 200}}]}}
                """
            let file = bank.folder.write(Array(recording.utf8), to: "login.har")
            let learned = try await Command.countersign(
                "learn", "\(server)/api/accounts", "--har", file, "--yes",
                environment: ["COUNTERSIGN_UPSTREAM__USERNAME": "ann", "COUNTERSIGN_UPSTREAM__PASSWORD": "demo"],
                in: bank.folder)
            #expect(learned.exit == 0, "\(learned)")
            #expect(learned.output.contains("inject: { authorization: \"Session {token}\" }"), "\(learned)")
            #expect(!(learned.output + learned.errors).contains("of-a-browser-7"))
            let broken = bank.folder.write(Array("{}".utf8), to: "broken.har")
            let refused = try await Command.countersign("learn", server, "--har", broken, in: bank.folder)
            #expect(refused.exit == 65 && refused.errors.contains("log.entries"), "\(refused)")
        }
    }
}

@Suite("countersign learn, at servers with unusual logins")
struct LearnedSiteTests {
    private func learn(_ path: String, of fake: FakeServer, _ bank: Bank, password: String = "demo") async throws
        -> Command
    {
        try await Command.countersign(
            "learn", "http://127.0.0.1:\(fake.port)\(path)", "--yes",
            environment: ["COUNTERSIGN_UPSTREAM__USERNAME": "ann", "COUNTERSIGN_UPSTREAM__PASSWORD": password],
            in: bank.folder)
    }

    @Test("a login with the name first is learned as two steps, which log in; a wrong password is called wrong")
    func nameFirst() async throws {
        try await withFake(FakeKind(script: "name-first", challenge: "gateway: form")) { bank, fake in
            let learned = try await learn("/app", of: fake, bank)
            #expect(learned.exit == 0, "\(learned)")
            #expect(learned.output.contains("parameters: { password: \"{password}\" }"), "\(learned)")
            #expect(fake.logins == ["ann ok", "ann wrong"], "\(fake.logins)")
            let refused = try await learn("/app", of: fake, bank, password: "not-it")
            #expect(refused.exit == 69 && refused.output.isEmpty, "\(refused)")
        }
    }

    @Test("a session that is bound to the User-Agent of its login is learned, and said to be")
    func bound() async throws {
        let kind = FakeKind(script: "bound-agent", challenge: "gateway: form")
        try await withFake(kind) { bank, fake in
            let learned = try await learn("/app", of: fake, bank)
            #expect(learned.exit == 0 && learned.errors.contains("binds the session to the User-Agent"), "\(learned)")
        }
        try await withFake(kind.with("--loose")) { bank, fake in
            let learned = try await learn("/app", of: fake, bank)
            #expect(learned.exit == 0 && !learned.errors.contains("binds the session"), "\(learned)")
        }
    }
}
