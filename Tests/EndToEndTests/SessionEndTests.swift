// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A session that comes to its end")
struct ExpiryTests {
    @Test("is renewed ahead of it, and no request waits or fails")
    func renewal() async throws {
        var rules = FakeUpstream.rules
        // Renewal begins when a fifth of the lifetime is left: two seconds, which is enough for a busy machine.
        rules.tokenLife = 10
        try await withBank(rules: rules) { bank in
            try await bank.expect("/balance", status: 200)
            let count = bank.record.tokens.count
            let connection = try bank.connect()
            let isRenewed = try await goingOn(until: { bank.record.tokens.count > count }) { _ in
                let status = await offPool {
                    connection.send("GET /balance HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    return connection.response()?.status
                }
                try #require(status == 200)
            }
            #expect(isRenewed)
            // The renewal came before the old token was refused, and cost no answer.
            #expect(bank.record.count("GET", "/mfp/api/adapters/bank/balance", status: 401) <= 1)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("is succeeded again with another answer when the check itself has lapsed")
    func lapsedCheck() async throws {
        try await withBank { bank in
            for number in 1...3 {
                try await bank.expect("/balance", status: 200)
                #expect(bank.pinAnswers == number)
                bank.upstream.mobileFirst.expire(check: "PinCodeAttempts")
                bank.upstream.mobileFirst.revokeTokens()
            }
        }
    }

    @Test("ends with the credential: one that was good and is changed to a wrong one is rejected once")
    func changedToWrong() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            bank.upstream.mobileFirst.configure { $0.checks = [.pinCodeAttempts(pin: "5678")] }
            bank.upstream.mobileFirst.expire(check: "PinCodeAttempts")
            bank.upstream.mobileFirst.revokeTokens()
            try await bank.expect("/balance", code: "login-rejected")
            try await bank.expect("/balance", code: "login-latched")
            #expect(bank.pinAnswers == 2)
        }
    }

    @Test("in a stream that runs longer than it cuts nothing")
    func longStream() async throws {
        var rules = FakeUpstream.rules
        rules.tokenLife = 1
        try await withBank(rules: rules) { bank in
            let answer = try await bank.expect("/stream?lines=25&pause=100", status: 200)
            #expect(answer.exit == 0)
            #expect(answer.text.components("data: tick") == 25)
        }
    }
}

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
