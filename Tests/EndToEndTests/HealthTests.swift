// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

@Suite("Probes of the running daemon")
struct HealthTests {
    private static func checked(pin: String = "1234") -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.bank = ["check: { path: /balance, every: 1s }"]
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = pin
        return configuration
    }

    /// Waits until `/readyz` tells that state of a check.
    private func waits(_ bank: Bank, for state: String, of check: String) async throws -> Bool {
        try await eventually { try await bank.admin("/readyz").json?["checks"]?[check]?.string == state }
    }

    @Test("an upstream is asked through the real login, and whoever comes finds the session")
    func check() async throws {
        try await withBank(Self.checked()) { bank in
            #expect(try await waits(bank, for: "up", of: "bank"))
            #expect(try await waits(bank, for: "held", of: "bank/bank"))
            #expect(bank.pinAnswers == 1)
            let metrics = try await bank.metrics()
            #expect(metrics.values("upstream_up", ["upstream": "bank"]) == [1])
            #expect(metrics.sum("upstream_checks_total", ["outcome": "passed"]) >= 1)
            #expect(metrics.sum("upstream_check_duration_seconds") > 0)
            #expect(metrics.sum("exchanges_total") == 0 && metrics.sum("challenges_total") == 0)
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)

            await offPool { bank.upstream.stop() }
            #expect(try await waits(bank, for: "down", of: "bank"))
            let ready = try await bank.admin("/readyz", "-f")
            #expect(ready.exit == 22 && ready.status == 503)
            #expect(try bank.daemon.log.contains("upstream check failed"))
        }
    }

    @Test("a load balancer's path on a listener for nobody says whether the daemon is ready, and serves nothing")
    func healthPath() async throws {
        let port = Ports.next()
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        let mobileFirst = "application: com.sample.pincode, platform: android, version: \"1.0\""
        configuration.whole = """
            listeners:
              - { address: "127.0.0.1:${PROXY_PORT}", upstream: bank, health: /health }
              - { address: "0.0.0.0:\(port)", routes: [], health: /health }
            admin: { address: "unix:${FOLDER}/admin.sock" }
            upstreams:
              bank:
                url: http://127.0.0.1:${UPSTREAM_PORT}/mfp/api/adapters/bank/
                mobilefirst: { api: "http://127.0.0.1:${UPSTREAM_PORT}/mfp/api", \(mobileFirst) }
            challenges:
              - { name: bank-pin, upstream: bank, security-check: PinCodeAttempts, credential: bank-pin, answer: { pin: "{pin}" } }

            """
        try await withBank(configuration) { bank in
            func status(_ path: String, host: String) async throws -> Int? {
                try await Curl.run(
                    ["-H", "Host: \(host)", "http://127.0.0.1:\(port)\(path)"], in: bank.folder
                ).status
            }
            #expect(try await status("/health", host: "10.0.0.7:\(port)") == 200)
            #expect(try await status("/balance", host: "localhost") == 404)
            try await bank.expect("/balance", code: "login-rejected")
            #expect(try await eventually { try await status("/health", host: "lb.example") == 503 })
            #expect(try await bank.curl("/health").status == 503)
            #expect(bank.pinAnswers == 1)
            let explained = try await bank.countersign("explain", bank.url("/health"))
            #expect(explained.exit == 1 && explained.output.contains("the listener's `health`"), "\(explained)")
        }
    }

    @Test("a rejected credential is sent once, however often the upstream is asked")
    func latch() async throws {
        try await withBank(Self.checked(pin: "9999")) { bank in
            #expect(try await waits(bank, for: "failing", of: "bank/bank"))
            #expect(try await bank.daemon.waitForLog("no login is started for a check"))
            #expect(try await waits(bank, for: "unknown", of: "bank"))
            #expect(bank.pinAnswers == 1)
            let ready = try await bank.admin("/readyz")
            #expect(ready.status == 503 && ready.text.contains("bank/bank: login-"))
            #expect(try await bank.admin("/livez", "-f").exit == 0)
            for query in [
                "exclude=bank", "exclude=bank%2Fbank", "exclude=server&exclude=bank-pin", "exclude=server,bank-pin",
            ] {
                let answer = try await bank.admin("/readyz?\(query)", "-f")
                #expect(answer.exit == 0, "\(query): \(answer.summary)")
            }
            let other = try await bank.admin("/readyz?exclude=nobody")
            #expect(other.status == 503 && other.text.contains("exclude=nobody: there is no such check"))
            #expect(try await bank.admin("/healthz?verbose").text.contains("a latch of bank is closed"))
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("a login that fails stays not ready while the next attempt runs, until one succeeds")
    func recovery() async throws {
        let helper = try Folder()
        let program = helper.write(
            """
            #!/bin/sh
            if [ -e "\(helper.path)/slow" ]; then sleep 3; fi
            cat "\(helper.path)/answer"

            """, to: "helper", mode: 0o700)
        helper.write("{}", to: "answer")
        var configuration = BankConfiguration()
        configuration.sources = ["exec: [\(program)]"]
        configuration.environment = [:]
        try await withBank(configuration) { bank in
            #expect(try await bank.admin("/readyz").status == 200)
            try await bank.expect("/balance", code: "no-credential")
            helper.write("", to: "slow")
            var running: Curl?
            let isSeen = try await eventually {
                let ready = try await bank.admin("/readyz")
                #expect(ready.status == 503)
                guard ready.json?["checks"]?["bank/bank"]?.string == "logging-in" else { return false }
                running = ready
                return true
            }
            #expect(isSeen)
            #expect(running?.text.contains("bank/bank: no-credential") == true)
            let status = try await bank.countersign("status")
            #expect(status.exit == 69 && status.output.hasPrefix("status    not ready"), "\(status)")
            unsafe unlink(helper.path(of: "slow"))
            helper.write("{\"fields\": {\"pin\": \"1234\"}}", to: "answer")
            #expect(try await eventually { try await bank.admin("/readyz").status == 200 })
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test(
        "HAProxy asks in HTTP/1.0 and by OPTIONS, Nagios with the address as Host, curl by HEAD: each gets its answer")
    func probes() async throws {
        let port = Ports.next()
        var configuration = BankConfiguration()
        configuration.adminPort = port
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration) { bank in
            let requests = [
                "OPTIONS /readyz HTTP/1.0\r\n\r\n", "GET /readyz HTTP/1.0\r\n\r\n", "HEAD /readyz HTTP/1.0\r\n\r\n",
                "GET /readyz HTTP/1.1\r\nUser-Agent: check_http/v2.3.3\r\nConnection: close\r\nHost: 127.0.0.1:\(port)\r\n\r\n",
                "GET /readyz HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-probe/1.30\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            ]
            for status in [200, 503] {
                if status == 503 { try await bank.expect("/balance", code: "login-rejected") }
                for request in requests {
                    let connection = try RawConnection(port: port)
                    let bytes = await offPool {
                        connection.send(request)
                        return connection.rest().bytes
                    }
                    let answer = String(decoding: bytes, as: UTF8.self)
                    #expect(
                        answer.hasPrefix("HTTP/1.1 \(status) ") || answer.hasPrefix("HTTP/1.0 \(status) "),
                        "\(request)\(answer)")
                    #expect(answer.contains("Cache-Control: no-store\r\n"))
                    #expect(answer.hasSuffix("}\n") != request.hasPrefix("HEAD"))
                }
            }
        }
    }
}
