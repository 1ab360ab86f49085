// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("A login page that only a script fills, and a helper that logs in")
struct HelperLoginTests {
    /// Returns the fake, with `login` in the configuration.
    fileprivate static func kind(_ login: String, _ arguments: String...) -> FakeKind {
        FakeKind(
            script: "scripted", arguments: arguments,
            challenge: """
                gateway: none
                detect: { body-contains: /app.js }
                login: \(login)
                """)
    }

    /// Returns the fake, with the helper that needs no browser.
    fileprivate static func kind(_ folder: Folder, mode: String = "right", more: String = "") -> FakeKind {
        let program = Repository.path(of: "Tests/Scripts/fakes/scripted-login")
        return kind("{ exec: [\(program), \(folder.path), --mode, \(mode)]\(more) }")
    }

    /// Runs of the helper that leaves its notes there.
    fileprivate static func runs(_ folder: Folder) -> Int {
        folder.text(of: "runs").split(separator: "\n").count
    }

    @Test("one run of the helper serves all callers, and another follows the end of the session")
    func works() async throws {
        let notes = try Folder()
        try await withFake(Self.kind(notes)) { bank, fake in
            let answers = try await bank.storm(connections: 20, requests: 1) { number in
                "POST /app/\(number) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\na=b"
            }
            #expect(answers.count == 20 && answers.allSatisfy { $0.status == 200 })
            let first = try await bank.expect("/app/one?q=1", status: 200)
            #expect(first.json?["principal"]?.string == "ann" && first.field("set-cookie") == nil, "\(first.summary)")
            #expect(first.json?["cookies"]?.string == "seen; sid")
            #expect(Self.runs(notes) == 1 && fake.logins == ["ann ok"])
            #expect(
                notes.text(of: "runs").hasPrefix(
                    "1 portal http://127.0.0.1:\(fake.port) http://127.0.0.1:\(fake.port)/ "))
            try await fake.direct("/-fake/expire")
            try await bank.expect("/app/two", status: 200)
            #expect(Self.runs(notes) == 2 && fake.logins == ["ann ok", "ann ok"])
        }
    }

    @Test("neither its arguments nor its environment nor the log hold a secret")
    func secrecy() async throws {
        let notes = try Folder()
        try await withFake(Self.kind(notes, mode: "crash")) { bank, fake in
            let answer = try await bank.expect("/app/", code: "login-failed")
            #expect(!answer.text.contains("scripted-login") && !answer.text.contains("demo"), "\(answer.text)")
            let seen = notes.text(of: "seen")
            #expect(seen.contains("scripted-login") && seen.contains("PATH="))
            #expect(!seen.contains("demo") && !seen.contains("COUNTERSIGN") && !seen.contains("CREDENTIALS"), "\(seen)")
            await bank.stopDaemon()
            let log = bank.folder.text(of: "daemon.log")
            #expect(log.contains("scripted-login") && log.contains("exit code 3"), "\(log)")
            #expect(log.contains("it is no use with <redacted>") && !log.contains("demo"), "\(log)")
            #expect(fake.logins.isEmpty)
        }
    }

    @Test("a wrong password reaches the server once, and the latch survives a restart")
    func wrongPassword() async throws {
        let notes = try Folder()
        try await withFake(Self.kind(notes), password: "not-it") { bank, fake in
            try await bank.expect("/app/", status: 502, code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/app/", status: 503, code: "login-latched") }
            await bank.stopDaemon()
            try await bank.startDaemon()
            try await bank.expect("/app/", status: 503, code: "login-latched")
            #expect(Self.runs(notes) == 1 && fake.logins == ["ann wrong"] && fake.arrived.isEmpty)
            #expect(!bank.folder.text(of: "daemon.log").contains("not-it"))
        }
    }

    @Test("a helper that hangs is killed in time with its children, and nothing latches")
    func hangs() async throws {
        let notes = try Folder()
        try await withFake(Self.kind(notes, mode: "hang", more: ", timeout: 10s")) { bank, _ in
            let answer = try await bank.expect("/app/", code: "login-timeout")
            #expect(answer.detail.contains("login.timeout"), "\(answer.text)")
            let child = try #require(notes.text(of: "child").split(separator: "\n").first.flatMap { pid_t($0) })
            #expect(await eventually { kill(child, 0) != 0 || isZombie(child) })
        }
    }

    @Test("what a helper answers beyond its right is refused, and told by `countersign login`")
    func foreign() async throws {
        let notes = try Folder()
        try await withFake(Self.kind(notes, mode: "foreign")) { bank, fake in
            let answer = try await bank.expect("/app/", status: 200)
            #expect(answer.json?["cookies"]?.string == "seen; sid", "\(answer.summary)")
            let told = try await bank.countersign("login", "portal")
            #expect(told.output.contains("the cookie foreign was refused"), "\(told.output)")
            #expect(told.output.contains("the field Host was refused"), "\(told.output)")
        }
    }

    @Test("a helper in a unit of its own answers through its socket")
    func socket() async throws {
        let notes = try Folder()
        let (socket, program) = (notes.path(of: "s"), Repository.path(of: "Tests/Scripts/fakes/scripted-login"))
        let manager = try await Child.start(
            Child.Start(
                arguments: [
                    "/usr/bin/systemd-socket-activate", "--accept", "--inetd", "--listen=\(socket)", program,
                    notes.path,
                ], environment: ["PATH": "/usr/bin:/bin"], folder: notes.path, output: notes.path(of: "out"),
                errors: notes.path(of: "errors")))
        #expect(await eventually { unsafe access(socket, F_OK) == 0 })
        try await withFake(Self.kind("{ socket: \(socket) }")) { bank, fake in
            let answer = try await bank.expect("/app/", status: 200)
            #expect(answer.json?["principal"]?.string == "ann", "\(answer.summary) \(notes.text(of: "errors"))")
            #expect(Self.runs(notes) == 1 && fake.logins == ["ann ok"])
        }
        await manager.end()
    }

    @Test(
        "config/browser-login logs in with a real browser",
        arguments: [[], ["--shadow"]])
    func browser(_ arguments: [String]) async throws {
        var kind = Self.kind("{ exec: [\(Repository.path(of: "config/browser-login/browser-login")), --no-sandbox] }")
        kind.arguments = arguments
        try await withFake(kind) { bank, fake in
            let answer = try await bank.expect("/app/", status: 200)
            #expect(answer.json?["principal"]?.string == "ann", "\(answer.summary)")
            #expect(answer.json?["cookies"]?.string == "seen; sid" && fake.logins == ["ann ok"])
        }
    }

    @Test("config/browser-login tells a wrong password, which is sent once")
    func browserWrong() async throws {
        let program = Repository.path(of: "config/browser-login/browser-login")
        try await withFake(Self.kind("{ exec: [\(program), --no-sandbox] }"), password: "not-it") { bank, fake in
            try await bank.expect("/app/", status: 502, code: "login-rejected")
            try await bank.expect("/app/", status: 503, code: "login-latched")
            #expect(fake.logins == ["ann wrong"])
        }
    }
}

