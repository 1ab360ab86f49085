// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("The commands")
struct CommandTests {
    @Test("check: a right configuration ends with 0, a wrong one with 78 and every problem at its place")
    func check() async throws {
        try await withBank(startsDaemon: false) { bank in
            let good = try await bank.countersign("check")
            #expect(good.exit == 0, "\(good)")
            let file = bank.folder.path(of: "countersign.yaml")
            #expect(good.output == "\(file): no problems\n" && good.errors.isEmpty, "\(good)")
            for command in [["check", file], ["check", "-c", file], ["serve", "--check", file], ["config", file]] {
                let same = try await Command.run([Binary.path] + command, in: bank.folder)
                #expect(same.exit == 0 && same.errors.isEmpty, "\(same)")
            }
            let twice = try await Command.run([Binary.path, "check", file, "-c", file], in: bank.folder)
            #expect(twice.exit == 64 && twice.errors.contains("countersign: name one file"), "\(twice)")

            let bad = bank.folder.write(
                """
                listeners:
                  - adress: 127.0.0.1:1
                    upstream: nope
                upstreams:
                  bank: { url: "http://x/", timeouts: { connect: 5 parsecs } }
                surprise: 1

                """, to: "bad.yaml")
            for command in [["check"], ["serve"], ["serve", "--check"]] {
                let refused = try await Command.run(
                    [Binary.path] + command + ["--config", bad], in: bank.folder)
                #expect(refused.exit == 78)
                let lines = refused.errors.split(separator: "\n")
                for place in ["2:5: listeners[0].adress:", "3:15: listeners[0].upstream:", "6:1: surprise:"] {
                    #expect(lines.contains { $0.hasPrefix("\(bad):\(place)") }, "\(place) \(refused.errors)")
                }
                #expect(lines.contains { $0.hasPrefix("\(bad):5:") && $0.contains("timeouts.connect") })
            }
        }
    }

    @Test(
        "config: the effective configuration has every default, without a secret, and check accepts it as YAML and as JSON"
    )
    func config() async throws {
        try await withBank(unmistakable, rules: unmistakableRules, startsDaemon: false) { bank in
            let written = try await bank.countersign("config")
            #expect(written.exit == 0 && !written.output.contains("caller-credentials"), "\(written)")
            let yaml = try await bank.countersign("config", "--effective")
            let json = try await bank.countersign("config", "--effective", "--json")
            for effective in [yaml, json] {
                #expect(effective.exit == 0 && effective.errors.isEmpty, "\(effective)")
                #expect(effective.output.contains("caller-credentials") && effective.output.contains("{pin}"))
                #expect(!effective.output.contains(unmistakablePIN))
                let file = bank.folder.write(effective.output, to: "effective.yaml")
                let checked = try await Command.run([Binary.path, "check", "--config", file], in: bank.folder)
                #expect(checked.exit == 0 && checked.errors.isEmpty, "\(checked)")
                let again = try await Command.run(
                    [Binary.path, "config", "--effective", "--json", "--config", file], in: bank.folder)
                #expect(again.output == json.output)
            }
            let bad = bank.folder.write("surprise: 1\n", to: "bad.yaml")
            let refused = try await Command.run(
                [Binary.path, "config", "--effective", "--config", bad], in: bank.folder)
            #expect(refused.exit == 78 && refused.output.isEmpty && refused.errors.contains("surprise"), "\(refused)")
        }
    }

    @Test("explain: names listener, route, upstream and handlers, and never a secret")
    func explain() async throws {
        try await withBank(unmistakable, rules: unmistakableRules, startsDaemon: false) { bank in
            let text = try await bank.countersign("explain", bank.url("/balance"))
            #expect(text.exit == 0)
            for word in ["127.0.0.1:\(bank.port)", "bank-pin", "PinCodeAttempts", "/mfp/api/adapters/bank/balance"] {
                #expect(text.output.contains(word), "\(word)")
            }
            #expect(!text.output.contains(unmistakablePIN))
            let json = try await bank.countersign("explain", "--json", "--method", "POST", bank.url("/open/x"))
            #expect(JSON(parsing: Array(json.output.utf8))?["upstream"] == "server")
            #expect(JSON(parsing: Array(json.output.utf8))?["handlers"] == .array([]))
            #expect(bank.record.connections == 0)
        }
    }

    @Test("match: prints the pattern that wins, or none")
    func match() async throws {
        let folder = try Folder()
        let best = try await Command.countersign(
            "match", "http://app.example.com/a", "*/*", "*.example.com/*", "app.example.com/a", in: folder)
        #expect(best.exit == 0)
        #expect(best.output == "app.example.com/a\n")
        let none = try await Command.countersign("match", "http://app.example.com/a", "*.example.org/*", in: folder)
        #expect(none.exit == 1)
        #expect(none.output == "none\n")
        let wrong = try await Command.countersign("match", "http://app.example.com/a", "http://[", in: folder)
        #expect(wrong.exit == 64)
        #expect(wrong.errors.split(separator: "\n").count == 1)
    }

