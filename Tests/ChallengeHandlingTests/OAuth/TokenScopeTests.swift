// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Scope that a resource names")
struct NamedScopeTests {
    private static let resource = "https://api.example.com/mcp"
    private static let issuer = "https://id.example.com"
    private static let known = "https://api.example.com/.well-known/oauth-protected-resource/mcp"

    private func discovery() throws -> TokenDiscovery {
        TokenDiscovery(
            name: "api", resource: try #require(WebURL(Self.resource)),
            servers: [try #require(AuthorizationServer(Self.issuer))], takesScope: true)
    }

    /// Returns the login after a challenge with that status that names `scope`; `nil`: a renewal.
    private func login(
        _ discovery: TokenDiscovery, _ scope: String?, status: Int = 401,
        _ configuration: @escaping @Sendable (DiscoveredEndpoint) -> TokenConfiguration = {
            TokenConfiguration($0, grant: .clientCredentials)
        }
    ) throws -> DiscoveredTokenLogin {
        let url = try #require(WebURL(Self.resource))
        let challenge = scope.map {
            ExaminedResponse(status: status, fields: [.wwwAuthenticate: "Bearer scope=\"\($0)\""], url: url)
        }
        return DiscoveredTokenLogin(discovery, challenge: challenge) { found in
            TokenLogin(
                configuration(found), key: TokenScript.key, scope: found.scope, configuredScope: .empty,
                keys: ScriptedKeys(), refreshTokens: RefreshTokens(credential: "api-client", origin: TokenScript.origin)
            )
        }
    }

    private var metadata: [ScriptedStep] {
        [
            (Self.known, #"{"resource":"\#(Self.resource)","authorization_servers":["\#(Self.issuer)"]}"#),
            (
                "\(Self.issuer)/.well-known/oauth-authorization-server",
                #"{"issuer":"\#(Self.issuer)","token_endpoint":"\#(TokenScript.address)"}"#
            ),
        ].map { ScriptedStep(.get, $0.0, .success(SideResponse(status: 200, body: Array($0.1.utf8)))) }
    }

    private func asked(for scope: String?) -> ScriptedStep { TokenScript.asked { $0.form("scope") == scope } }

    @Test("a named scope is requested by renewals too, together with that of earlier challenges")
    func kept() async throws {
        let discovery = try discovery()
        let rig = LoginRig.tokens(
            metadata + [asked(for: "a"), asked(for: "a")] + metadata + [asked(for: "a b"), asked(for: "a b")])
        _ = try await login(discovery, "a").logIn(rig.conversation)
        _ = try await login(discovery, nil).logIn(rig.conversation)
        _ = try await login(discovery, "b").logIn(rig.conversation)
        _ = try await rig.logIn(login(discovery, nil))
    }

    @Test("a scope that a 403 names for one request is not requested for all, and discovery is not repeated")
    func forOne() async throws {
        let discovery = try discovery()
        let rig = LoginRig.tokens(metadata + [asked(for: "a"), asked(for: "a"), asked(for: "a")])
        _ = try await login(discovery, "a").logIn(rig.conversation)
        _ = try await login(discovery, "b", status: 403).logIn(rig.conversation)
        _ = try await rig.logIn(login(discovery, nil))
    }

    @Test(
        "a named scope that the server refuses is not requested by renewals, and its default scope is used",
        arguments: ["invalid_scope", "unauthorized_client"])
    func refused(word: String) async throws {
        let discovery = try discovery()
        let rig = LoginRig.tokens(
            metadata + [
                asked(for: "admin").replying(400, [:], #"{"error":"\#(word)"}"#), asked(for: nil), asked(for: nil),
            ])
        _ = try await login(discovery, "admin").logIn(rig.conversation)
        _ = try await rig.logIn(login(discovery, nil))
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a named scope of more than 32 words or 1 KiB is ignored")
    func long() async throws {
        for scope in [(0...32).map { "s\($0)" }.joined(separator: " "), String(repeating: "s", count: 1024)] {
            let rig = LoginRig.tokens(metadata + [asked(for: nil)])
            _ = try await rig.logIn(login(discovery(), scope))
        }
    }

    @Test("the resource parameter is the resource's name unless an audience or parameter is configured")
    func resource() async throws {
        let configurations: [(resource: String?, @Sendable (DiscoveredEndpoint) throws -> TokenConfiguration)] = [
            (Self.resource, { TokenConfiguration($0, grant: .password) }),
            (nil, { TokenConfiguration($0, grant: .password, audience: "api") }),
            (nil, { TokenConfiguration($0, grant: .password, parameters: [try Self.parameter("")]) }),
            (
                "urn:ann-u",
                { TokenConfiguration($0, grant: .password, parameters: [try Self.parameter("urn:{username}")]) }
            ),
        ]
        for (resource, configuration) in configurations {
            let rig = LoginRig.tokens(metadata + [TokenScript.asked("password") { $0.form("resource") == resource }])
            let login = try login(discovery(), "") { found in
                (try? configuration(found)) ?? TokenConfiguration(url: found.url, grant: .refreshToken)
            }
            _ = try await rig.logIn(login)
        }
    }

    private static func parameter(_ value: String) throws -> TokenConfiguration.Parameter {
        .init(name: "resource", value: try TextTemplate(value))
    }
}

@Suite("Scopes that a token server refuses")
struct RefusedScopeTests {
    /// Returns a login for `scope` at an endpoint whose configured scope is `read`.
    private func login(_ scope: String, _ grant: TokenConfiguration.Grant = .clientCredentials) throws -> TokenLogin {
        TokenLogin(
            try TokenScript.configuration(grant), key: TokenScript.key, scope: Scope(text: scope),
            configuredScope: Scope(text: "read"), keys: ScriptedKeys(),
            refreshTokens: RefreshTokens(credential: "api-client", origin: TokenScript.origin))
    }

    private func asked(for scope: String, _ status: Int = 200, _ error: String = "") -> ScriptedStep {
        let step = TokenScript.asked { $0.form("scope") == scope }
        return status == 200 ? step : step.replying(status, [:], #"{"error":"\#(error)"}"#)
    }

    private func accepted(_ steps: [ScriptedStep]) async -> LoginRig {
        let rig = LoginRig.tokens(steps)
        await rig.latches.accept(TokenScript.key, TokenScript.client, Acceptance(path: nil, at: 0))
        return rig
    }

    @Test("a token records that its credential was accepted")
    func mark() async throws {
        let rig = LoginRig.tokens([asked(for: "read")])
        _ = try await rig.logIn(try login("read"))
        #expect(rig.latches.acceptance(TokenScript.key, of: TokenScript.client)?.at == LoginRig.now)
    }

    @Test(
        "a larger scope refused to an accepted credential latches nothing, since less scope is requested once",
        arguments: [
            (400, "invalid_grant"), (400, "invalid_client"), (401, "invalid_client"), (401, "unauthorized_client"),
            (401, ""),
        ])
    func grown(status: Int, error: String) async throws {
        let rig = await accepted([asked(for: "admin read", status, error), asked(for: "read")])
        let failure = await rig.lose(try login("admin read"))
        #expect(failure.code == .failed && failure.concernsScope && failure.detail.contains("admin read"))
        #expect(failure.retryAt == LoginRig.now + 30_000 && rig.latches.all.isEmpty)
    }

    @Test(
        "error codes about the scope latch nothing and cause no further request",
        arguments: ["invalid_scope", "unauthorized_client"])
    func words(error: String) async throws {
        let rig = LoginRig.tokens([asked(for: "admin read", 400, error)])
        let failure = await rig.lose(try login("admin read"))
        #expect(failure.code == .failed && failure.concernsScope && rig.latches.all.isEmpty)
        #expect(failure.retryAt == LoginRig.now + 30_000)
    }

    @Test("a locked account is latched at once, whatever the scope, although its secret was accepted before")
    func locked() async throws {
        let step = TokenScript.asked().replying(
            400, [:], #"{"error":"invalid_grant","error_description":"AADSTS50053: locked"}"#)
        let rig = await accepted([step])
        #expect(await rig.lose(try login("admin read")).code == .accountLocked)
        #expect(rig.latches.all.map(\.reason) == [.locked])
    }

    @Test("an unusable answer for less scope settles nothing: that scope is requested again")
    func unusable() async throws {
        let rig = await accepted([
            asked(for: "admin read", 401, "invalid_client"),
            asked(for: "read").replying(200, [:], #"{"token_type":"Bearer"}"#),
            asked(for: "read", 401, "invalid_client"),
        ])
        let login = try login("admin read")
        await #expect(throws: LoginFailure.self) { try await login.logIn(rig.conversation) }
        #expect(rig.latches.all.isEmpty)
        #expect(await rig.lose(login).code == .rejected)
    }

    @Test("a secret that is refused for less scope as well is rejected, after two requests")
    func changedAtServer() async throws {
        let rig = await accepted([
            asked(for: "admin read", 401, "invalid_client"), asked(for: "read", 401, "invalid_client"),
        ])
        #expect(await rig.lose(try login("admin read")).code == .rejected)
        #expect(await rig.lose(try login("read")).code == .latched)
    }

    @Test("a secret refused for more scope is not sent for it again until it is known whether less is refused too")
    func unconfirmed() async throws {
        let silent = TokenScript.asked { $0.form("scope") == "read" }
            .replying(.failure(SideRequestError(.unreachable, reason: "no answer")))
        for isRight in [true, false] {
            let last = isRight ? [asked(for: "admin read", 401, "invalid_client")] : []
            let rig = await accepted(
                [
                    asked(for: "admin read", 401, "invalid_client"), silent, silent,
                    asked(for: "read", isRight ? 200 : 401, "invalid_client"),
                ] + last)
            let login = try login("admin read")
            for _ in 0..<2 {
                await #expect(throws: LoginFailure.self) { try await login.logIn(rig.conversation) }
                #expect(rig.latches.all.isEmpty)
            }
            let failure = await rig.lose(login)
            #expect(failure.code == (isRight ? .failed : .rejected) && failure.concernsScope == isRight)
        }
    }

    @Test("more scope is granted as soon as the secret, once refused for it, is known to be accepted")
    func granted() async throws {
        let silent = TokenScript.asked { $0.form("scope") == "read" }
            .replying(.failure(SideRequestError(.unreachable, reason: "no answer")))
        let rig = await accepted([
            asked(for: "admin read", 401, "invalid_client"), silent, asked(for: "read"), asked(for: "admin read"),
        ])
        let login = try login("admin read")
        await #expect(throws: LoginFailure.self) { try await login.logIn(rig.conversation) }
        _ = try await rig.logIn(login)
    }

    @Test("a secret that is refused for the configured scope is rejected at once, accepted before or not")
    func configured() async throws {
        for rig in [
            await accepted([asked(for: "read", 400, "invalid_grant")]),
            LoginRig.tokens([asked(for: "read", 400, "invalid_grant")]),
        ] { #expect(await rig.lose(try login("read")).code == .rejected) }
    }

    @Test("a secret that no server ever accepted is rejected at its first refusal, for whatever scope")
    func neverAccepted() async throws {
        let rig = LoginRig.tokens([asked(for: "admin read", 401, "invalid_client")])
        #expect(await rig.lose(try login("admin read")).code == .rejected)
    }

    @Test("the refresh token that comes with the smaller scope is saved")
    func rotated() async throws {
        let refused = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-1" }
            .replying(401, [:], #"{"error":"invalid_client"}"#)
        let taken = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-1" }
            .replying(200, [:], #"{"access_token":"t","refresh_token":"refresh-2"}"#)
        let next = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-2" }
        let rig = await accepted([refused, taken, next])
        await #expect(throws: LoginFailure.self) {
            try await login("admin read", .refreshToken).logIn(rig.conversation)
        }
        #expect(rig.latches.all.isEmpty)
        _ = try await rig.logIn(try login("read", .refreshToken))
    }

    @Test("a refused scope leaves the upstream ready, and is not retried on its own")
    func configured() {
        var table = SessionTable<Int>()
        let key = SessionKey(
            origin: TokenScript.origin, challenge: "api", credential: "api-client", scope: "admin read")
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        var failure = LoginFailure(.failed, challenge: "api", detail: "", retryAt: 30_000)
        failure.concernsScope = true
        _ = table.finish(key, with: .failure(failure), now: 0, chance: 0)
        #expect(table.state(of: key, now: 100) == .cold)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 29_999) == .refuse(failure))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 30_000) == .logIn)
    }
}
