// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Bearer tokens from an OAuth 2 server")
struct TokenTests {
    @Test("client credentials log in, and later requests cost no further round trip")
    func clientCredentials() async throws {
        try await withBank(.oauth("grant: client-credentials")) { bank in
            for _ in 0..<3 { try await bank.expect("/oauth/api/echo", status: 200) }
            #expect(bank.record.tokens == ["read"])
            #expect(bank.record.challenges["oauth"] == 1)
            #expect(bank.record.count("GET", "/oauth/api/echo") == 4)
        }
    }

    @Test("at-start logs in before a challenge is met")
    func atStart() async throws {
        try await withBank(.oauth("grant: client-credentials", more: ["login: at-start"])) { bank in
            try await bank.expect("/oauth/api/echo", status: 200)
            #expect(bank.record.challenges["oauth"] == nil)
        }
    }

    @Test("a wrong secret is sent once, then latched, and the token never asked for again")
    func wrongSecret() async throws {
        try await withBank(.oauth("grant: client-credentials", ["CLIENT_SECRET": "wrong"])) { bank in
            try await bank.expect("/oauth/api/echo", status: 502, code: "login-rejected")
            for _ in 0..<3 { try await bank.expect("/oauth/api/echo", status: 503, code: "login-latched") }
            #expect(bank.record.count("POST", "/oauth/token") == 1)
        }
    }

    @Test("name and password log in; a wrong password is sent once")
    func password() async throws {
        try await withBank(.oauth("grant: password", ["USERNAME": "ann", "PASSWORD": "demo"])) { bank in
            for _ in 0..<2 { try await bank.expect("/oauth/api/echo", status: 200) }
            #expect(bank.record.tokens.count == 1)
        }
        try await withBank(.oauth("grant: password", ["USERNAME": "ann", "PASSWORD": "wrong"])) { bank in
            try await bank.expect("/oauth/api/echo", code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/oauth/api/echo", code: "login-latched") }
            #expect(bank.record.answerCount(to: "oauth") == 1)
        }
    }

    @Test("a scope that a resource names is asked for besides, once for all requests")
    func scope() async throws {
        try await withBank(.oauth("grant: client-credentials, scope: read")) { bank in
            try await bank.expect("/oauth/api/echo", status: 200)
            for _ in 0..<3 { try await bank.expect("/oauth/api/admin/echo", status: 200) }
            #expect(bank.record.tokens == ["read", "admin read"])
        }
    }

    @Test("a scope that the server does not know is told by the server's word, and latches nothing")
    func unknownScope() async throws {
        try await withBank(.oauth("grant: client-credentials, scope: everything")) { bank in
            let answer = try await bank.expect("/oauth/api/echo", status: 502, code: "login-failed")
            #expect(answer.detail.contains("invalid_scope"))
        }
    }

    @Test("a client proves itself by a key of its own")
    func assertion() async throws {
        try await withBankOfSigner { bank in
            bank.upstream.oauth.configure { $0.tokenLife = 1 }
            for _ in 0..<2 {
                try await bank.expect("/oauth/api/echo", status: 200)
                bank.upstream.oauth.revokeTokens()
            }
            #expect(bank.record.tokens.count == 2)
        }
    }

    @Test("a fixed token goes as it is; a wrong one goes once, until another is there")
    func fixed() async throws {
        var configuration = BankConfiguration.oauth("grant: static")
        configuration.sources = ["systemd"]
        let credentials = try Folder()
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        credentials.write("wrong", to: "api.token")
        try await withBank(configuration) { bank in
            try await bank.expect("/oauth/api/echo", status: 502, code: "login-rejected")
            #expect(bank.upstream.oauth.refusedTokens == 1)
            for _ in 0..<2 { try await bank.expect("/oauth/api/echo", status: 503, code: "login-latched") }
            #expect(bank.upstream.oauth.refusedTokens == 1)
            credentials.write(bank.upstream.oauth.issueToken(), to: "api.token")
            for _ in 0..<2 { try await bank.expect("/oauth/api/echo", status: 200) }
            // A missing scope is the caller's answer: there is no other token.
            try await bank.expect("/oauth/api/admin/echo", status: 403)
            try await bank.expect("/oauth/api/echo", status: 200)
        }
    }

    @Test("50 posts under way when the tokens are revoked all arrive, each once and as it was sent")
    func revokedUnderTraffic() async throws {
        var configuration = BankConfiguration.oauth("grant: client-credentials")
        configuration.workers = 2
        try await withBank(configuration) { bank in
            try await bank.expect("/oauth/api/echo", status: 200)
            bank.upstream.oauth.revokeTokens()
            try await bank.expectPostsOnce("/oauth/api/transfer")
            #expect(bank.record.tokens.count == 2)
        }
    }

    @Test("50 posts at a time go on over the ends of tokens that live two seconds")
    func expiredUnderTraffic() async throws {
        var configuration = BankConfiguration.oauth("grant: client-credentials")
        configuration.workers = 2
        try await withBank(configuration) { bank in
            bank.upstream.oauth.configure { $0.tokenLife = 2 }
            let haveEnded = try await goingOn(until: { bank.record.tokens.count >= 3 }) { round in
                try await bank.expectPostsOnce("/oauth/api/transfer/\(round)")
            }
            #expect(haveEnded)
        }
    }
}

extension Bank {
    /// Posts 50 bodies of their own at once; each is to be served, and served once.
    func expectPostsOnce(
        _ path: String, upstreamPath: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let bodies = (0..<50).map { number in
            "\(number) " + String(repeating: "\(number % 10)", count: 1 + number * 1999)
        }
        let answers = try await storm(connections: 50, requests: 1) { number in
            "POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(bodies[number].utf8.count)\r\n\r\n\(bodies[number])"
        }
        #expect(answers.map(\.status) == Array(repeating: 200, count: 50), sourceLocation: sourceLocation)
        let digests = bodies.map { sha256(Array($0.utf8)) }.sorted()
        let arrived = record.hits.filter { $0.path == upstreamPath ?? path && $0.method == "POST" }.map(\.digest)
        #expect(arrived.filter(digests.contains).sorted() == digests, sourceLocation: sourceLocation)
    }
}

extension BankConfiguration {
    /// Returns a configuration for the resources of the fake OAuth 2 server. `token` holds the settings of `token:`
    /// besides the address, `fields` those of the credential besides the client's.
    static func oauth(
        _ token: String, _ fields: [String: String] = [:], more: [String] = []
    ) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        let address = token.contains("grant: static") ? "" : "url: \"http://127.0.0.1:${UPSTREAM_PORT}/oauth/token\", "
        let lines = [
            "name: api", "upstream: server", "scheme: bearer", "credential: api", "token: { \(address)\(token) }",
        ]
        configuration.challenges = [(lines + more).joined(separator: "\n")]
        configuration.environment = [
            "COUNTERSIGN_API__CLIENT_ID": "demo", "COUNTERSIGN_API__CLIENT_SECRET": "demo:secret+%",
        ]
        for (name, value) in fields { configuration.environment["COUNTERSIGN_API__\(name)"] = value }
        return configuration
    }
}