/// Returns whether a process has ended without being waited for.
private func isZombie(_ process: pid_t) -> Bool {
    String(decoding: readFile("/proc/\(process)/status"), as: UTF8.self).contains("State:\tZ")
}

/// A page that scripts build, a browser, and a real systemd.
@Suite("A browser in a unit of its own")
struct ServiceBrowserTests {
    private static let configuration = """
        listeners:
          - { address: 127.0.0.1:8080, upstream: portal }
        admin: { address: "unix:/run/countersign/admin.sock" }
        upstreams:
          portal: { url: "http://127.0.0.1:8070/" }
        credentials:
          sources: [systemd]
        challenges:
          - name: portal
            upstream: portal
            gateway: none
            credential: portal
            detect: { body-contains: /app.js }
            login: { socket: /run/countersign-browser.socket }

        """

    @Test("logs the hardened daemon in, and leaves nothing behind")
    func browser() async throws {
        var scenario = SystemdScenario(configuration: Self.configuration)
        scenario.files = [
            "/etc/countersign/secrets/portal.username": "ann", "/etc/countersign/secrets/portal.password": "demo",
        ]
        for name in [
            "browser-login", "countersign-browser.socket", "countersign-browser@.service", "countersign-group.conf",
        ] {
            scenario.files["/srv/browser-login/\(name)"] = Repository.text(of: "config/browser-login/\(name)")
        }
        for name in ["fake.py", "scripted"] {
            scenario.files["/srv/fakes/\(name)"] = Repository.text(of: "Tests/Scripts/fakes/\(name)")
        }
        scenario.dropIn = """
            [Service]
            LoadCredential=portal.username:/etc/countersign/secrets/portal.username
            LoadCredential=portal.password:/etc/countersign/secrets/portal.password

            """
        scenario.limit = 240
        try await scenario.run("browser")
    }
}
