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

    @Test("a client with a certificate needs one, over TLS, and no secret")
    func certificate() throws {
        func yaml(_ token: String) -> String {
            SettingsTests.challenge(
                "name: c, upstream: u, scheme: bearer, credential: x, token: { grant: client-credentials, \(token) }")
        }
        let files = "tls: { certificate: /c.pem, key: /k.pem }"
        let good = yaml("url: https://i.example/t, client-auth: tls, \(files)")
        #expect(errors(good) == [])
        let settings = try #require(parsed(good))
        #expect(settings.challenges[0].kind.requiredFields == ["client-id"])
        let tls = try #require(settings.challenges[0].kind.loginTLS)
        #expect(tls.settings == TLSSettings(certificate: "/c.pem", key: "/k.pem") && tls.key == "token.tls")
        for (token, problem) in [
            (
                "url: https://i.example/t, client-auth: tls",
                "client-auth: needs the client's certificate: add `tls` with `certificate` and `key`"
            ),
            (
                "url: https://i.example/t, client-auth: tls, tls: { ca: /a.pem }",
                "client-auth: needs the client's certificate: add `tls` with `certificate` and `key`"
            ),
            (
                "url: \"http://localhost:1/t\", client-auth: tls, \(files)",
                "client-auth: needs an https:// address: without TLS no certificate is sent"
            ),
            (
                "url: https://i.example/t, tls: { certificate: /c.pem }",
                "tls: certificate and key go together: key is missing"
            ),
            ("url: https://i.example/t, tls: { cert: /c.pem }", "tls.cert: unknown key"),
        ] {
            let found = errors(yaml(token))
            #expect(found.count == 1 && found[0].contains("challenges[0].token.\(problem)"), "\(found)")
        }
    }

    @Test("the files of a token's `tls` are looked at, and `tls` that nothing uses is reported")
    func tlsFiles() {
        func found(_ token: String) -> [String] {
            problems(
                SettingsTests.challenge("name: c, upstream: u, scheme: bearer, credential: x, token: { \(token) }"))
        }
        let missing = found("grant: password, url: https://i.example/t, tls: { ca: /no/such.pem }")
        #expect(
            missing.count == 1 && missing[0].contains("challenges[0].token.tls.ca: warning: /no/such.pem"), "\(missing)"
        )
        let unused = found("grant: password, url: \"http://localhost:1/t\", tls: { minimum: 1.3 }")
        #expect(
            unused.count == 1 && unused[0].contains("token.tls: warning: the token's server is reached without TLS"))
        let nobody = found("grant: static, tls: { minimum: 1.3 }")
        #expect(nobody.count == 1 && nobody[0].contains("token.tls: the grant static uses no server"))
    }

    @Test("the client's authentication changes what a login means, and the files of its certificate do not")
    func terms() throws {
        func terms(_ token: String) throws -> String {
            let settings = try #require(
                parsed(
                    SettingsTests.challenge(
                        "name: c, upstream: u, scheme: bearer, credential: x, token: { grant: password, url: https://i.example/t, \(token) }"
                    )))
            return settings.challenges[0].terms(at: settings.upstreams[0].protected).text
        }
        let plain = try terms("scope: a")
        let certificate = try terms("scope: a, client-auth: tls, tls: { certificate: /c.pem, key: /k.pem }")
        let otherFiles = try terms("scope: a, client-auth: tls, tls: { certificate: /d.pem, key: /l.pem }")
        let authority = try terms("scope: a, tls: { ca: /a.pem }")
        #expect(plain == authority && plain != certificate && certificate == otherFiles)
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
                "{key} is extracted but never sent: add `inject`, or a parameter of a later step, or put it into its `url`"
            ),
        ])
    func wrongExtraction(step: String, problem: String) {
        let yaml = SettingsTests.challenge(
            "name: c, upstream: u, gateway: none, detect: { status: 401 }, credential: x, login: { url: /l, \(step) }")
        #expect(problems(yaml).count == 1 && problems(yaml).first?.hasSuffix(problem) == true, "\(problems(yaml))")
    }
}
