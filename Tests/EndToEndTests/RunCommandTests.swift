// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("countersign run")
struct RunCommandTests {
    @Test("gives a command the address of an upstream, drains, and exits with its status")
    func status() async throws {
        try await withBank(startsDaemon: false) { bank in
            let script = "curl -sS \"$BASE/balance\" && curl -sS \"$ALL/balance\" && exit 7"
            let run = try await bank.countersign(
                "run", "--env", "BASE={upstream:bank}", "--env", "ALL={listener}", "--", "sh", "-c", script)
            #expect(run.exit == 7, "\(run)")
            #expect(run.output.split(separator: "}").count == 2 && run.output.contains("balance"), "\(run)")
            // One login for both, and another process next time.
            #expect(bank.pinAnswers == 1)
            let killed = try await bank.countersign("run", "--env", "A={listener}", "--", "sh", "-c", "kill -9 $$")
            #expect(killed.exit == 137, "\(killed)")
        }
    }

    @Test("shows no secret to the command, which keeps its other variables, its input and its arguments")
    func variables() async throws {
        var configuration = BankConfiguration()
        configuration.environment["OTHER"] = "kept"
        try await withBank(configuration, startsDaemon: false) { bank in
            let run = try await Command.run(
                [
                    Binary.path, "run", "-c", bank.folder.path(of: "countersign.yaml"), "--env",
                    "A=x{nothing}{listener}y", "--", "sh", "-c", "env; cat; echo \"$0 $1\"", "a b", "--env",
                ], environment: bank.environment, input: Array("typed\n".utf8), in: bank.folder)
            #expect(run.exit == 0, "\(run)")
            let lines = run.output.split(separator: "\n")
            #expect(!run.output.contains("COUNTERSIGN_") && !run.output.contains("1234"), "\(run)")
            #expect(lines.contains("OTHER=kept") && lines.contains("typed") && lines.contains("a b --env"), "\(run)")
            #expect(lines.contains { $0.hasPrefix("A=x{nothing}http://127.0.0.1:") && $0.hasSuffix("y") }, "\(run)")
        }
    }

    @Test("leaves standard output to the command, and writes nothing where all goes well")
    func quiet() async throws {
        var configuration = BankConfiguration()
        configuration.more = ["access-log: json"]
        try await withBank(configuration, startsDaemon: false) { bank in
            let run = try await bank.countersign(
                "run", "--env", "BASE={upstream:bank}", "--", "sh", "-c",
                "curl -sS -o body -w '%{http_code}' $BASE/balance")
            #expect(run.exit == 0 && run.output == "200" && run.errors.isEmpty, "\(run)")
            #expect(bank.pinAnswers == 1)
            let file = bank.folder.path(of: "access.log")
            bank.configure { $0.more = ["access-log: { format: json, to: \(file) }"] }
            let kept = try await bank.countersign(
                "run", "--env", "BASE={upstream:bank}", "--", "sh", "-c", "curl -sS -o body $BASE/balance")
            #expect(kept.exit == 0 && kept.output.isEmpty && bank.folder.text(of: "access.log").contains("/balance"))
        }
    }

    @Test("starts the command with the limit of open files that it was started with itself")
    func openFiles() async throws {
        try await withBank(startsDaemon: false) { bank in
            let file = bank.folder.path(of: "countersign.yaml")
            let run = try await Command.run(
                [
                    "/bin/sh", "-c", "ulimit -Sn 512; exec \"$@\"", "sh", Binary.path, "run", "-c", file, "--env",
                    "A={listener}",
                    "--", "sh", "-c", "ulimit -Sn",
                ], environment: bank.environment, in: bank.folder)
            #expect(run.exit == 0 && run.output == "512\n", "\(run)")
        }
    }

