// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A session that comes to its end")
struct ExpiryTests {
    @Test("is renewed ahead of it, and no request waits or fails")
    func renewal() async throws {
        var rules = FakeUpstream.rules
        // Renewal begins a fifth of the life before its end: two seconds, which a busy machine keeps too.
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
