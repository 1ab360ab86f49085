// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
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

    /// The login after a challenge with that status that names `scope`; `nil`: a renewal.
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