    @Test("gives a command without --env the address of the only upstream in COUNTERSIGN_URL")
    func onlyUpstream() async throws {
        try await withBank(startsDaemon: false) { bank in
            bank.folder.write(
                """
                listeners: [{ address: "127.0.0.1:\(bank.port)" }]
                upstreams: { bank: { url: "http://127.0.0.1:\(bank.upstream.port)/" } }

                """, to: "one.yaml")
            let run = try await Command.run(
                [
                    Binary.path, "run", "-c", bank.folder.path(of: "one.yaml"), "--", "sh", "-c",
                    "env | grep -i -e ^COUNTERSIGN_ -e _proxy; curl -sS -o body -w '%{http_code}' $COUNTERSIGN_URL/open/",
                ], environment: ["NO_PROXY": "intranet.example"], in: bank.folder)
            #expect(run.exit == 0 && run.output.hasSuffix("200"), "\(run)")
            let variables = Set(run.output.split(separator: "\n").dropLast().map { $0.prefix { $0 != "=" } })
            #expect(variables == ["COUNTERSIGN_URL", "http_proxy", "no_proxy", "NO_PROXY"], "\(run)")
            let lines = run.output.split(separator: "\n")
            #expect(lines.contains("no_proxy=intranet.example,127.0.0.1,localhost"), "\(run)")
        }
    }

