// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import Settings

@Suite("Settings of tokens that are found or taken from answers")
struct TokenSourceTests {
    @Test("a token with issuers needs no url")
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
        "each problem of issuers is reported with its position and a remedy",
        arguments: [
            ("issuers: [], grant: password", "5:78: challenges[0].token.issuers: is empty: name at least one server"),
            (
                "issuers: https://i.example, url: https://i.example/t, grant: password",
                "5:78: challenges[0].token.issuers: cannot be combined with `url` in line 5: a token has only one of them"
            ),
            (
                "issuers: https://i.example, grant: registry",
                "5:78: challenges[0].token.issuers: belongs to the grants client-credentials, password and refresh-token"
            ),
            (
                "issuers: http://i.example, grant: password",
                "5:78: challenges[0].token.issuers: is not an issuer (use an https:// address without a query, exactly as in the "
                    + "server's metadata, RFC 8414; http:// on this machine only)"
            ),
        ])
    func wrongIssuers(token: String, problem: String) {
        let yaml = SettingsTests.challenge("name: c, upstream: u, scheme: bearer, credential: x, token: { \(token) }")
        #expect(problems(yaml) == ["f:\(problem)"])
    }

    @Test("a list of schemes may contain bearer, but not with the grant registry")
    func list() {
        let keys = "name: c, upstream: u, scheme: [negotiate, bearer, basic], credential: x, token:"
        #expect(problems(SettingsTests.challenge("\(keys) { grant: static }")) == [])
        #expect(
            problems(SettingsTests.challenge("\(keys) { grant: registry, url: https://r.example/t }")) == [
                "f:5:87: challenges[0].token: the grant registry cannot be combined with other schemes: write a separate "
                    + "challenge for them"
            ])
    }

    @Test("a gateway may extract a token from an answer and inject it")
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
        #expect(gateway.login.first?.extraction.parts == [.init(name: "token", source: .json(pointer))])
        #expect(gateway.login.first?.extraction.expires == JSONPointer("/data/life"))
        #expect(gateway.inject.map(\.value.source) == ["Bearer {token}"])
    }

    @Test(
        "each problem of extract is reported with its position and a remedy",
        arguments: [
            (
                "extract: { token: data.token }",
                "is neither a JSON pointer such as /data/token (RFC 6901) nor a source such as cookie:NAME, header:NAME or "
                    + "page:/expression with one (group)/"
            ),
            ("extract: { token: /data~2 }", "is not a JSON pointer (use one such as /data/token, RFC 6901)"),
            (
                "extract: { token: \"page:/a(b/\" }", "The regular expression /a(b/ has a ( without a )."
            ),
            ("extract: { \"a b\": /a }", "the name is not valid (use letters, digits, -, _ and .; not totp)"),
            ("extract: { totp: /a }", "the name is not valid (use letters, digits, -, _ and .; not totp)"),
            (
                "extract: { key: /a }",
                "{key} is extracted but never sent: add `inject`, or a parameter of a later step"
            ),
        ])
    func wrongExtraction(step: String, problem: String) {
        let yaml = SettingsTests.challenge(
            "name: c, upstream: u, gateway: none, detect: { status: 401 }, credential: x, login: { url: /l, \(step) }")
        #expect(problems(yaml).count == 1 && problems(yaml).first?.hasSuffix(problem) == true, "\(problems(yaml))")
    }
}
