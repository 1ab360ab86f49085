// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

@Suite("What is asked for on a resource's word")
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

    @Test("is asked for by renewals, too, and added to what other challenges have named")
    func kept() async throws {
        let discovery = try discovery()
        let world = World.tokens(
            metadata + [asked(for: "a"), asked(for: "a")] + metadata + [asked(for: "a b"), asked(for: "a b")])
        _ = try await login(discovery, "a").win(world.conversation)
        _ = try await login(discovery, nil).win(world.conversation)
        _ = try await login(discovery, "b").win(world.conversation)
        _ = try await world.win(login(discovery, nil))
    }

    @Test("is not asked for by all where a 403 names it for one, which asks nobody again where tokens come from")
    func forOne() async throws {
        let discovery = try discovery()
        let world = World.tokens(metadata + [asked(for: "a"), asked(for: "a"), asked(for: "a")])
        _ = try await login(discovery, "a").win(world.conversation)
        _ = try await login(discovery, "b", status: 403).win(world.conversation)
        _ = try await world.win(login(discovery, nil))
    }

    @Test(
        "is not asked for by renewals where the server refuses it: what that gives by itself has to do",
        arguments: ["invalid_scope", "unauthorized_client"])
    func refused(word: String) async throws {
        let discovery = try discovery()
        let world = World.tokens(
            metadata + [
                asked(for: "admin").replying(400, [:], #"{"error":"\#(word)"}"#), asked(for: nil), asked(for: nil),
            ])
        _ = try await login(discovery, "admin").win(world.conversation)
        _ = try await world.win(login(discovery, nil))
        #expect(world.latches.all.isEmpty)
    }

    @Test("is nothing where it names more than 32 words or 1 KiB")
    func long() async throws {
        for scope in [(0...32).map { "s\($0)" }.joined(separator: " "), String(repeating: "s", count: 1024)] {
            let world = World.tokens(metadata + [asked(for: nil)])
            _ = try await world.win(login(discovery(), scope))
        }
    }

    @Test("is its own name besides, unless the configuration has an audience, another name, or none")
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
            let world = World.tokens(metadata + [TokenScript.asked("password") { $0.form("resource") == resource }])
            let login = try login(discovery(), "") { found in
                (try? configuration(found)) ?? TokenConfiguration(url: found.url, grant: .refreshToken)
            }
            _ = try await world.win(login)
        }
    }

    private static func parameter(_ value: String) throws -> TokenConfiguration.Parameter {
        .init(name: "resource", value: try TextTemplate(value))
    }
}
