// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
internal import Testing

@Suite("Where callers come in")
struct ListenerTests {
    @Test("a Unix socket has the mode that was asked for, and goes when the daemon does")
    func unixSocket() async throws {
        var configuration = BankConfiguration()
        configuration.listeners = "address: \"unix:${FOLDER}/proxy.sock?mode=0660\"\nupstream: bank"
        try await withBank(configuration) { bank in
            let socket = bank.folder.path(of: "proxy.sock")
            var status = stat()
            #expect(unsafe stat(socket, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o660)
            let answer = try await Curl.run(["--unix-socket", socket, "http://localhost/balance"], in: bank.folder)
            #expect(answer.status == 200)

            // A socket file of a killed daemon does not keep the next one from starting.
            await bank.killDaemon()
            #expect(unsafe access(socket, F_OK) == 0)
            try await bank.startDaemon()
            let again = try await Curl.run(["--unix-socket", socket, "http://localhost/balance"], in: bank.folder)
            #expect(again.status == 200)
            await bank.stopDaemon()
            #expect(unsafe access(socket, F_OK) != 0)
        }
    }

    @Test("a Unix socket lets in the users that it names and nobody else", arguments: [true, false])
    func users(isNamed: Bool) async throws {
        var configuration = BankConfiguration()
        let uid = isNamed ? getuid() : getuid() + 12_345
        configuration.listeners = "address: \"unix:${FOLDER}/proxy.sock\"\nupstream: bank\nusers: [\"\(uid)\"]"
        try await withBank(configuration) { bank in
            let answer = try await Curl.run(
                ["--unix-socket", bank.folder.path(of: "proxy.sock"), "http://localhost/balance"], in: bank.folder)
            #expect(answer.status == (isNamed ? 200 : 403))
            #expect(answer.code == (isNamed ? nil : "caller-not-allowed"))
            #expect(bank.pinAnswers == (isNamed ? 1 : 0))
        }
    }

    @Test("another user's program is told from ours, at a listener and at a route", .enabled(if: getuid() == 0))
    func otherUsers() async throws {
        var configuration = BankConfiguration()
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            users: ["\(getuid())", nobody]
            routes:
              - { path: /open/, users: [nobody], upstream: server }
              - { path: /basic/, upstream: server }
            """
        try await withBank(configuration) { bank in
            func status(_ path: String, _ user: String...) async throws -> String {
                try await Command.run(
                    (user.isEmpty ? [] : ["/usr/bin/setpriv", "--clear-groups", "--reuid"] + user) + [
                        "/usr/bin/curl", "-q", "-s", "--noproxy", "*", "--max-time", "200", "-o", "/dev/null", "-w",
                        "%{http_code}", "http://127.0.0.1:\(bank.port)\(path)",
                    ], in: bank.folder
                ).output
            }
            let statuses = [
                try await status("/open/x", "nobody"), try await status("/open/x"), try await status("/basic/x"),
                try await status("/basic/x", "daemon"),
            ]
            #expect(statuses == ["200", "403", "401", "403"])
        }
    }

    @Test("a port that is taken ends the start with a word about it")
    func portTaken() async throws {
        try await withBank { bank in
            let second = try await bank.countersign("serve")
            #expect(second.exit == 69)
            #expect(second.errors.contains("127.0.0.1:\(bank.port)"))
            #expect(second.errors.contains("another program listens there"))
            try await bank.expect("/balance", status: 200)
        }
    }

    @Test("a foreign Host is 421, loopback names and configured ones are served")
    func hosts() async throws {
        var configuration = BankConfiguration()
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server\nhosts: [bank.example]"
        try await withBank(configuration) { bank in
            for host in ["localhost", "LOCALHOST:1", "app.localhost", "127.0.0.1", "[::1]:80", "bank.example"] {
                try await bank.expect("/open/x", "-H", "Host: \(host)", status: 200)
            }
            for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
                try await bank.expect("/open/x", "-H", "Host: \(host)", status: 421, code: "host-not-allowed")
            }
            #expect(bank.record.hits.count == 6)
        }
    }

    @Test("a browser on behalf of another site is 403, one on our own behalf is served")
    func browsers() async throws {
        try await withBank { bank in
            for field in [
                "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none",
                "Origin: https://evil.example", "Origin: null", "Origin: http://localhost.evil.example",
                "Origin: http://localhost:3000",
            ] {
                try await bank.expect("/balance", "-H", field, status: 403, code: "caller-not-allowed")
            }
            #expect(bank.pinAnswers == 0)
            for field in ["Sec-Fetch-Site: same-origin", "Origin: \(bank.url(""))"] {
                try await bank.expect("/balance", "-H", field, status: 200)
            }
            try await bank.expect(
                "/balance", "-H", "Sec-Fetch-Site: none", "-H", "Sec-Fetch-Mode: navigate", status: 200)
        }
    }

    @Test("routes choose by host, path and method, and may strip their prefix")
    func routes() async throws {
        var configuration = BankConfiguration()
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            routes:
              - { host: open.localhost, upstream: open }
              - { path: /accounts/, methods: [GET, HEAD], upstream: open, strip-prefix: true }
              - { path: /accounts/, upstream: server }
              - { path: /open/, upstream: server }
            """
        configuration.upstreams = ["open:\n  url: http://127.0.0.1:${UPSTREAM_PORT}/open/"]
        try await withBank(configuration) { bank in
            let byHost = try await bank.expect("/a/b?c", "-H", "Host: open.localhost", status: 200)
            #expect(byHost.json?["path"] == "/open/a/b")
            let byPath = try await bank.expect("/accounts/a?b", status: 200)
            #expect(byPath.json?["path"] == "/open/a")
            #expect(byPath.json?["query"] == "b")
            // The other method takes the next route, with its prefix, to an address without a resource.
            try await bank.expect("/accounts/a", "-d", "x", status: 404)
            #expect(bank.record.count("POST", "/accounts/a", status: 404) == 1)
            try await bank.expect("/open/x", status: 200)
            try await bank.expect("/elsewhere", status: 404, code: "no-route")
            try await bank.expect("/accountsx", status: 404, code: "no-route")
        }
    }
}

