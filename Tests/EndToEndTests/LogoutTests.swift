// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Logging out")
struct LogoutTests {
    private static func configuration(logout: String = "") -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            upstream: bank
            routes:
              - { path: /form/, upstream: server }
            """
        configuration.challenges = [
            """
            name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }
            \(logout.isEmpty ? "keep-attempts: 1" : "logout: true")
            """,
            """
            name: page
            at: http://127.0.0.1:${UPSTREAM_PORT}/form/*
            gateway: j-security-check
            credential: ann
            \(logout.isEmpty ? "login: on-demand" : logout)
            """,
        ]
        configuration.environment = [
            "COUNTERSIGN_BANK_PIN__PIN": "1234", "COUNTERSIGN_ANN__USERNAME": "ann",
            "COUNTERSIGN_ANN__PASSWORD": "demo",
        ]
        return configuration
    }

    @Test("ends each session once on a clean stop")
    func stop() async throws {
        try await withBank(Self.configuration(logout: "logout: { url: /form/logout }")) { bank in
            try await bank.expect("/form/", status: 200)
            try await bank.expect("/balance", status: 200)
            #expect(bank.record.logouts.isEmpty)
            #expect(await bank.stopDaemon() == 0)
            #expect(bank.record.logouts.sorted() == ["PinCodeAttempts", "form"])
        }
    }

    @Test("ends what is dropped, and the next request wins another")
    func drop() async throws {
        try await withBank(Self.configuration(logout: "logout: { url: /form/logout }")) { bank in
            try await bank.expect("/form/", status: 200)
            #expect(try await bank.admin("/sessions/drop?name=page", "-X", "POST").status == 200)
            #expect(await eventually { bank.record.logouts == ["form"] })
            try await bank.expect("/form/", status: 200)
            #expect(bank.record.answerCount(to: "form") == 2)
        }
    }

    @Test("is nothing that anybody does unasked")
    func unasked() async throws {
        try await withBank(Self.configuration()) { bank in
            try await bank.expect("/form/", status: 200)
            try await bank.expect("/balance", status: 200)
            #expect(try await bank.admin("/sessions/drop", "-X", "POST").status == 200)
            try await bank.expect("/form/", status: 200)
            #expect(await bank.stopDaemon() == 0)
            #expect(bank.record.logouts.isEmpty)
        }
    }

    @Test("does not hold up the end where the server does not answer")
    func unanswered() async throws {
        try await withBank(Self.configuration(logout: "logout: { url: /form/logout }")) { bank in
            try await bank.expect("/form/", status: 200)
            await offPool { bank.upstream.stop() }
            let daemon = try bank.daemon
            #expect(await bank.stopDaemon() == 0)
            #expect(daemon.log.contains("logout failed") || daemon.log.contains("logouts were cut off"))
        }
    }

    @Test(
        "ends what a changed credential replaces, once the new session is there, and the value comes from a file of variables"
    )
    func changed() async throws {
        var configuration = Self.configuration(logout: "logout: { url: /form/logout }")
        configuration.sources = ["env: ${FOLDER}/secrets.env", "env"]
        configuration.environment["COUNTERSIGN_ANN__PASSWORD"] = nil
        try await withBank(configuration, startsDaemon: false) { bank in
            func write(_ password: String) {
                bank.folder.write(
                    "COUNTERSIGN_ANN__USERNAME=ann\nCOUNTERSIGN_ANN__PASSWORD=\"\(password)\"\n", to: "secrets.env")
            }
            write("wrong")
            try await bank.startDaemon()
            try await bank.expect("/form/", code: "login-rejected")
            try await bank.expect("/form/", code: "login-latched")
            // The latch opens by the changed value, without a reload.
            write("demo")
            try await bank.expect("/form/", status: 200)
            #expect(bank.record.logouts.isEmpty)
            bank.upstream.form.configure { $0.password = "second" }
            write("second")
            #expect(await eventually { bank.record.logouts == ["form"] })
            try await bank.expect("/form/", status: 200)
            #expect(bank.record.answerCount(to: "form") == 3)
        }
    }
}
