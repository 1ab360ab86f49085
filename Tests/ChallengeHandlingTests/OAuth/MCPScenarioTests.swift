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

    /// The places where clients look, in their order, up to the one where something is.
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
