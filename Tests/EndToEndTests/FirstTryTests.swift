// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
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
            try await ready(bank)
            try await bank.expect(path, status: 200)
            child.signal(SIGTERM)
            #expect(await child.waitForExit() == 0)
            let output = bank.folder.text(of: "out")
            let errors = bank.folder.text(of: "err")
            #expect(errors.contains("Try it:      curl http://127.0.0.1:\(bank.port)\(path)\n"), "\(errors)")
            #expect(!(output + errors).contains("demo"), "\(output)")
            // Standard output is a configuration, and nothing else.
            let check = try await bank.countersignCheck("out")
            #expect(check.exit == 0, "\(check)\n\(output)")
        }
    }

    private func ready(_ bank: Bank) async throws {
        let isReady = await eventually { bank.folder.text(of: "err").contains("Press Ctrl-C") }
        try #require(isReady, "\(bank.folder.text(of: "err"))")
    }

    @Test("a write passes the forgery check of an application, by the field that `learn` would print")
    func forgeryToken() async throws {
        try await withServer { bank in
            bank.upstream.override { request in
                guard request.path.hasPrefix("/wiki/") else { return nil }
                let form = """
                    <form method="post" action="/wiki/login"><input name="user"><input type="password" name="pass">
                    <input type="hidden" name="csrfmiddlewaretoken" value="one"></form>
                    """
                func page(_ status: Int, _ text: String, _ fields: [(String, String)] = []) -> FakeResponse {
                    var response = FakeResponse(status)
                    response.fields = [("Content-Type", "text/html")] + fields
                    response.body = .bytes(Array(text.utf8))
                    return response
                }
                if request.path == "/wiki/login" {
                    let body = String(decoding: request.body, as: UTF8.self)
                    guard request.method == "POST", body.contains("user=ann"), body.contains("pass=demo") else {
                        return page(200, form, [("Set-Cookie", "csrftoken=one; Path=/")])
                    }
                    return page(
                        302, "",
                        [
                            ("Location", "/wiki/start"), ("Set-Cookie", "csrftoken=two; Path=/"),
                            ("Set-Cookie", "sessionid=s; Path=/; HttpOnly"),
                        ])
                }
                guard request.cookie("sessionid") == "s" else { return page(302, "", [("Location", "/wiki/login")]) }
                if request.method == "POST", request.field("X-CSRFToken") != request.cookie("csrftoken") {
                    return page(403, "CSRF verification failed")
                }
                return page(200, "\(request.method) is done")
            }
            let child = try await start(
                bank, "/wiki/start", ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "demo"])
            try await ready(bank)
            let write = try await bank.curl("/wiki/edit", "--data", "a=b")
            #expect(write.status == 200, "\(write.summary) \(bank.folder.text(of: "out"))")
            #expect(bank.folder.text(of: "out").contains("X-CSRFToken"))
            await child.end()
        }
    }

    @Test("a wrong password that was typed is asked for again, and the right one is stored if the person wants it")
    func typed() async throws {
        try await withServer { bank in
            let terminal = try PseudoTerminal()
            let state = bank.folder.path(of: "state")
            let url = "http://127.0.0.1:\(bank.upstream.port)/basic/"
            let child = try await Child.start(
                Child.Start(
                    arguments: PseudoTerminal.owning([
                        Binary.path, "serve", "--to", url, "--listen", "127.0.0.1:\(bank.port)",
                    ]),
                    environment: baseEnvironment(bank.folder).merging(["STATE_DIRECTORY": state]) { $1 },
                    folder: bank.folder.path, input: terminal.path, output: bank.folder.path(of: "out"),
                    errors: bank.folder.path(of: "err")))
            try await terminal.answer("the username of upstream", "ann")
            try await terminal.answer("the password of upstream", "mistyped")
            try await terminal.answer("the username of upstream", "ann")
            try await terminal.answer("the password of upstream", "demo")
            try await terminal.answer("[y/N]", "yes")
            try await ready(bank)
            try await bank.expect("/basic/", status: 200)
            #expect(bank.folder.text(of: "err").contains("Type the values again"))
            await child.end()
            // The kept file works by itself, in another process.
            let again = try await Child.start(
                Child.Start(
                    arguments: [Binary.path, "serve", bank.folder.path(of: "out")],
                    environment: baseEnvironment(bank.folder).merging(["STATE_DIRECTORY": state]) { $1 },
                    folder: bank.folder.path, output: bank.folder.path(of: "again.out"),
                    errors: bank.folder.path(of: "again.err")))
            let isServed = try await eventually { try await bank.curl("/basic/").status == 200 }
            #expect(isServed, "\(bank.folder.text(of: "out")) \(bank.folder.text(of: "again.err"))")
            await again.end()
            let texts = ["out", "err"].map { bank.folder.text(of: $0) }.joined()
            #expect(!texts.contains("demo") && !texts.contains("mistyped"), "\(texts)")
        }
    }

    @Test("a value of the environment that the server refuses is sent once, and nothing is served")
    func refused() async throws {
        try await withServer { bank in
            let run = try await Command.run(
                [
                    Binary.path, "serve", "--to", "http://127.0.0.1:\(bank.upstream.port)/form/", "--credential", "ann",
                    "--listen", "127.0.0.1:\(bank.port)",
                ], environment: ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "wrong"],
                in: bank.folder)
            #expect(run.exit == 69 && run.errors.contains("login-rejected") && run.output.isEmpty, "\(run)")
            #expect(run.errors.contains("were sent once"), "\(run)")
        }
    }

    @Test("a server with an authority of its own is tried by --ca, which the kept file names")
    func authorities() async throws {
        try await withServer { bank in
            let front = try await TLSFront(before: bank.upstream.port)
            let arguments = ["serve", "--to", "https://localhost:\(front.port)/open/"]
            let without = try await Command.run([Binary.path] + arguments, in: bank.folder)
            #expect(without.exit == 69 && without.errors.contains("--ca"), "\(without)")
            let child = try await Child.start(
                Child.Start(
                    arguments: [Binary.path] + arguments + [
                        "--ca", front.certificate, "--listen", "127.0.0.1:\(bank.port)",
                    ],
                    environment: baseEnvironment(bank.folder), folder: bank.folder.path,
                    output: bank.folder.path(of: "out"), errors: bank.folder.path(of: "err")))
            try await ready(bank)
            try await bank.expect("/open/", status: 200)
            #expect(bank.folder.text(of: "out").contains("tls: { ca: \(front.certificate) }"))
            // An API that demands no login here may still have one that is written by hand.
            #expect(bank.folder.text(of: "err").contains("challenges/gateways.md"))
            await child.end()
            await front.stop()
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
