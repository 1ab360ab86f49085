// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("Refusals of a token endpoint")
struct TokenRefusalTests {
    /// An answer of the token endpoint, and the code of the first local reply.
    struct Refusal: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var response: FakeResponse
        var code: String
        /// The word that the reply quotes.
        var word: String
    }

    private static func refusal(
        _ name: String, _ status: Int, _ error: String, _ description: String = "", code: String
    ) -> Refusal {
        let body: JSON = ["error": .string(error), "error_description": .string(description)]
        return Refusal(testDescription: name, response: .json(status, body), code: code, word: error)
    }

    private static let rejections = [
        refusal("200 with a word", 200, "bad_refresh_token", code: "login-rejected"),
        refusal("503 with a word", 503, "invalid_client", code: "login-rejected"),
        refusal("401 of Keycloak", 401, "unauthorized_client", code: "login-rejected"),
        Refusal(
            testDescription: "200 with a form",
            response: FakeResponse(
                200, fields: [("Content-Type", "application/x-www-form-urlencoded")],
                body: Array("error=incorrect_client_credentials".utf8)),
            code: "login-rejected", word: "incorrect_client_credentials"),
        refusal("a locked account", 429, "too_many_attempts", code: "account-locked"),
        refusal("a disabled account", 400, "invalid_grant", "Account disabled", code: "account-locked"),
    ]

    @Test("end the use of the secret after one request, whatever the status", arguments: rejections)
    func rejection(refusal: Refusal) async throws {
        try await withBank(.oauth("grant: client-credentials")) { bank in
            bank.upstream.faults.add(Fault(.answer(refusal.response), at: .oauthToken))
            let answer = try await bank.expect("/oauth/api/echo", code: refusal.code)
            #expect(answer.detail.contains(refusal.word), "\(answer.detail)")
            let later = refusal.code == "account-locked" ? "account-locked" : "login-latched"
            for _ in 0..<3 { try await bank.expect("/oauth/api/echo", status: 503, code: later) }
            #expect(bank.record.count("POST", "/oauth/token") == 1)
        }
    }

    private static let others = [
        refusal("a server that throttles", 429, "invalid_grant", code: "login-failed"),
        refusal("200 and a word for later", 200, "slow_down", code: "login-failed"),
        refusal("a person is needed", 400, "invalid_grant", "Account is not fully set up", code: "login-failed"),
        refusal("a wrong request", 400, "invalid_target", code: "login-failed"),
    ]

    @Test("that do not judge the secret latch nothing, and the next login has a session", arguments: others)
    func other(refusal: Refusal) async throws {
        try await withBank(.oauth("grant: client-credentials")) { bank in
            bank.upstream.faults.add(Fault(.answer(refusal.response), at: .oauthToken, times: 1))
            let answer = try await bank.expect("/oauth/api/echo", status: 502, code: refusal.code)
            #expect(answer.detail.contains(refusal.word), "\(answer.detail)")
            #expect(try await bank.admin("/status").json?["latches"] == .array([]))
            // Nobody has accepted the secret yet: the next request with it waits for a minute, or for an operator.
            #expect(try await bank.admin("/unlatch?name=api", "-X", "POST").status == 200)
            #expect(try await eventually { try await bank.curl("/oauth/api/echo").status == 200 })
        }
    }

    @Test("of more scope concern only the resource that needs it")
    func scope() async throws {
        try await withBank(.oauth("grant: client-credentials, scope: read")) { bank in
            bank.upstream.oauth.configure { $0.scopes = ["read"] }
            try await bank.expect("/oauth/api/echo", status: 200)
            let answer = try await bank.expect("/oauth/api/admin/echo", status: 502, code: "login-failed")
            #expect(answer.detail.contains("invalid_scope"), "\(answer.detail)")
            for _ in 0..<3 { try await bank.expect("/oauth/api/echo", status: 200) }
            #expect(try await bank.admin("/status").json?["latches"] == .array([]))
        }
    }

    @Test("of an assertion's time lead to one request with another assertion")
    func assertion() async throws {
        let refused = refusedAssertion
        try await withBankOfSigner { bank in
            // The server has seen the first assertion: it would refuse it again.
            bank.upstream.faults.add(Fault(.altered { $0 = refused }, at: .oauthToken, times: 1))
            try await bank.expect("/oauth/api/echo", status: 200)
            #expect(bank.record.count("POST", "/oauth/token") == 2)
        }
        try await withBankOfSigner { bank in
            bank.upstream.faults.add(Fault(.altered { $0 = refused }, at: .oauthToken))
            let answer = try await bank.expect("/oauth/api/echo", status: 502, code: "login-failed")
            #expect(answer.detail.contains("clock"), "\(answer.detail)")
            #expect(bank.record.count("POST", "/oauth/token") == 2)
            #expect(try await bank.admin("/status").json?["latches"] == .array([]))
        }
    }

    private var refusedAssertion: FakeResponse {
        .json(401, ["error": "invalid_client", "error_description": "The client_assertion token is expired."])
    }

    @Test("that say nothing neither latch nor lose a rotated refresh token")
    func refreshToken() async throws {
        try await RefreshTokenTests.withRefreshToken { bank, _ in
            try await bank.expect("/oauth/api/echo", status: 200)
            bank.upstream.oauth.revokeTokens()
            bank.upstream.faults.add(Fault(.unavailable(503), at: .oauthToken, times: 1))
            try await bank.expect("/oauth/api/echo", status: 502, code: "login-failed")
            #expect(try await bank.admin("/status").json?["latches"] == .array([]))
            #expect(try await eventually { try await bank.curl("/oauth/api/echo").status == 200 })
            #expect(bank.record.tokens.count == 2 && bank.record.wrongAnswers["oauth"] == nil)
        }
    }

    @Test("of a refresh token whose last answer was lost end its use after that one request")
    func lostAnswer() async throws {
        try await RefreshTokenTests.withRefreshToken { bank, _ in
            try await bank.expect("/oauth/api/echo", status: 200)
            bank.upstream.oauth.revokeTokens()
            bank.upstream.faults.add(Fault(.cut(after: 0), at: .oauthToken, times: 1))
            try await bank.expect("/oauth/api/echo", status: 502, code: "login-failed")
            #expect(try await bank.admin("/status").json?["latches"] == .array([]))
            // The server has rotated the token, and takes its second use for theft.
            #expect(try await eventually { try await bank.curl("/oauth/api/echo").code == "login-rejected" })
            for _ in 0..<3 { try await bank.expect("/oauth/api/echo", status: 503, code: "login-latched") }
            #expect(bank.record.wrongAnswers["oauth"] == 1)
        }
    }
}

