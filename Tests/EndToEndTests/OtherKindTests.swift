// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Challenges of other kinds")
struct OtherKindTests {
    private static func confidential(secret: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.challenges = [
            """
            name: reports
            upstream: bank
            scheme: bearer
            credential: reports
            token: { grant: mobilefirst, scope: accessRestricted }
            """
        ]
        configuration.environment = [
            "COUNTERSIGN_REPORTS__CLIENT_ID": "test", "COUNTERSIGN_REPORTS__CLIENT_SECRET": secret,
        ]
        return configuration
    }

    @Test("a confidential client gets its token by identifier and secret, once for all")
    func confidentialClient() async throws {
        try await withBank(Self.confidential(secret: "test")) { bank in
            for _ in 0..<3 { try await bank.expect("/balance", status: 200) }
            #expect(bank.record.tokens == ["accessRestricted"])
            #expect(bank.record.registrations == 0)
        }
    }

    @Test("a wrong client secret is sent once and then latched")
    func wrongSecret() async throws {
        try await withBank(Self.confidential(secret: "wrong")) { bank in
            try await bank.expect("/balance", status: 502, code: "login-rejected")
            for _ in 0..<3 { try await bank.expect("/balance", status: 503, code: "login-latched") }
            #expect(bank.record.count("POST", "/mfp/api/az/v1/token") == 1)
        }
    }

    @Test("fixed fields are put into every request, in place of the caller's own")
    func inject() async throws {
        var configuration = BankConfiguration()
        configuration.challenges.append(
            """
            name: key
            upstream: server
            inject: { X-Api-Key: "key {key}" }
            credential: server-key
            """)
        configuration.environment["COUNTERSIGN_SERVER_KEY__KEY"] = "s3cr3t"
        try await withBank(configuration) { bank in
            let answer = try await bank.expect("/open/echo", "-H", "X-Api-Key: mine", status: 200)
            #expect(answer.json?["fields"].map(fields)?["x-api-key"] == "key s3cr3t")
            #expect(bank.record.registrations == 0)
        }
    }
}

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
            // If all of them were examined before the session ended, this one meets its end.
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

@Suite("Composite challenges of Worklight 6.x")
struct CompositeTests {
    private static func realms(pin: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: worklight"
        configuration.upstreams = ["worklight:\n  url: \"http://127.0.0.1:${UPSTREAM_PORT}/worklight/\""]
        configuration.challenges = [
            """
            name: pin
            upstream: worklight
            security-check: PinRealm
            credential: bank-pin
            answer: { pin: "{pin}" }
            """
        ]
        configuration.environment = ["COUNTERSIGN_BANK_PIN__PIN": pin]
        return configuration
    }

    @Test("are answered together, once, and the session and its mark stay with the proxy")
    func answered() async throws {
        try await withBank(Self.realms(pin: "1234")) { bank in
            for _ in 0..<3 {
                let answer = try await bank.expect("/invoke", "--data", "procedure=balance", status: 200)
                #expect(answer.field("set-cookie") == nil)
            }
            #expect(bank.record.answerCount(to: "PinRealm") == 1)
            bank.upstream.composite.dropSessions()
            try await bank.expectPostsOnce("/invoke", upstreamPath: "/worklight/invoke")
            #expect(bank.record.answerCount(to: "PinRealm") == 2)
        }
    }

    /// Returns the requests of that path that the server has carried out.
    private func executions(of path: String, in bank: Bank) -> [Record.Hit] {
        bank.record.hits.filter { $0.path == path }
    }

    @Test("a payment whose query says it all is carried out once: cold, 20 at once, and when the session has ended")
    func payment() async throws {
        let path = "/worklight/apps/services/api/Shop/android/query"
        let query = "procedure=pay&amount=100"
        try await withBank(Self.realms(pin: "1234")) { bank in
            let pay = String(path.dropFirst("/worklight".count)) + "?" + query
            try await bank.expect(pay, "-d", "", status: 200)
            #expect(executions(of: path, in: bank).count { $0.method == "POST" } == 1)
            for round in 0..<2 {
                // The second session ends while it is held here: the first of the 20 requests that meets its end logs
                // in again.
                bank.upstream.composite.dropSessions()
                if round == 0 { #expect(try await bank.admin("/sessions/drop", "-X", "POST").status == 200) }
                let answers = try await bank.storm(connections: 20, requests: 1) { _ in
                    "POST \(pay) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
                }
                #expect(answers.count == 20 && answers.allSatisfy { $0.status == 200 })
                #expect(executions(of: path, in: bank).count { $0.method == "POST" } == 1 + 20 * (round + 1))
            }
            #expect(executions(of: path, in: bank).allSatisfy { $0.method == "POST" })
            #expect(bank.record.answerCount(to: "PinRealm") == 3)
        }
    }

    @Test(
        "50 posts at a time go on over sessions that end in the middle of them, and over cookies that live four seconds"
    )
    func expiry() async throws {
        var configuration = Self.realms(pin: "1234")
        configuration.workers = 2
        try await withBank(configuration) { bank in
            try await bank.expect("/invoke", status: 200)
            bank.upstream.composite.sessionEnd.comes(afterRequests: 25)
            try await bank.expectPostsOnce("/middle", upstreamPath: "/worklight/middle")
            // If all of them were examined before the session ended, this one meets its end.
            try await bank.expect("/invoke", status: 200)
            #expect(bank.record.answerCount(to: "PinRealm") == 2)
            bank.upstream.composite.sessionEnd.comes(afterSeconds: 4)
            bank.upstream.composite.dropSessions()
            let hasEnded = try await goingOn(until: { bank.record.answerCount(to: "PinRealm") >= 4 }) { round in
                try await bank.expectPostsOnce("/transfer/\(round)", upstreamPath: "/worklight/transfer/\(round)")
            }
            #expect(hasEnded)
        }
    }

    @Test("get a wrong answer once")
    func wrong() async throws {
        try await withBank(Self.realms(pin: "9999")) { bank in
            try await bank.expect("/invoke", status: 502, code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/invoke", status: 503, code: "login-latched") }
            #expect(bank.record.answerCount(to: "PinRealm") == 1)
        }
    }
}
