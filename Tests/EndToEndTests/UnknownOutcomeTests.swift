// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A login whose outcome nobody knows")
struct UnknownOutcomeTests {
    /// A failure at an endpoint of the login server.
    struct Trouble: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var effect: Fault.Effect
    }

    private static let troubles = [
        Trouble(testDescription: "503", effect: .unavailable(503)),
        Trouble(testDescription: "500", effect: .unavailable(500)),
        Trouble(testDescription: "a broken JSON body", effect: .garbage),
        Trouble(testDescription: "a lost connection", effect: .cut(after: 0)),
        Trouble(testDescription: "a reset in the middle of the answer", effect: .cut(after: 60, reset: true)),
    ]

    @Test(
        "is login-failed, latches nothing, and is made up for after a pause",
        arguments: troubles, [Endpoint.preauthorize, .token])
    func recovers(trouble: Trouble, endpoint: Endpoint) async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(trouble.effect, at: endpoint, times: 1))
            let answer = try await bank.expect("/balance", status: 502, code: "login-failed")
            #expect(answer.json?["upstream"] == "bank")
            #expect(answer.field("www-authenticate") == nil)
            try await bank.expectRecovery(answers: 1)
        }
    }

    @Test("is the same where the client cannot be registered")
    func registration() async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(.unavailable(), at: .registration, times: 1))
            try await bank.expect("/balance", status: 502, code: "login-failed")
            try await bank.expectRecovery(answers: 1)
            #expect(bank.record.registrations == 1)
        }
    }

    @Test("keeps the answer's outcome unknown where the connection is lost after it was sent")
    func lostAfterAnswer() async throws {
        try await withBank { bank in
            // Of each scope's login: the first preauthorize has no answer, the second carries the PIN.
            bank.upstream.faults.add(Fault(.cut(after: 0), at: .preauthorize, times: 1, skip: 2))
            try await bank.expect("/balance", status: 502, code: "login-failed")
            #expect(bank.pinAnswers == 1)
            // The server had accepted the answer and therefore does not ask again.
            try await bank.expectRecovery(answers: 1)
        }
    }

    @Test("is not tried again before the time that the server names")
    func retryAfter() async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(.unavailable(429, retryAfter: 600), at: .preauthorize, times: 1))
            let answer = try await bank.expect("/balance", status: 502, code: "login-failed")
            let wait = try #require(answer.field("retry-after").flatMap { Int($0) })
            #expect((300...600).contains(wait))
            let asked = bank.record.count("POST", "/mfp/api/preauth/v1/preauthorize")
            // Callers are answered at once meanwhile, and the server is left alone.
            for _ in 0..<3 { try await bank.expect("/balance", code: "login-failed") }
            #expect(bank.record.count("POST", "/mfp/api/preauth/v1/preauthorize") == asked)
            // An operator need not wait so long.
            #expect(try await bank.admin("/sessions/drop", "-X", "POST").status == 200)
            try await bank.expectRecovery(answers: 1)
        }
    }

    @Test("is login-timeout where the server does not answer in time")
    func timeout() async throws {
        var configuration = BankConfiguration()
        configuration.bank = ["timeouts: { login: 3s }"]
        try await withBank(configuration) { bank in
            bank.upstream.faults.add(Fault(.hang, at: .preauthorize, times: 1))
            let answer = try await bank.expect("/balance", status: 504, code: "login-timeout")
            #expect(answer.json?["upstream"] == "bank")
            // Ends the login that still hangs there.
            await offPool { bank.upstream.stop() }
            try bank.upstream.start()
            try await bank.expectRecovery(answers: 1)
        }
    }
}

extension Bank {
    /// Waits until requests succeed again, after `answers` answers in all, without a closed latch.
    fileprivate func expectRecovery(answers: Int, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let status = try await admin("/status")
        #expect(status.json?["latches"] == .array([]), sourceLocation: sourceLocation)
        let isServed = try await eventually {
            let answer = try await curl("/balance")
            if answer.status == 200 { return true }
            #expect(["login-failed", "login-timeout"].contains(answer.code), sourceLocation: sourceLocation)
            return false
        }
        #expect(isServed, sourceLocation: sourceLocation)
        #expect(pinAnswers == answers, sourceLocation: sourceLocation)
    }
}
