// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import DemoUpstream
import Testing

@Suite("Security checks that a resource itself names")
struct ResourceCheckTests {
    private static func checks(pin: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = [
            """
            name: checks
            upstream: server
            security-check: PinCode
            credential: bank-pin
            answer: { pin: "{pin}" }
            answer-url: /checks/login
            """
        ]
        configuration.environment = ["COUNTERSIGN_BANK_PIN__PIN": pin]
        return configuration
    }

    @Test("are answered at their address once, and its cookie stays with the proxy")
    func answered() async throws {
        try await withBank(Self.checks(pin: "1234")) { bank in
            for _ in 0..<3 {
                let answer = try await bank.expect("/checks/balance", "--data", "amount=1", status: 200)
                #expect(answer.field("set-cookie") == nil)
            }
            #expect(bank.record.answerCount(to: "checks") == 1)
            #expect(bank.record.challenges["checks"] == 1)
            bank.upstream.checks.dropSessions()
            try await bank.expectPostsOnce("/checks/transfer")
            #expect(bank.record.answerCount(to: "checks") == 2)
        }
    }

    @Test("get a wrong answer once")
    func wrong() async throws {
        try await withBank(Self.checks(pin: "9999")) { bank in
            try await bank.expect("/checks/balance", status: 502, code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/checks/balance", status: 503, code: "login-latched") }
            #expect(bank.record.answerCount(to: "checks") == 1)
        }
    }
}