    @Test("login: logs in and shows the conversation without its secrets")
    func login() async throws {
        try await withBank(unmistakable, rules: unmistakableRules, startsDaemon: false) { bank in
            let login = try await bank.countersign("login", "bank-pin")
            #expect(login.exit == 0, "\(login)")
            #expect(login.output.contains("session established in "))
            let server = "http://127.0.0.1:\(bank.upstream.port)"
            #expect(
                login.output.contains(" ms  POST \(server)/mfp/api/preauth/v1/preauthorize: 401 ("), "\(login)")
            #expect(login.output.contains("PinCodeAttempts"))
            #expect(!login.output.contains(unmistakablePIN))
            #expect(!login.output.contains("Bearer ey"))
            #expect(bank.pinAnswers == 1)
            let json = try await bank.countersign("login", "--json", "bank-pin")
            #expect(json.output.contains(#""outcome":"succeeded""#) && json.output.hasPrefix("[{"), "\(json)")
            #expect(json.output.contains(#""method":"POST""#) && json.output.contains(#""took_ms":"#))
            #expect(!json.output.contains(unmistakablePIN) && !json.output.contains("Bearer ey"))
        }
    }

    @Test("wait and sessions: the login of a MobileFirst upstream is meant by the challenges that it asks, too")
    func meantByChallenge() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            #expect(try await bank.countersign("wait", "bank-pin").exit == 0)
            let unknown = try await bank.countersign("wait", "no-such")
            #expect(unknown.exit == 64)
            #expect(unknown.errors.contains("bank-pin"))
            let file = bank.folder.path(of: "countersign.yaml")
            let list = try await Command.countersign("sessions", "list", "--config", file, in: bank.folder)
            #expect(list.output.contains("(bank-pin): held"))
            for command in [["sessions", "drop"], ["unlatch"]] {
                let none = try await Command.run(
                    [Binary.path] + command + ["bank-pim", "--config", file], in: bank.folder)
                #expect(none.exit == 64 && none.output.isEmpty, "\(none)")
                let words = "no login of the daemon has the name bank-pim; did you mean \"bank-pin\"?"
                #expect(none.errors.contains(words), "\(none)")
            }
            let unnamed = try await Command.countersign("sessions", "drop", "--config", file, in: bank.folder)
            #expect(unnamed.exit == 64 && unnamed.errors.contains("--all"), "\(unnamed)")
            let dropped = try await Command.countersign(
                "sessions", "drop", "bank-pin", "--config", file, in: bank.folder)
            #expect(dropped.exit == 0)
            #expect(dropped.output != "dropped 0\n")
            try await bank.expect("/balance", status: 200)
        }
    }

    @Test("login: a rejected credential ends it with another code, and the daemon keeps to the latch")
    func rejectedLogin() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration, startsDaemon: false) { bank in
            let rejected = try await bank.countersign("login", "bank-pin")
            #expect(rejected.exit == 69)
            #expect(rejected.output.contains("rejected"))
            #expect(!rejected.output.contains("9999"))
            let again = try await bank.countersign("login")
            #expect(again.exit == 69)
            try await bank.startDaemon()
            try await bank.expect("/balance", status: 503, code: "login-latched")
            #expect(bank.pinAnswers == 1)
            let unknown = try await bank.countersign("login", "nobody")
            #expect(unknown.exit == 64)
            #expect(unknown.errors.contains("bank-pin"))
        }
    }

    @Test("status, sessions, unlatch and wait speak to the running daemon")
    func running() async throws {
        try await withBank { bank in
            let waited = try await bank.countersign("wait", "--timeout", "5s")
            #expect(waited.exit == 0, "\(waited)")
            try await bank.expect("/balance", status: 200)
            let status = try await bank.countersign("status", "--json")
            #expect(status.exit == 0)
            #expect(JSON(parsing: Array(status.output.utf8))?["upstreams"]?["bank"] != nil)
            let alive = try await bank.countersign("status", "--live")
            #expect(alive.exit == 0 && alive.output.isEmpty, "\(alive)")
            let dropped = try await bank.countersignSessionsDrop()
            #expect(dropped.exit == 0)
            try await bank.expect("/balance", status: 200)
            // The check holds at the server: a new token costs no second answer.
            #expect(bank.pinAnswers == 1)
            #expect(bank.record.tokens.count > 2)
            await bank.stopDaemon()
            let gone = try await bank.countersign("status")
            #expect(gone.exit == 69)
            #expect(gone.errors.split(separator: "\n").count == 1)
            #expect(try await bank.countersign("status", "--live").exit == 69)
        }
    }

    @Test("login and doctor are run by the daemon, with its credentials, and by --here with one's own")
    func byDaemon() async throws {
        try await withBank { bank in
            let file = bank.folder.path(of: "countersign.yaml")
            // Only the daemon's environment has the PIN.
            let login = try await Command.countersign("login", "bank-pin", "--config", file, in: bank.folder)
            #expect(login.exit == 0 && login.output.contains("session established"), "\(login)")
            let json = try await Command.countersign("login", "--json", "--config", file, in: bank.folder)
            #expect(json.exit == 0 && json.output.contains("\"outcome\":\"succeeded\""), "\(json)")
            let here = try await Command.countersign(
                "login", "--here", "--config", file,
                environment: ["STATE_DIRECTORY": bank.folder.path(of: "other-state")], in: bank.folder)
            #expect(here.exit == 69 && here.output.contains("no-credential"), "\(here)")
            let doctor = try await Command.countersign("doctor", "bank", "--config", file, in: bank.folder)
            #expect(doctor.exit == 0 && doctor.output.contains("upstream bank"), "\(doctor)")
            let unknown = try await Command.countersign("doctor", "bnk", "--config", file, in: bank.folder)
            #expect(unknown.exit == 64 && unknown.errors.contains("there is no upstream bnk"), "\(unknown)")
        }
    }

    @Test("bugreport writes one file for its owner, with everything but secrets")
    func bugReport() async throws {
        try await withBank(unmistakable, rules: unmistakableRules) { bank in
            try await bank.expect("/balance", status: 200)
            let written = try await bank.countersign("bugreport", "--output", "report.txt")
            #expect(written.exit == 0, "\(written)")
            let report = bank.folder.text(of: "report.txt")
            for section in ["Versions", "Configuration in force", "Status", "Doctor", "Journal", "Left out"] {
                #expect(report.contains("==== \(section)"), "\(report.prefix(2000))")
            }
            #expect(report.contains("libcurl 7.") && report.contains("\"conversations\":[{"), "\(report.prefix(2000))")
            #expect(!report.contains(unmistakablePIN))
            let mode = try await Command.run(["/usr/bin/stat", "-c", "%a", "report.txt"], in: bank.folder)
            #expect(mode.output == "600\n", "\(mode)")
            let again = try await bank.countersign("bugreport", "--output", "report.txt")
            #expect(again.exit == 69 && again.errors.contains("report.txt"), "\(again)")
        }
    }

    @Test("demo --check: the demonstration works, on ports of its own, and leaves nothing behind")
    func demo() async throws {
        let folder = try Folder()
        let demo = try await Command.countersign("demo", "--check", in: folder)
        #expect(demo.exit == 0, "\(demo)")
        #expect(demo.output.contains("the demonstration works"))
    }

    @Test("a command that nobody knows ends with 64")
    func usage() async throws {
        let folder = try Folder()
        for arguments in [["serve", "--nonsense"], ["nonsense"], ["login", "a", "b"]] {
            let command = try await Command.run([Binary.path] + arguments, in: folder)
            #expect(command.exit == 64 && command.errors.hasPrefix("countersign: "), "\(arguments) \(command)")
        }
        for (arguments, advice) in [
            (["stauts"], "countersign has no command \"stauts\"; did you mean \"status\"?"),
            (["sessions", "drpo"], "countersign sessions has no command \"drpo\"; did you mean \"drop\"?"),
            (["status", "--sokcet", "x"], "--socket"),
        ] {
            let command = try await Command.run([Binary.path] + arguments, in: folder)
            #expect(command.exit == 64 && command.errors.contains(advice), "\(arguments) \(command)")
        }
        let value = try await Command.run([Binary.path, "keyring", "set", "bank", "pin", "hunter2"], in: folder)
        #expect(value.exit == 64 && !value.errors.contains("hunter2"), "\(value)")
        #expect(value.errors.contains("type it at the prompt"), "\(value)")
    }
}

extension Bank {
    fileprivate func countersignSessionsDrop() async throws -> Command {
        try await Command.run(
            [Binary.path, "sessions", "drop", "--all", "--config", folder.path(of: "countersign.yaml")],
            environment: environment, in: folder)
    }
}

/// A PIN that does not occur in any port or duration.
private let unmistakablePIN = "73914682"

private var unmistakable: BankConfiguration {
    var configuration = BankConfiguration()
    configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = unmistakablePIN
    return configuration
}

private var unmistakableRules: MobileFirstRules {
    var rules = FakeUpstream.rules
    rules.checks = [.pinCodeAttempts(pin: unmistakablePIN)]
    return rules
}
