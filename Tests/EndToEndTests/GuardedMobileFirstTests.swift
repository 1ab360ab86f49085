// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A login page in front of a MobileFirst server")
struct GuardedMobileFirstTests {
    private static func configuration(password: String = "demo", workers: Int = 2) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.workers = workers
        configuration.challenges.append(
            "name: portal\nupstream: bank\ngateway: j-security-check\ncredential: ann")
        configuration.environment["COUNTERSIGN_ANN__USERNAME"] = "ann"
        configuration.environment["COUNTERSIGN_ANN__PASSWORD"] = password
        return configuration
    }

    private static func rules(_ guarded: [Endpoint]) -> MobileFirstRules {
        var rules = FakeUpstream.rules
        rules.guarded = Set(guarded)
        return rules
    }

    @Test(
        "is passed once, wherever it stands, and so are the security checks behind it",
        arguments: [
            [Endpoint.resource], [.preauthorize], [.resource, .preauthorize],
            [.resource, .registration, .preauthorize, .authorization, .token],
        ])
    func passed(_ guarded: [Endpoint]) async throws {
        try await withBank(Self.configuration(), rules: Self.rules(guarded)) { bank in
            for _ in 0..<3 {
                let answer = try await bank.expect("/balance", status: 200)
                #expect(answer.field("set-cookie") == nil)
            }
            #expect(bank.record.logins["gateway"] == 1 && bank.pinAnswers == 1)
            #expect(bank.record.registrations == 1)
        }
    }

    @Test("ends in the middle of 50 posts, and with it the token, and both are won again once")
    func underTraffic() async throws {
        let rules = Self.rules([.resource, .preauthorize, .token])
        try await withBank(Self.configuration(), rules: rules) { bank in
            try await bank.expect("/balance", status: 200)
            bank.upstream.mobileFirst.gateway.dropSessions()
            bank.upstream.mobileFirst.revokeTokens()
            let answers = try await bank.storm(connections: 50, requests: 1) { number in
                let body = #"{"number":\#(number)}"#
                return "POST /transfer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
            }
            #expect(answers.map(\.status) == Array(repeating: 201, count: 50))
            #expect(bank.record.logins["gateway"] == 2)
        }
    }

    @Test("gets a wrong password once, whichever request meets it", arguments: [[Endpoint.resource], [.preauthorize]])
    func wrongPassword(_ guarded: [Endpoint]) async throws {
        try await withBank(Self.configuration(password: "wrong"), rules: Self.rules(guarded)) { bank in
            let first = try await bank.expect("/balance", status: 502, code: "login-rejected")
            #expect(first.json?["challenge"]?.string == "portal")
            for _ in 0..<3 { try await bank.expect("/balance", status: 503, code: "login-latched") }
            #expect(bank.record.answerCount(to: "gateway") == 1 && bank.pinAnswers == 0)
        }
    }

    @Test("is passed by the command login, too")
    func command() async throws {
        try await withBank(Self.configuration(), rules: Self.rules([.preauthorize]), startsDaemon: false) { bank in
            let login = try await bank.countersign("login", "bank")
            #expect(login.exit == 0, "\(login.output)\(login.errors)")
            #expect(bank.record.logins["gateway"] == 1 && bank.pinAnswers == 1)
        }
    }
}
