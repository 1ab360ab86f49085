// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

@Suite("Authorization scenarios of the Model Context Protocol")
struct MCPScenarioTests {
    struct Scenario: Sendable, CustomTestStringConvertible {
        var name, told, metadata, resource, issuer, server, namedIssuer: String
        var isFound: Bool
        var testDescription: String { name }

        init(_ row: [String]) {
            (name, told, metadata, resource) = (row[0], row[1], row[2], row[3])
            (issuer, server, namedIssuer, isFound) = (row[4], row[5], row[6], row[7] == "found")
        }
    }

    private static let scenarios = JudgeTable("mcp-authorization").rows.map(Scenario.init)

    /// Returns the requests for metadata, in order, up to the place that has some.
    private func looks(_ places: [String], _ found: String, _ body: String) -> [ScriptedStep] {
        let missed = places.prefix { $0 != found }
        let asked = missed.map { get($0, "", 404) }
        return missed.count == places.count ? asked : asked + [get(found, body, 200)]
    }

    private func get(_ address: String, _ body: String, _ status: Int) -> ScriptedStep {
        ScriptedStep(.get, address, .success(SideResponse(status: status, body: Array(body.utf8)))) {
            $0.fields[.authorization] == nil && $0.body == nil
        }
    }

    @Test(
        "each scenario leads to the token endpoint or nowhere, with only the requests that it allows",
        arguments: scenarios)
    func discovery(scenario: Scenario) async throws {
        let url = try #require(WebURL("https://api.example.com/mcp"))
        let known = "https://api.example.com/.well-known/oauth-protected-resource"
        let isTold = scenario.told != "-"
        var steps = looks(
            isTold ? [scenario.told] : ["\(known)/mcp", known], scenario.metadata,
            #"{"resource":"\#(scenario.resource)","authorization_servers":["\#(scenario.issuer)"]}"#)
        let path = scenario.issuer.dropFirst("https://id.example.com".count)
        let wellKnown = "https://id.example.com/.well-known"
        let servers = [
            "\(wellKnown)/oauth-authorization-server\(path)", "\(wellKnown)/openid-configuration\(path)",
            "\(scenario.issuer)/.well-known/openid-configuration",
        ]
        if scenario.resource.hasPrefix("https://api.example.com") {
            steps += looks(
                servers, scenario.server,
                #"{"issuer":"\#(scenario.namedIssuer)","token_endpoint":"\#(scenario.issuer)/token"}"#)
        }
        if scenario.isFound {
            steps.append(ScriptedStep(.post, "\(scenario.issuer)/token", TokenScript.answering()))
        }
        let discovery = TokenDiscovery(
            name: "api", resource: url, servers: [try #require(AuthorizationServer(scenario.issuer))])
        let challenge = ExaminedResponse(
            status: 401,
            fields: [.wwwAuthenticate: isTold ? "Bearer resource_metadata=\"\(scenario.told)\"" : "Bearer"], url: url)
        let login = DiscoveredTokenLogin(discovery, challenge: challenge) { found in
            TokenScript.login(TokenConfiguration(found, grant: .clientCredentials))
        }
        let rig = LoginRig.tokens(steps)
        guard scenario.isFound else {
            #expect(await rig.lose(login).code == .failed)
            return
        }
        _ = try await rig.logIn(login)
    }
}

@Suite("Token requests of clients of the Model Context Protocol")
struct MCPTokenRequestTests {
    struct Scenario: Sendable, CustomTestStringConvertible {
        let name, grant, credential, scope, supported, methods, reason: String
        /// The client's authentication: as configured, as the suite expects it, and as it is here.
        let configuredProof, suiteProof, proof: String
        /// Status and scope of each challenge.
        let challenges: [(status: Int, scope: String)]
        /// Scope of each token request, as the suite expects it and as it is here.
        let suite, ours: [String]
        var testDescription: String { "\(name), \(grant)" }

        init(_ row: [String]) {
            (name, grant, credential, configuredProof) = (row[0], row[1], row[2], row[3])
            (scope, supported, methods) = (row[4], row[6], row[7])
            challenges = Self.parts(row[5]).map { part in
                (Int(part.prefix(3)) ?? 0, String(part.dropFirst(4)))
            }
            (suite, ours, suiteProof, proof) = (Self.parts(row[8]), Self.parts(row[10]), row[9], row[11])
            reason = row[12]
        }

        private static func parts(_ column: String) -> [String] {
            column.split(separator: ", ").map { $0 == "-" ? "" : String($0) }
        }
    }

    private static let scenarios = JudgeTable("mcp-token-requests").rows.map(Scenario.init)
    private static let resource = "https://api.example.com/mcp"
    private static let issuer = "https://id.example.com"
    private static let told = "https://api.example.com/.well-known/oauth-protected-resource/mcp"

    private func get(_ address: String, _ body: String) -> ScriptedStep {
        ScriptedStep(.get, address, .success(SideResponse(status: 200, body: Array(body.utf8))))
    }

    private func list(_ words: String) -> String {
        JSONValue.array(words.split(separator: " ").map { .string(String($0)) }).serialized
    }

    /// Returns the requests that find the endpoint, and the token request.
    private func steps(_ scenario: Scenario, asking scope: String) -> [ScriptedStep] {
        let supported = scenario.supported == "-" ? "" : #","scopes_supported":\#(list(scenario.supported))"#
        let methods =
            scenario.methods == "-" ? "" : #","token_endpoint_auth_methods_supported":\#(list(scenario.methods))"#
        return [
            get(
                Self.told,
                #"{"resource":"\#(Self.resource)","authorization_servers":["\#(Self.issuer)"]\#(supported)}"#),
            get(
                "\(Self.issuer)/.well-known/oauth-authorization-server",
                #"{"issuer":"\#(Self.issuer)","token_endpoint":"\#(TokenScript.address)"\#(methods)}"#),
            TokenScript.asked(scenario.grant) { request in
                request.form("scope") == (scope.isEmpty ? nil : scope) && request.form("resource") == Self.resource
                    && Self.proof(in: request) == scenario.proof
            },
        ]
    }

    /// Returns the client's authentication in a token request. An assertion has to name the server.
    private static func proof(in request: SideRequest) -> String {
        if request.fields[.authorization]?.hasPrefix("Basic ") == true {
            return request.form("client_id") == nil && request.form("client_secret") == nil ? "basic" : "twice"
        }
        if let assertion = request.form("client_assertion") {
            let parts = assertion.split(separator: ".").map { Base64.decode(String($0)) ?? [] }
            let audience = parts.count == 3 ? JSONValue(parsing: parts[1])?["aud"] : nil
            return audience == .string(issuer) ? "private-key-jwt" : "for \(audience?.stringValue ?? "nobody")"
        }
        return request.form("client_secret") != nil ? "body" : request.form("client_id") != nil ? "none" : "nothing"
    }

    @Test(
        "a token request names scope, resource and client as the suite expects, except as the table explains",
        arguments: scenarios)
    func requests(scenario: Scenario) async throws {
        let url = try #require(WebURL(Self.resource))
        let grant = try #require(TokenConfiguration.Grant(rawValue: scenario.grant))
        let proofs: [String: TokenConfiguration.ClientAuthentication] = [
            "basic": .basic, "body": .body, "private-key-jwt": .privateKeyJWT,
        ]
        let configured = scenario.scope == "-" ? Scope.empty : Scope(text: scenario.scope)
        let discovery = TokenDiscovery(
            name: "api", resource: url, servers: [try #require(AuthorizationServer(Self.issuer))],
            takesScope: configured.isEmpty && grant != .refreshToken)
        let fields: [String: [String: String?]] = [
            "secret": ["private-key": nil], "key": ["client-secret": nil],
            "public": ["private-key": nil, "client-secret": nil],
        ]
        let credential = TokenScript.credential(try #require(fields[scenario.credential]))
        let rig = LoginRig.tokens(scenario.ours.flatMap { steps(scenario, asking: $0) }, credential)
        for (status, scope) in scenario.challenges {
            let error = status == 403 ? ", error=\"insufficient_scope\"" : ""
            let named = scope == "-" ? "" : ", scope=\"\(scope)\""
            let challenge = ExaminedResponse(
                status: status, fields: [.wwwAuthenticate: "Bearer resource_metadata=\"\(Self.told)\"\(named)\(error)"],
                url: url)
            // The client adds the scope that a 403 names.
            let asked = status == 403 ? configured.union(Scope(text: scope)) : configured
            let login = DiscoveredTokenLogin(discovery, challenge: challenge) { found in
                TokenLogin(
                    TokenConfiguration(
                        found, grant: grant, clientAuthentication: proofs[scenario.configuredProof]),
                    key: TokenScript.key, scope: asked.union(found.scope), configuredScope: configured,
                    keys: ScriptedKeys(),
                    refreshTokens: RefreshTokens(credential: "api-client", origin: TokenScript.origin))
            }
            _ = try await login.logIn(rig.conversation)
        }
        #expect(rig.requests.missing.isEmpty)
    }

    @Test("a token request differs from the suite's only for a listed reason", arguments: scenarios)
    func reasons(scenario: Scenario) {
        let isSame = scenario.suite == scenario.ours && scenario.suiteProof == scenario.proof
        #expect(isSame == (scenario.reason == "-"))
    }
}

extension JSONValue {
    fileprivate var serialized: String { String(decoding: serialized(), as: UTF8.self) }
}
