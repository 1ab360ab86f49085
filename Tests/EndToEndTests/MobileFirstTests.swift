// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("What a MobileFirst server may say")
struct MobileFirstTests {
    @Test("a server that has forgotten the client gets a new registration and the answer again")
    func forgottenClient() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            bank.upstream.mobileFirst.forgetClients()
            bank.upstream.mobileFirst.revokeTokens()
            try await bank.expect("/balance", status: 200)
            #expect(bank.record.registrations == 2)
            #expect(bank.pinAnswers == 2)
        }
    }

    @Test("a server that never knows the client is not asked for ever")
    func neverKnownClient() async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(.unknownClient, at: .preauthorize))
            try await bank.expect("/balance", status: 502, code: "login-failed")
            #expect(bank.record.registrations <= 2)
            #expect(bank.pinAnswers == 0)
        }
    }

    @Test("the registration outlives a restart")
    func registrationIsKept() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            await bank.stopDaemon()
            try await bank.startDaemon()
            try await bank.expect("/balance", status: 200)
            #expect(bank.record.registrations == 1)
            // The check still holds for the client.
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("a token that lapses early is replaced under way")
    func earlyExpiry() async throws {
        var rules = FakeUpstream.rules
        rules.tokenUses = 1
        try await withBank(rules: rules) { bank in
            for _ in 0..<4 { try await bank.expect("/balance", status: 200) }
            #expect(bank.record.hits.count == 4)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("a resource that wants another scope each time has its last refusal passed on")
    func changingScope() async throws {
        var rules = FakeUpstream.rules
        rules.grantsUnknownScope = true
        try await withBank(rules: rules) { bank in
            bank.upstream.faults.add(Fault(.changingScope, at: .resource))
            try await bank.expect("/balance", status: 403)
            #expect(bank.record.tokens.count <= 9)
        }
    }

    @Test("a resource that refuses in spite of a fresh token has its refusal passed on, and the login is not repeated")
    func oneResource() async throws {
        try await withBank { bank in
            try await bank.expect("/echo", status: 200)
            try await bank.expect("/balance", status: 200)
            bank.upstream.faults.add(Fault(.invalidToken, at: .resource))
            try await bank.expect("/echo", status: 401)
            let tokens = bank.record.tokens.count
            try await bank.expect("/echo", status: 401)
            #expect(bank.record.tokens.count == tokens)
            bank.upstream.faults.clear()
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("conflicts at a resource are met by sending again, seven times at most", arguments: [3, 8])
    func conflictAtResource(times: Int) async throws {
        try await withBank { bank in
            try await bank.expect("/transfer", "-d", "{}", status: 201)
            bank.upstream.faults.add(Fault(.conflict, at: .resource, times: times))
            let answer = try await bank.curl("/transfer", "-H", "Content-Type: application/json", "-d", #"{"to":"x"}"#)
            #expect(answer.status == (times < 8 ? 201 : 409))
            #expect(bank.record.hits.count == (times < 8 ? 2 : 1))
            #expect(bank.record.count("POST", "/mfp/api/adapters/bank/transfer", status: 409) == times)
        }
    }

    @Test("a conflict without the header is the resource's own answer")
    func ordinaryConflict() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            bank.upstream.faults.add(Fault(.conflictWithoutHeader, at: .resource, times: 1))
            let answer = try await bank.expect("/balance", status: 409)
            #expect(answer.json?["error"] == "edited by another")
        }
    }

    @Test("conflicts during the login are met likewise", arguments: [3, 8])
    func conflictAtLogin(times: Int) async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(.conflict, at: .preauthorize, times: times))
            let answer = try await bank.curl("/balance")
            #expect(answer.status == (times < 8 ? 200 : 502))
            #expect(bank.pinAnswers == (times < 8 ? 1 : 0))
        }
    }

    @Test("two checks in one scope are answered together")
    func twoChecks() async throws {
        var rules = FakeUpstream.rules
        rules.scopeMapping = ["accessRestricted": ["PinCodeAttempts", "UserLogin"]]
        rules.wantsAllAnswersTogether = true
        var configuration = BankConfiguration()
        configuration.challenges.append(Self.userChallenge)
        configuration.environment["COUNTERSIGN_ANN__USERNAME"] = "ann"
        configuration.environment["COUNTERSIGN_ANN__PASSWORD"] = "ann"
        try await withBank(configuration, rules: rules) { bank in
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)
            #expect(bank.record.answerCount(to: "UserLogin") == 1)
        }
    }

    @Test("a check that nobody is configured for fails, and is named")
    func unknownCheck() async throws {
        var rules = FakeUpstream.rules
        rules.scopeMapping = ["accessRestricted": ["PinCodeAttempts", "UserLogin"]]
        try await withBank(rules: rules) { bank in
            let answer = try await bank.expect("/balance", status: 502, code: "login-failed")
            #expect(answer.detail.contains("security-check: UserLogin"))
            #expect(bank.record.answerCount() == 0)
        }
    }

    @Test("a challenge without content is answered", arguments: [JSON.empty, .null, ["anything": [1, 2]]])
    func emptyChallenge(value: JSON) async throws {
        var rules = FakeUpstream.rules
        rules.checks = [SecurityCheck.pinCodeAttempts().challenging(with: value)]
        try await withBank(rules: rules) { bank in
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("a server whose clock is hours off is served all the same", arguments: [-5, 5])
    func clock(hours: Int64) async throws {
        var rules = FakeUpstream.rules
        rules.clockOffset = hours * 3600
        try await withBank(rules: rules) { bank in
            for _ in 0..<2 { try await bank.expect("/balance", status: 200) }
            #expect(bank.pinAnswers == 1)
        }
    }

    private static let userChallenge = """
        name: user
        upstream: bank
        security-check: UserLogin
        credential: ann
        answer: { username: "{username}", password: "{password}" }
        """
}

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
