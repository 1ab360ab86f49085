// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
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

    @Test(
        "50 posts at a time go on over sessions that end in the middle of them, and over cookies that live two seconds")
    func expiry() async throws {
        var configuration = Self.checks(pin: "1234")
        configuration.workers = 2
        try await withBank(configuration) { bank in
            try await bank.expect("/checks/balance", status: 200)
            bank.upstream.checks.sessionEnd.comes(afterRequests: 25)
            try await bank.expectPostsOnce("/checks/middle")
            // Where all of them were looked at before it ended, this one meets its end.
            try await bank.expect("/checks/balance", status: 200)
            #expect(bank.record.answerCount(to: "checks") == 2)
            bank.upstream.checks.sessionEnd.comes(afterSeconds: 2)
            bank.upstream.checks.dropSessions()
            let hasEnded = try await goingOn(until: { bank.record.answerCount(to: "checks") >= 4 }) { round in
                try await bank.expectPostsOnce("/checks/transfer/\(round)")
            }
            #expect(hasEnded)
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
