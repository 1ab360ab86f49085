// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Discovery of a token endpoint")
struct TokenDiscoveryTests {
    private static let resource = "https://api.example.com/v1"
    private static let metadata = "https://api.example.com/.well-known/oauth-protected-resource/v1"
    private static let issuer = "https://id.example.com/tenant"
    private static let server = "https://id.example.com/.well-known/oauth-authorization-server/tenant"
    private static let openID = "https://id.example.com/tenant/.well-known/openid-configuration"
    private static let insertedOpenID = "https://id.example.com/.well-known/openid-configuration/tenant"
    private static let endpoint = "https://id.example.com/tenant/token"

    private static let goodResource =
        #"{"resource":"\#(resource)","authorization_servers":["https://x.example","\#(issuer)"]}"#
    private static let goodServer = #"{"issuer":"\#(issuer)","token_endpoint":"\#(endpoint)"}"#

    private func discovery(usesCertificate: Bool = false) throws -> TokenDiscovery {
        TokenDiscovery(
            name: "api", resource: try #require(WebURL(Self.resource)),
            servers: try ["https://other.example", Self.issuer].map { try #require(AuthorizationServer($0)) },
            usesCertificate: usesCertificate)
    }

    @Test(
        "a client with a certificate uses the alias that the metadata names, at the server's own origin only (RFC 8705 section 5)"
    )
    func alias() async throws {
        let alias = "https://id.example.com/mtls/token"
        func metadata(_ alias: String) -> String {
            #"{"issuer":"\#(Self.issuer)","token_endpoint":"\#(Self.endpoint)","mtls_endpoint_aliases":{"token_endpoint":"\#(alias)"}}"#
        }
        func rig(_ server: String, _ endpoint: String?) -> LoginRig {
            LoginRig.tokens(
                [get(Self.metadata, Self.goodResource), get(Self.server, server)]
                    + (endpoint.map { [ScriptedStep(.post, $0, TokenScript.answering())] } ?? []))
        }
        _ = try await rig(metadata(alias), alias).logIn(login(discovery(usesCertificate: true)))
        // Without a certificate the alias would refuse the connection.
        _ = try await rig(metadata(alias), Self.endpoint).logIn(login(discovery()))
        _ = try await rig(Self.goodServer, Self.endpoint).logIn(login(discovery(usesCertificate: true)))
        let failure = await rig(metadata("https://mtls.example.com/token"), nil)
            .lose(try login(discovery(usesCertificate: true)))
        #expect(failure.code == .failed && failure.detail.contains("another origin"))
    }

    private func login(_ discovery: TokenDiscovery, _ challenge: String? = "") throws -> DiscoveredTokenLogin {
        let url = try #require(WebURL("\(Self.resource)/accounts"))
        let response = challenge.map { parameter in
            ExaminedResponse(
                status: 401, fields: [.wwwAuthenticate: parameter.isEmpty ? "Bearer" : "Bearer \(parameter)"], url: url)
        }
        return DiscoveredTokenLogin(discovery, challenge: response) { found in
            TokenScript.login(TokenConfiguration(found, grant: .clientCredentials))
        }
    }

    private func get(_ address: String, _ body: String, _ status: Int = 200) -> ScriptedStep {
        ScriptedStep(.get, address, .success(SideResponse(status: status, body: Array(body.utf8)))) { request in
            request.fields[.authorization] == nil && request.body == nil
                && request.fields[.accept] == "application/json"
        }
    }

    private func token() -> ScriptedStep { ScriptedStep(.post, Self.endpoint, TokenScript.answering()) }

    @Test(
        "discovery reads the resource's and the server's metadata, and sends a secret only to the endpoint",
        arguments: [true, false])
    func found(isTold: Bool) async throws {
        let rig = LoginRig.tokens([get(Self.metadata, Self.goodResource), get(Self.server, Self.goodServer), token()])
        let session = try await rig.logIn(login(discovery(), isTold ? "resource_metadata=\"\(Self.metadata)\"" : ""))
        #expect(session.fields == [InjectedField(name: .authorization, value: Secret("Bearer token-1"))])
    }

    @Test("discovery reads the metadata of OpenID Connect if there is no other")
    func openID() async throws {
        let rig = LoginRig.tokens([
            get(Self.metadata, Self.goodResource), get(Self.server, "", 404), get(Self.insertedOpenID, "", 404),
            get(Self.openID, Self.goodServer), token(),
        ])
        _ = try await rig.logIn(login(discovery()))
    }

    @Test("discovery is repeated after another challenge, but not for a renewal")
    func kept() async throws {
        let found = [get(Self.metadata, Self.goodResource), get(Self.server, Self.goodServer), token()]
        let rig = LoginRig.tokens(found + [token()] + found)
        let discovery = try discovery()
        _ = try await login(discovery).logIn(rig.conversation)
        _ = try await login(discovery, nil).logIn(rig.conversation)
        _ = try await rig.logIn(login(discovery))
    }

    @Test("discovery before any challenge reads the metadata at its well-known address")
    func ahead() async throws {
        let rig = LoginRig.tokens([get(Self.metadata, Self.goodResource), get(Self.server, Self.goodServer), token()])
        _ = try await rig.logIn(login(discovery(), nil))
    }

    @Test(
        "discovery requests no address that a challenge must not lead to",
        arguments: [
            "resource_metadata=\"https://evil.example/m\"", "resource_metadata=\"http://api.example.com/m\"",
            "resource_metadata=\"https://api.example.com:8443/m\"", "resource_metadata=\"/m\"",
            "resource_metadata=\"\"",
            "resource_metadata=\"https://a@api.example.com/m\"",
            "resource_metadata=\"\(metadata)\", Bearer resource_metadata=\"https://api.example.com/m\"",
        ])
    func astray(parameter: String) async throws {
        let failure = await LoginRig.tokens([]).lose(try login(discovery(), parameter))
        #expect(failure.code == .failed && failure.detail.contains("resource_metadata"))
    }

    @Test(
        "discovery refuses invalid metadata of the resource",
        arguments: [
            "", "[]", "{}", goodResource.replacing("v1", with: "v2"),
            goodResource.replacing("v1\"", with: "v1/other\""),
            goodResource.replacing("https://api", with: "http://api"), goodResource.replacing("v1\"", with: "v1#x\""),
            goodResource.replacing("v1\"", with: "v1?x\""), goodResource.replacing("/v1\"", with: "/v\""),
            goodResource.replacing(issuer, with: issuer + "/"),
            goodResource.replacing(issuer, with: "https://id.example.com"),
            goodResource.replacing("authorization_servers", with: "servers"),
        ])
    func resourceRefused(body: String) async throws {
        let rig = LoginRig.tokens([get(Self.metadata, body)])
        let failure = await rig.lose(try login(discovery()))
        #expect(failure.code == .failed && failure.detail.contains("metadata") && failure.detail.contains("token.url"))
        #expect(rig.latches.all.isEmpty)
    }

    @Test("discovery accepts the metadata of the whole upstream for the resource", arguments: ["/v1/", "/", ""])
    func covering(path: String) async throws {
        let body = Self.goodResource.replacing("/v1\"", with: "\(path)\"")
        _ = try await LoginRig.tokens([get(Self.metadata, body), get(Self.server, Self.goodServer), token()])
            .logIn(login(discovery()))
    }

    @Test(
        "discovery refuses invalid metadata of the server",
        arguments: [
            "", "[]", "{}", goodServer.replacing(issuer + "\"", with: issuer + "/\""),
            goodServer.replacing(endpoint, with: "https://evil.example/token"),
            goodServer.replacing(endpoint, with: "http://id.example.com/tenant/token"),
            goodServer.replacing(endpoint, with: "https://id.example.com:444/tenant/token"),
            goodServer.replacing(endpoint, with: "/token"), goodServer.replacing("token_endpoint", with: "endpoint"),
        ])
    func serverRefused(body: String) async throws {
        let rig = LoginRig.tokens([get(Self.metadata, Self.goodResource), get(Self.server, body)])
        let failure = await rig.lose(try login(discovery()))
        #expect(failure.code == .failed && rig.latches.all.isEmpty)
    }

    @Test("discovery fails on a redirect and on a server error", arguments: [302, 401, 500, 503])
    func trouble(status: Int) async throws {
        let failure = await LoginRig.tokens([get(Self.metadata, Self.goodResource, status)]).lose(
            try login(discovery()))
        #expect(failure.code == .failed && failure.detail.contains("\(status)"))
    }

    @Test(
        "only valid issuer identifiers name an authorization server",
        arguments: [
            ("https://id.example.com", true), ("https://id.example.com/a/b/", true), ("http://127.0.0.1:8/x", true),
            ("http://id.example.com", false), ("https://id.example.com?a", false), ("https://id.example.com/#a", false),
            ("id.example.com", false), ("ftp://id.example.com", false), ("", false),
        ])
    func servers(text: String, isOne: Bool) { #expect((AuthorizationServer(text)?.issuer == text) == isOne) }
}

@Suite("Assertions whose time a token endpoint refuses")
struct TokenAssertionTests {
    private static let stale = #"{"error":"invalid_client","error_description":"The client_assertion is expired."}"#

    private static func login(_ grant: TokenConfiguration.Grant = .clientCredentials) throws -> TokenLogin {
        TokenScript.login(try TokenScript.configuration(grant) { $0.clientAuthentication = .privateKeyJWT })
    }

    private static func claims(_ request: SideRequest) -> JSONValue? {
        let parts = request.form("client_assertion")?.split(separator: ".") ?? []
        return parts.count == 3 ? Base64.decode(parts[1]).flatMap { JSONValue(parsing: $0) } : nil
    }

    @Test("another assertion is made, of the time that the server tells, and the key is not latched")
    func again() async throws {
        // 90 s ahead of the rig's clock.
        let refused = TokenScript.asked().replying(401, [.date: "Sat, 21 Nov 2026 16:01:30 GMT"], Self.stale)
        let rig = LoginRig.tokens([refused, TokenScript.asked()])
        _ = try await rig.logIn(try Self.login())
        let claims = rig.requests.sent.map(Self.claims)
        let now = LoginRig.now / 1000
        #expect(claims.map { $0?["iat"] } == [.integer(now), .integer(now + 90)])
        #expect(Set(claims.map { $0?["jti"] }).count == 2)
        #expect(rig.latches.all.isEmpty)
    }

    @Test(
        "a second refusal ends the login, and the failure names the clocks",
        arguments: [
            ("Sat, 21 Nov 2026 16:01:30 GMT", "90 s ahead of"), ("Sat, 21 Nov 2026 15:59:00 GMT", "60 s behind"),
            ("Sat, 21 Nov 2026 16:00:01 GMT", "is this machine's time"), ("", "does not tell its time"),
        ])
    func twice(date: String, clocks: String) async throws {
        let fields: HTTPFields = date.isEmpty ? [:] : [.date: date]
        let refused = TokenScript.asked().replying(401, fields, Self.stale)
        let rig = LoginRig.tokens([refused, refused])
        let failure = await rig.lose(try Self.login())
        #expect(failure.code == .failed && failure.detail.contains(clocks) && failure.detail.contains("invalid_client"))
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a wrong key is sent once, also after a refused time")
    func wrongKey() async throws {
        let wrong = TokenScript.asked().replying(401, [:], #"{"error":"invalid_client"}"#)
        for steps in [[wrong], [TokenScript.asked().replying(401, [:], Self.stale), wrong]] {
            let rig = LoginRig.tokens(steps)
            #expect(await rig.lose(try Self.login()).code == .rejected)
            #expect(await rig.lose(try Self.login()).code == .latched)
            #expect(rig.requests.sent.count == steps.count)
        }
    }

    @Test("a secret is not sent twice, whatever the text of its refusal says of time")
    func secret() async throws {
        let rig = LoginRig.tokens([TokenScript.asked().replying(401, [:], Self.stale)])
        #expect(await rig.lose(TokenScript.login(try TokenScript.configuration())).code == .rejected)
    }

    @Test("a refresh token goes with the second assertion unchanged, and its successor is saved")
    func refreshToken() async throws {
        let asked = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-1" }
        let next = TokenScript.answering(#"{"access_token":"t","refresh_token":"refresh-2"}"#)
        let store = MemoryStore()
        let rig = LoginRig.tokens([asked.replying(401, [:], Self.stale), asked.replying(next)], store: store)
        _ = try await rig.logIn(try Self.login(.refreshToken))
        let later = LoginRig.tokens(
            [TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-2" }], store: store)
        _ = try await later.logIn(try Self.login(.refreshToken))
    }
}