@Suite("A socket that systemd holds")
struct SocketActivationTests {
    private static var configuration: BankConfiguration {
        var configuration = BankConfiguration()
        configuration.listeners = "address: systemd:http\nupstream: bank"
        return configuration
    }

    @Test("is served under its name, from the very request that started the daemon")
    func activated() async throws {
        try await withBank(Self.configuration, startsDaemon: false) { bank in
            try await bank.startDaemon(before: bank.activation(name: "http"))
            let answer = try await bank.curlWhenListening("/balance")
            #expect(answer.status == 200)
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)
            #expect(await bank.stopDaemon() == 0)
        }
    }

    @Test("of another name ends the start, and both names are told")
    func wrongName() async throws {
        try await withBank(Self.configuration, startsDaemon: false) { bank in
            let daemon = try await bank.startDaemon(before: bank.activation(name: "other"))
            _ = try await bank.curlWhenListening("/balance")
            #expect(await daemon.child.waitForExit() == 78)
            #expect(daemon.log.contains("http"))
            #expect(daemon.log.contains("other"))
            await bank.stopDaemonThatFailed()
        }
    }
}

extension Bank {
    /// Returns the command that precedes the program's name, so that the first connection starts it.
    fileprivate func activation(name: String) -> [String] {
        let names = environment.keys.sorted() + baseEnvironment(folder).keys.sorted()
        return ["/usr/bin/systemd-socket-activate", "--listen=127.0.0.1:\(port)", "--fdname=\(name)"]
            + names.map { "--setenv=\($0)" }
    }

    /// Requests a path as soon as a process listens, which no log shows.
    fileprivate func curlWhenListening(_ path: String) async throws -> Curl {
        var answer = try await curl(path)
        // 7: the connection was refused.
        _ = try await eventually {
            if answer.exit == 7 { answer = try await curl(path) }
            return answer.exit != 7
        }
        return answer
    }

    /// Forgets a daemon that has ended by itself with a code of its own.
    fileprivate func stopDaemonThatFailed() async { _ = await stopDaemon() }
}

@Suite("The admin socket that nobody configured")
struct AdminSocketTests {
    @Test("is the first daemon's; another one serves without it, says so, and leaves it alone")
    func shared() async throws {
        try await Slots.run(run)
    }

    private func run() async throws {
        let (one, two) = (try Folder(), try Folder())
        let ports = [Ports.next(), Ports.next()]
        for (folder, port) in zip([one, two], ports) {
            folder.write(
                """
                listeners: [{ address: "127.0.0.1:\(port)", upstream: none }]
                upstreams: { none: { url: "http://127.0.0.1:1/" } }
                log: { format: json }
                """, to: "countersign.yaml")
        }
        let first = try await DaemonProcess.start(in: one)
        let second = try await DaemonProcess.start(in: two, environment: ["RUNTIME_DIRECTORY": one.path(of: "run")])
        #expect(second.log.contains("listener left out"))
        #expect(try await Curl.run(["http://127.0.0.1:\(ports[1])/"], in: two).code == "upstream-unreachable")
        // A command that means the second daemon must not change the first.
        for command in [["status"], ["sessions", "drop", "--all"], ["unlatch", "none"]] {
            let other = try await Command.run(
                [Binary.path] + command + ["--config", two.path(of: "countersign.yaml")],
                environment: ["RUNTIME_DIRECTORY": one.path(of: "run")], in: two)
            #expect(other.exit == 69 && other.errors.contains("countersign.yaml, not with "), "\(other)")
        }
        #expect(await second.child.end() == 0)

        let file = one.path(of: "countersign.yaml")
        #expect(try await Command.countersign("status", "--config", file, in: one).exit == 0)
        #expect(await first.child.end() == 0)
    }
}