    @Test("gives a command without --env an address for each of several upstreams, each its own")
    func severalUpstreams() async throws {
        try await withBank(startsDaemon: false) { bank in
            let script = """
                for url in $COUNTERSIGN_BANK_URL/balance $COUNTERSIGN_SERVER_URL/open/; do
                    curl -sS -o body -w '%{http_code} ' "$url"
                done
                echo "${COUNTERSIGN_URL-unset}"
                """
            let run = try await bank.countersign("run", "--", "sh", "-c", script)
            #expect(run.exit == 0 && run.output == "200 200 unset\n", "\(run)")
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("asks for names if two upstreams would have one variable")
    func sameVariable() async throws {
        var configuration = BankConfiguration()
        configuration.upstreams = ["a-b: { url: \"http://127.0.0.1:1/\" }", "a_b: { url: \"http://127.0.0.1:1/\" }"]
        try await withBank(configuration, startsDaemon: false) { bank in
            let run = try await bank.countersign("run", "--", "true")
            #expect(run.exit == 64 && run.errors.contains("COUNTERSIGN_A_B_URL would be"), "\(run)")
        }
    }

    @Test("answers a program that knows no other setting than http_proxy")
    func httpProxy() async throws {
        var configuration = BankConfiguration()
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            routes: [{ host: bank.example, upstream: bank }]
            """
        try await withBank(configuration, startsDaemon: false) { bank in
            for options in [["--env", "http_proxy={listener}"], []] {
                let run = try await Command.run(
                    [Binary.path, "run", "-c", bank.folder.path(of: "countersign.yaml")] + options
                        + ["--", "curl", "-sS", "http://bank.example/balance"],
                    environment: bank.environment, in: bank.folder)
                #expect(run.exit == 0 && run.output.contains("balance"), "\(run)")
            }
        }
    }

    @Test("does not send a rejected credential again in the next run")
    func latch() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration, startsDaemon: false) { bank in
            for code in ["login-rejected", "login-latched", "login-latched"] {
                let run = try await bank.countersign(
                    "run", "--env", "BASE={upstream:bank}", "--", "sh", "-c", "curl -sS $BASE/balance; exit 0")
                #expect(run.exit == 0 && run.output.contains(code), "\(run)")
            }
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("a latch of a run is opened on disk without a daemon, and within a run in its process")
    func unlatch() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration, startsDaemon: false) { bank in
            func request(_ more: String = "") async throws -> Command {
                try await bank.countersign(
                    "run", "--env", "BASE={upstream:bank}", "--", "sh", "-c", "curl -sS $BASE/balance; \(more) exit 0")
            }
            let none = try await bank.countersign("unlatch", "bank-pin")
            #expect(none.exit == 69 && none.errors.contains("has no closed latch"), "\(none)")
            #expect(try await request().output.contains("login-rejected"))
            let unknown = try await bank.countersign("unlatch", "nobody")
            #expect(unknown.exit == 64 && unknown.errors.contains("bank-pin"), "\(unknown)")
            let state = bank.folder.path(of: "state")
            let opened = try await bank.countersign("unlatch", "bank-pin")
            #expect(opened.exit == 0 && opened.output == "opened 1 in \(state), as no daemon runs\n", "\(opened)")
            let again = try await bank.countersign("unlatch", "--json", "bank")
            #expect(again.exit == 69 && again.output.isEmpty, "\(again)")
            #expect(bank.pinAnswers == 1)
            let file = bank.folder.path(of: "countersign.yaml")
            let inside = try await request("\(Binary.path) unlatch -c \(file) bank-pin; curl -sS $BASE/balance;")
            #expect(inside.output.contains("opened 1 in the processes that use \(state)\n"), "\(inside)")
            // The server is asked again, and the daemon leaves the last attempt: no latch stops it any more.
            #expect(inside.output.contains("login-rejected") && inside.output.contains("attempts-kept"), "\(inside)")
            #expect(bank.pinAnswers == 2, "\(inside)")
        }
    }

    @Test("a latch is not opened behind a daemon that uses the state and does not answer")
    func unlatchHidden() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            unsafe unlink(bank.folder.path(of: "admin.sock"))
            let refused = try await bank.countersign("unlatch", "bank-pin")
            #expect(refused.exit == 69 && refused.errors.contains("the latch was not opened"), "\(refused)")
            #expect(refused.errors.contains("process \(try bank.daemon.child.pid) uses"), "\(refused)")
            try await bank.expect("/balance", code: "login-latched")
        }
    }

    @Test("passes SIGTERM on to the command, and ends after it")
    func terminated() async throws {
        try await withBank(startsDaemon: false) { bank in
            let file = bank.folder.path(of: "countersign.yaml")
            let child = try await Child.start(
                Child.Start(
                    arguments: [
                        Binary.path, "run", "-c", file, "--env", "A={listener}", "--", "sh", "-c",
                        "trap 'echo ended; exit 3' TERM; echo began; while :; do sleep 0.05; done",
                    ],
                    environment: baseEnvironment(bank.folder).merging(bank.environment) { $1 },
                    folder: bank.folder.path, output: bank.folder.path(of: "out"), errors: bank.folder.path(of: "err")))
            #expect(await eventually { bank.folder.text(of: "out") == "began\n" })
            child.signal(SIGTERM)
            #expect(await child.waitForExit() == 3)
            #expect(bank.folder.text(of: "out") == "began\nended\n")
        }
    }

    @Test("says what is wrong before anything is started")
    func usage() async throws {
        try await withBank(startsDaemon: false) { bank in
            let cases: [([String], Int32, String)] = [
                (["--env", "A={listener}"], 64, "name the command after --"),
                (["--env", "A=1", "--", "true"], 64, "the command would not find the listeners"),
                (["--env", "A", "--", "true"], 64, "write NAME=VALUE"),
                (["--env", "A={upstream:bnk}", "--", "true"], 64, "did you mean \"bank\"?"),
                (["--env", "A={listener:1}", "--", "true"], 64, "there is no listener at 1"),
                (["--env", "A={listener}", "--", "no-such-command"], 127, "there is no such command"),
                (["--env", "A={listener}", "--", "/etc/passwd"], 126, "may not run it"),
            ]
            for (arguments, code, words) in cases {
                let run = try await Command.run(
                    [Binary.path, "run", "-c", bank.folder.path(of: "countersign.yaml")] + arguments,
                    environment: bank.environment, in: bank.folder)
                #expect(run.exit == code && run.errors.contains(words), "\(arguments) \(run)")
            }
        }
    }
}
