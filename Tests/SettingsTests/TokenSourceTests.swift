// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import Settings

@Suite("Settings of tokens that are found or taken from answers")
struct TokenSourceTests {
    @Test("issuers take the place of a url")
    func issuers() throws {
        let yaml = SettingsTests.challenge(
            "name: c, upstream: u, scheme: bearer, credential: x, token: { issuers: [https://id.example/t, "
                + "\"http://localhost:8\"], grant: password }")
        #expect(problems(yaml) == [])
        guard let scheme = try #require(parsed(yaml)).challenges.first?.kind as? SchemeSettings else {
            Issue.record("no scheme")
            return
        }
        #expect(scheme.token?.url == nil)
        #expect(scheme.token?.issuers.map(\.issuer) == ["https://id.example/t", "http://localhost:8"])
    }

    @Test(
        "what is wrong in issuers is told",
        arguments: [
            ("issuers: [], grant: password", "5:78: challenges[0].token.issuers: is empty: no server would be asked"),
            (
                "issuers: https://i.example, url: https://i.example/t, grant: password",
                "5:78: challenges[0].token.issuers: stands beside `url`, in line 5: a token has one of them"
            ),
            (
                "issuers: https://i.example, grant: registry",
                "5:78: challenges[0].token.issuers: belongs to the grants client-credentials, password and refresh-token"
            ),
            (
                "issuers: http://i.example, grant: password",
                "5:78: challenges[0].token.issuers: is no issuer of tokens: an address of https:// (http:// on this machine "
                    + "only) without a query, letter by letter as the server's metadata has it (RFC 8414)"
            ),
        ])
    func wrongIssuers(token: String, problem: String) {
        let yaml = SettingsTests.challenge("name: c, upstream: u, scheme: bearer, credential: x, token: { \(token) }")
        #expect(problems(yaml) == ["f:\(problem)"])
    }

    @Test("a list may hold bearer, but no registry's")
    func list() {
        let keys = "name: c, upstream: u, scheme: [negotiate, bearer, basic], credential: x, token:"
        #expect(problems(SettingsTests.challenge("\(keys) { grant: static }")) == [])
        #expect(
            problems(SettingsTests.challenge("\(keys) { grant: registry, url: https://r.example/t }")) == [
                "f:5:87: challenges[0].token: the grant registry stands alone: write a challenge of its own for the other "
                    + "schemes"
            ])
    }

    @Test("a gateway may take a token from an answer and inject it")
    func extraction() throws {
        let yaml = SettingsTests.challenge(
            "name: c, upstream: u, gateway: none, detect: { status: 401 }, credential: x, login: { url: /l, "
                + "extract: { token: /data/token }, expires: /data/life }, inject: { Authorization: \"Bearer {token}\" }"
        )
        #expect(problems(yaml) == [])
        guard let gateway = try #require(parsed(yaml)).challenges.first?.kind as? GatewaySettings else {
            Issue.record("no gateway")
            return
        }
        let pointer = try #require(JSONPointer("/data/token"))
        #expect(gateway.login.first?.extraction.parts == [.init(name: "token", pointer: pointer)])
        #expect(gateway.login.first?.extraction.expires == JSONPointer("/data/life"))
        #expect(gateway.inject.map(\.value.source) == ["Bearer {token}"])
    }

    @Test(
        "what is wrong in an extraction is told",
        arguments: [
            ("extract: { token: data.token }", "is no place in a JSON text: write it as /data/token (RFC 6901)"),
            ("extract: { \"a b\": /a }", "the name is made of letters, digits, -, _ and ., and is not totp"),
            ("extract: { totp: /a }", "the name is made of letters, digits, -, _ and ., and is not totp"),
            (
                "extract: { key: /a }",
                "nothing sends {key}, which `extract` takes: add `inject`, or a parameter of a later step"
            ),
        ])
    func wrongExtraction(step: String, problem: String) {
        let yaml = SettingsTests.challenge(
            "name: c, upstream: u, gateway: none, detect: { status: 401 }, credential: x, login: { url: /l, \(step) }")
        #expect(problems(yaml).count == 1 && problems(yaml).first?.hasSuffix(problem) == true, "\(problems(yaml))")
    }
}
