// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization
internal import TestSupport
import Testing

@Suite("countersign doctor")
struct DoctorTests {
    @Test("finds nothing wrong where all is well, sends no secret, and ends with 0")
    func healthy() async throws {
        let secret = "73519842"
        var configuration = BankConfiguration()
        configuration.environment = ["COUNTERSIGN_BANK_PIN__PIN": secret]
        try await withBank(configuration) { bank in
            let text = try await bank.countersign("doctor")
            #expect(text.exit == 0, "\(text)")
            for words in ["held by a running countersign", "the clocks agree", "bank-pin has pin", "all is well"] {
                #expect(text.output.contains(words), "\(words): \(text.output)")
            }
            #expect(!text.output.contains(secret) && !text.errors.contains(secret))
            #expect(bank.pinAnswers == 0)
            let report = try await report(bank)
            #expect(report.exit == 0 && report.json["status"] == "ok", "\(report.json)")
            #expect(report.states.allSatisfy { ["ok", "note"].contains($0) })
        }
    }

    @Test(
        "asks for a path with a query, and for none that would carry a request of its own, by command or admin socket")
    func paths() async throws {
        try await withBank { bank in
            let asked = Mutex<[String]>([])
            bank.upstream.override { request in
                asked.withLock { $0.append("\(request.method) \(request.target)") }
                return .text(200, "fine")
            }
            let split =
                "/a%20HTTP/1.1%0D%0AHost:%20x%0D%0A%0D%0APOST%20/transfer%20HTTP/1.1%0D%0AHost:%20x%0D%0A%0D%0AGET%20/b"
            let refused = try await bank.admin("/doctor?upstream=server&path=\(split)", "-X", "POST")
            #expect(refused.status == 400 && refused.code == "bad-request", "\(refused.summary)")
            #expect(refused.detail.contains("no path that a request can have"), "\(refused.detail)")
            for path in ["/a b", "/a\r\nb", "/a#b", "/ä"] {
                let command = try await bank.countersign("doctor", "server", "--path", path)
                #expect(command.exit == 64 && command.errors.contains("percent-encode"), "\(command)")
            }
            #expect(asked.withLock { $0 } == [])
            let good = try await bank.countersign("doctor", "server", "--path", "open/x%20y?q=%5B")
            #expect(good.exit == 0, "\(good)")
            #expect(asked.withLock { $0 } == ["GET /open/x%20y?q=%5B"])
        }
    }