@Suite("Logins that answer with a token in JSON")
struct TokenGatewayTests {
    private static let kind = FakeKind.token

    @Test("give the token to each request, and a session that has ended is won again under 50 POSTs")
    func token() async throws {
        try await withFake(Self.kind) { bank, fake in
            let first = try await bank.expect("/api/accounts", status: 200)
            #expect(first.json?["principal"]?.string == "ann", "\(first.summary)")
            let before = fake.requests.count
            try await bank.expect("/api/accounts", "-H", "Authorization: Session mine", status: 200)
            #expect(fake.requests.count == before + 1 && fake.logins == ["ann ok"])
            #expect(!fake.requests.contains { $0.hasPrefix("GET /api/login") })
            try await fake.direct("/-fake/expire?at=25")
            try await fake.expectPostsOnce(through: bank, at: "/api/transfers")
            #expect(fake.logins.count >= 2 && fake.logins.allSatisfy { $0 == "ann ok" }, "\(fake.logins)")
            // What the interface itself refuses without a session of its own is its matter.
            try await bank.expect("/open/accounts", status: 200)
        }
    }

    @Test("are renewed ahead of the end that the answer told")
    func renewed() async throws {
        // A fifth of it is the time for the renewal, and this machine may be busy.
        try await withFake(Self.kind.with("--life", "10")) { bank, fake in
            let areRenewed = try await goingOn(until: { fake.logins.count >= 3 }) { _ in
                try await bank.expect("/api/accounts", status: 200)
            }
            let refused = fake.requests.count { $0.hasSuffix(" 401") }
            #expect(areRenewed && refused == 1, "\(fake.logins) \(refused)")
        }
    }

    @Test("may take several steps, each with what the one before was answered with")
    func steps() async throws {
        var kind = Self.kind.with("--steps")
        kind.challenge = """
            gateway: none
            detect: { status: [401], content-type: application/json }
            login:
              - { url: /api/hello, body: json, extract: { hello: /hello/0/number } }
              - { url: /api/login, body: json, parameters: { user: "{username}", password: "{password}" },
                  headers: { X-Hello: "{hello}" }, extract: { token: /data/token } }
            inject: { Authorization: "Session {token}" }
            """
        try await withFake(kind) { bank, fake in
            try await bank.expect("/api/accounts", "-d", "a=b", status: 200)
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("get a wrong password once")
    func wrong() async throws {
        try await withFake(Self.kind, password: "not-it") { bank, fake in
            try await bank.expect("/api/accounts", status: 502, code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/api/accounts", status: 503, code: "login-latched") }
            #expect(fake.logins == ["ann wrong"] && fake.arrived.isEmpty)
        }
    }

    @Test("that answer otherwise than expected are told, and nothing latches")
    func unexpected() async throws {
        var kind = Self.kind
        kind.challenge = kind.challenge.replacing("/data/token", with: "/token")
        try await withFake(kind) { bank, _ in
            let answer = try await bank.expect("/api/accounts", status: 502, code: "login-failed")
            #expect(answer.detail.contains("/token"))
        }
    }
}