/// Runs a scenario with a bank whose client signs assertions with a key of its own.
func withBankOfSigner(_ scenario: (_ bank: Bank) async throws -> Void) async throws {
    var configuration = BankConfiguration.oauth("grant: client-credentials, client-auth: private-key-jwt")
    configuration.sources = ["systemd"]
    let credentials = try Folder()
    let key = credentials.path(of: "api.private-key")
    let made = try await Command.run(["/usr/bin/openssl", "genrsa", "-out", key, "2048"], in: credentials)
    let told = try await Command.run(["/usr/bin/openssl", "rsa", "-in", key, "-noout", "-modulus"], in: credentials)
    try #require(made.exit == 0 && told.exit == 0)
    let modulus = try #require(told.output.split(separator: "=").last).filter { $0.isHexDigit }
    let bytes = stride(from: 0, to: modulus.count, by: 2).compactMap {
        UInt8(modulus.dropFirst($0).prefix(2), radix: 16)
    }
    credentials.write("signer", to: "api.client-id")
    configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
    try await withBank(configuration) { bank in
        bank.upstream.oauth.configure {
            let jwk: JSON = ["kty": "RSA", "n": .string(Base64.encodeURL(bytes)), "e": "AQAB"]
            $0.clients.append(.init(id: "signer", secret: nil, key: jwk))
        }
        try await scenario(bank)
    }
}

@Suite("Token endpoints that the resource itself leads to")
struct DiscoveryTests {
    private static func kind(_ port: UInt16, _ more: String..., issuer: String? = nil) -> FakeKind {
        let issuer = issuer ?? "http://127.0.0.1:\(port)/tenant"
        return FakeKind(
            script: "told-resource", arguments: ["\(port)"] + more,
            challenge: """
                scheme: bearer
                token: { issuers: ["https://id.example.com", "\(issuer)"], grant: client-credentials }
                """, fields: ["CLIENT_ID": "ann", "CLIENT_SECRET": "demo"])
    }

    @Test(
        "are asked where the configuration allows their server, by OAuth's address and by OpenID's",
        arguments: [[], ["--openid"]])
    func found(more: [String]) async throws {
        var kind = Self.kind(Ports.next())
        kind.arguments += more
        try await withFake(kind) { bank, fake in
            let first = try await bank.expect("/app/a", "-d", "a=b", status: 200)
            #expect(first.json?["principal"]?.string == "ann", "\(first.summary)")
            let before = fake.requests.count
            try await bank.expect("/app/b", status: 200)
            #expect(fake.requests.count == before + 1 && fake.logins == ["ann ok"])
            try await fake.direct("/-fake/expire?at=25")
            try await fake.expectPostsOnce(through: bank, at: "/app/c")
            #expect(fake.logins.count == 2)
        }
    }

    @Test("get a secret in the way that their server says, and are told the scope that the resource names")
    func asTold() async throws {
        var kind = Self.kind(Ports.next())
        kind.arguments += ["--post", "--greedy"]
        try await withFake(kind) { bank, fake in
            // The suite of the Model Context Protocol allows three token requests (scope-retry-limit).
            for _ in 0..<3 { try await bank.expect("/app/a", status: 403) }
            #expect(fake.logins == ["ann ok", "ann ok"])
            let asked = fake.server.filter { $0.hasPrefix("POST ") }
            #expect(asked == ["POST /tenant/token 200 all", "POST /tenant/token 200 all"])
        }
    }

    @Test("get no secret where the configuration does not allow their server")
    func notAllowed() async throws {
        let kind = Self.kind(Ports.next(), issuer: "http://127.0.0.1:1/tenant")
        try await withFake(kind) { bank, fake in
            let answer = try await bank.expect("/app/a", code: "login-failed")
            #expect(answer.detail.contains("token.issuers"))
            #expect(fake.logins.isEmpty && fake.server.isEmpty)
        }
    }

    @Test("get no secret where their server puts them at another origin")
    func elsewhere() async throws {
        let port = Ports.next()
        try await withFake(Self.kind(port, "--elsewhere", "\(Ports.next())")) { bank, fake in
            let answer = try await bank.expect("/app/a", code: "login-failed")
            #expect(answer.detail.contains("another origin"))
            #expect(fake.logins.isEmpty && fake.server.allSatisfy { $0.hasPrefix("GET ") }, "\(fake.server)")
        }
    }

    @Test("get a wrong secret once")
    func wrong() async throws {
        var kind = Self.kind(Ports.next())
        kind.fields["CLIENT_SECRET"] = "not-it"
        try await withFake(kind) { bank, fake in
            try await bank.expect("/app/a", code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/app/a", code: "login-latched") }
            #expect(fake.logins == ["ann wrong"])
        }
    }
}