    @Test("says which challenge takes what a request meets, and runs the logins only when it is told to")
    func login() async throws {
        var configuration = BankConfiguration.oauth("grant: client-credentials")
        configuration.mobileFirst = []
        try await withBank(configuration, startsDaemon: false) { bank in
            let look = try await report(bank, "server", "--path", "/oauth/api/echo")
            #expect(
                look.detail("upstream server", "challenge").contains(
                    "401, WWW-Authenticate: Bearer (realm \"api\"); api (bearer)"))
            #expect(look.state("upstream server", "login") == "note" && bank.record.tokens.isEmpty)
            #expect(look.state("local", "listener") == "ok" && look.detail("local", "listener").contains("is free"))
            let login = try await report(bank, "server", "--login", "--path", "/oauth/api/echo")
            #expect(login.exit == 0 && login.state("upstream server", "login") == "ok", "\(login.json)")
            #expect(bank.record.tokens.count == 1)
        }
    }

    @Test("tells what is wrong with each kind of upstream, and what to do")
    func broken() async throws {
        let servers = try await TLSServers()
        let full = try FullListener()
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.challenges = []
        let addresses = servers.addresses.merging([
            "dns": (url: "http://no-such-host.invalid/", more: ""),
            "refused": (url: "http://127.0.0.1:\(Ports.next())/", more: ""),
            "connect-timeout": (url: "http://127.0.0.1:\(full.port)/", more: "timeouts: { connect: 300ms }"),
            "no-tls": (url: "https://127.0.0.1:\(servers.plainPort)/", more: ""),
            "basic": (url: "http://127.0.0.1:${UPSTREAM_PORT}/basic/", more: ""),
            "clock": (url: "http://127.0.0.1:${UPSTREAM_PORT}/clock/", more: ""),
        ]) { $1 }
        configuration.upstreams = addresses.map { name, address in
            "\(name):\n  url: \"\(address.url)\"" + (address.more.isEmpty ? "" : "\n  \(address.more)")
        }
        let wanted = [
            ("dns", "name", "failed", "cannot be resolved", "getent hosts"),
            ("refused", "connection", "failed", "refused", "check that it runs"),
            ("connect-timeout", "connection", "failed", "no answer within", "check that it runs"),
            ("no-tls", "tls", "failed", "does not speak TLS", "Check the port"),
            ("tls-name", "tls", "failed", "for another name", "Use a name"),
            ("tls-name", "certificate", "warning", "DNS:elsewhere.example", "renew the certificate in time"),
            ("tls-expired", "tls", "failed", "has expired", "renewed"),
            ("tls-expired", "certificate", "failed", "expired 1 day ago", "renew the certificate"),
            ("tls-not-yet-valid", "certificate", "failed", "2090-01-01", "clocks"),
            ("tls-unknown-authority", "certificate", "warning", "CN = Another authority", "renew the certificate"),
            ("tls-self-signed", "tls", "failed", "self-signed", "certificates below"),
            ("tls-pin", "certificate", "failed", "matches no `tls.pin`", "sha256//"),
            ("tls-version", "tls", "failed", "no version of TLS", "certificates below"),
            ("basic", "challenge", "warning", "401, WWW-Authenticate: Basic", "countersign learn http://"),
            ("clock", "clock", "warning", "behind this machine's", "timedatectl"),
        ]
        try await withBank(configuration, startsDaemon: false) { bank in
            bank.upstream.override { request in
                guard request.path.hasPrefix("/clock/") else { return nil }
                var response = FakeResponse(200)
                let head = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n"
                response.body = .raw(Array(head.utf8))
                return response
            }
            let report = try await report(bank)
            // The pin is the configuration's to correct.
            #expect(report.exit == 78 && report.json["status"] == "failed")
            for (upstream, check, state, detail, remedy) in wanted {
                let found = report.checks.first { $0.part == "upstream \(upstream)" && $0.check == check }
                let told = "\(upstream) \(check): \(found.map { "\($0)" } ?? "nothing")"
                #expect(found?.state == state, "\(told)")
                #expect(found?.detail.contains(detail) == true && found?.remedy.contains(remedy) == true, "\(told)")
            }
            let some = try await self.report(bank, "dns", "refused")
            #expect(some.exit == 69 && !some.checks.contains { $0.part == "upstream basic" })
            #expect(try await bank.countersign("doctor", "nobody").exit == 64)
        }
        await servers.stop()
        withExtendedLifetime(full) {}
    }

    @Test("tells a credential that no source has, one that is latched, and a port that somebody else holds")
    func credentials() async throws {
        var configuration = BankConfiguration()
        configuration.environment = [:]
        try await withBank(configuration, startsDaemon: false) { bank in
            let report = try await report(bank)
            #expect(report.exit == 78 && report.state("upstream bank", "credential") == "failed")
            #expect(report.detail("upstream bank", "credential").contains("no source knows bank-pin"))
        }
        configuration.environment = ["COUNTERSIGN_BANK_PIN__PIN": "9999"]
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            let latched = try await report(bank)
            #expect(latched.exit == 69 && latched.state("upstream bank", "latch") == "failed")
            #expect(
                latched.checks.first { $0.check == "latch" }?.remedy.contains("countersign unlatch bank-pin") == true)
            #expect(bank.pinAnswers == 1)
        }
        try await withBank(startsDaemon: false) { bank in
            let taken = try RawListener()
            bank.configure { $0.listeners = "address: 127.0.0.1:\(taken.port)\nupstream: bank" }
            let report = try await report(bank)
            #expect(report.exit == 69 && report.state("local", "listener") == "failed")
            #expect(report.detail("local", "listener").contains("another program listens there"))
            withExtendedLifetime(taken) {}
        }
    }

    @Test("tells a keyring that others may read by its exit code, and the secret in it to nobody")
    func keyring() async throws {
        var configuration = BankConfiguration()
        configuration.sources = ["keyring: ${FOLDER}/keyring"]
        configuration.environment = ["COUNTERSIGN_KEYRING_PASSPHRASE": "a passphrase of many words"]
        try await withBank(configuration, startsDaemon: false) { bank in
            for (arguments, input) in [(["init"], nil), (["set", "bank-pin", "pin"], Array("12348765".utf8))] {
                _ = try await Command.run(
                    [Binary.path, "keyring"] + arguments + ["--config", bank.folder.path(of: "countersign.yaml")],
                    environment: bank.environment, input: input, in: bank.folder)
            }
            #expect(try await report(bank).exit == 0)
            unsafe chmod(bank.folder.path(of: "keyring"), 0o644)
            let exposed = try await report(bank)
            #expect(exposed.exit == 77 && exposed.state("local", "source") == "failed", "\(exposed.json)")
            #expect(!exposed.text.contains("12348765"))
        }
    }

    @Test(
        "as root, looks at a service of another user as the service does, and leaves its files to it",
        .enabled(if: getuid() == 0))
    func anotherUser() async throws {
        var configuration = BankConfiguration()
        configuration.sources = ["{ keyring: \"${FOLDER}/state/keyring\", key-file: \"${FOLDER}/state/key-file\" }"]
        configuration.environment = [:]
        try await withBank(configuration, startsDaemon: false) { bank in
            let state = bank.folder.path(of: "state")
            #expect(unsafe mkdir(state, 0o700) == 0)
            var environment = bank.environment
            environment["STATE_DIRECTORY"] = state
            func run(_ arguments: String..., input: String? = nil) async throws -> Command {
                try await Command.run(
                    [Binary.path] + arguments + ["--config", bank.folder.path(of: "countersign.yaml")],
                    environment: environment, input: input.map { Array($0.utf8) }, in: bank.folder)
            }
            bank.folder.write("a passphrase of many words\n", to: "state/key-file")
            #expect(try await run("keyring", "init").exit == 0)
            #expect(try await run("keyring", "set", "bank-pin", "pin", input: "1234").exit == 0)
            // As systemd does it for DynamicUser=.
            #expect(try await Command.run(["/usr/bin/chown", "-R", "4711", state], in: bank.folder).exit == 0)

            let healthy = try await run("doctor")
            #expect(healthy.exit == 0 && healthy.output.contains("all is well"), "\(healthy)")
            let login = try await run("login")
            #expect(login.exit == 0, "\(login)")
            let others = try await Command.run(["/usr/bin/find", state, "!", "-user", "4711"], in: bank.folder)
            #expect(others.exit == 0 && others.output.isEmpty, "\(others)")

            // The file belongs to another user: it is not used, and no advice takes it from that user.
            #expect(unsafe chown(state + "/keyring", 4712, 4712) == 0)
            let foreign = try await run("doctor")
            #expect(foreign.exit == 78 && !foreign.output.contains("chown"), "\(foreign)")
        }
    }

    @Test("beside a running daemon leaves no refused request in its log, whatever the listeners take")
    func noTrace() async throws {
        var configuration = BankConfiguration()
        configuration.whole = """
            listeners:
              - address: 127.0.0.1:${PROXY_PORT}
                routes: [{ path: /open/, upstream: server }]
              - { address: "unix:${FOLDER}/users.sock", users: ["4711"], upstream: server }
              - { address: "unix:${FOLDER}/auth.sock", auth-requests: true, upstream: server }
            admin: { address: ["unix:${FOLDER}/admin.sock", "127.0.0.1:\(Ports.next())"] }
            upstreams: { server: { url: "http://127.0.0.1:${UPSTREAM_PORT}/" } }

            """
        try await withBank(configuration) { bank in
            let text = try await bank.countersign("doctor", "server")
            #expect(text.exit == 0, "\(text)")
            #expect(text.output.components("held by a running countersign") == 4, "\(text.output)")
            #expect(text.output.contains("users.sock is in use; only users listed in its `users` can find out"))
            let log = try bank.daemon.log
            #expect(!log.contains("request refused"), "\(log)")
        }
    }

    @Test("names the addresses of logins at the upstreams that have them, and at no other")
    func loginAddresses() async throws {
        var configuration = BankConfiguration()
        let port = Ports.next()
        configuration.mobileFirst = []
        configuration.upstreams = ["api:\n  url: http://127.0.0.1:${UPSTREAM_PORT}/oauth/api/"]
        configuration.challenges = [
            """
            name: api
            upstream: api
            scheme: bearer
            credential: bank-pin
            token: { url: "http://127.0.0.1:\(port)/token", grant: client-credentials }
            """
        ]
        try await withBank(configuration, startsDaemon: false) { bank in
            let report = try await report(bank)
            let parts = Set(report.checks.map(\.part).filter { $0.contains("login at") })
            #expect(parts == ["upstream api, login at http://127.0.0.1:\(port)"])
        }
    }

    // MARK: The report

    private struct Check {
        var part: String
        var check: String
        var state: String
        var detail: String
        var remedy: String
    }

    private struct Report {
        var exit: Int32
        var text: String
        var json: JSON
        var checks: [Check]

        var states: [String] { checks.map(\.state) }
        func state(_ part: String, _ check: String) -> String? { find(part, check)?.state }
        func detail(_ part: String, _ check: String) -> String { find(part, check)?.detail ?? "" }
        private func find(_ part: String, _ check: String) -> Check? {
            checks.first { $0.part == part && $0.check == check }
        }
    }

    private func report(_ bank: Bank, _ arguments: String...) async throws -> Report {
        let command = try await Command.run(
            [Binary.path, "doctor", "--json", "--config", bank.folder.path(of: "countersign.yaml")] + arguments,
            environment: bank.environment, in: bank.folder)
        let json = try #require(JSON(parsing: Array(command.output.utf8)), "\(command)")
        guard case .array(let elements)? = json["checks"] else { throw ChildError(description: command.output) }
        let checks = elements.map { element in
            func text(_ name: String) -> String { element[name]?.string ?? "" }
            return Check(
                part: text("part"), check: text("check"), state: text("status"), detail: text("detail"),
                remedy: text("remedy"))
        }
        return Report(exit: command.exit, text: command.output + command.errors, json: json, checks: checks)
    }
}
