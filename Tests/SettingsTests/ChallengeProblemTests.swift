// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@testable import Settings

@Suite("Problems of challenges")
struct ChallengeProblemTests {
    @Test(
        "each problem of a challenge is reported with its position and a remedy",
        arguments: [
            (
                "name: c, upstream: u, credential: x",
                [
                    "5:5: challenges[0]: has no kind: add one of `security-check`, `gateway`, `scheme`, `inject`, `sign`, `handler`"
                ]
            ),
            (
                "name: c, upstream: u, inject: { A: b }, scheme: basic, credential: x",
                [
                    "5:5: challenges[0]: has several kinds: `scheme`, `inject`; write one challenge for each"
                ]
            ),
            ("upstream: u, inject: { A: b }", ["5:5: challenges[0].name: is missing"]),
            (
                "name: c, inject: { A: b }",
                [
                    "5:5: challenges[0]: has no location: add `at` with location patterns, or `upstream`"
                ]
            ),
            (
                "name: c, at: u, upstream: u, inject: { A: b }",
                [
                    "5:33: challenges[0].upstream: cannot be combined with `at` in line 5: a challenge has only one of them"
                ]
            ),
            (
                "name: c, at: [], inject: { A: b }",
                [
                    "5:20: challenges[0].at: is empty: name at least one location"
                ]
            ),
            (
                "name: c, at: [\"https://u.example\", \"a.*.com\"], inject: { A: b }",
                [
                    "5:42: challenges[0].at[1]: is not a location pattern: a * in the host must be its whole first label"
                ]
            ),
            (
                "name: c, upstream: u, scheme: basic, credential: { by-user: {} }",
                ["5:67: challenges[0].credential.by-user: is empty: no caller would have a credential"]
            ),
            (
                "name: c, upstream: u, scheme: basic, credential: { by-user: { \"a b\": x, ann: \"*\" }, others: x }",
                [
                    "5:76: challenges[0].credential.by-user.a b: \"a b\" is not a user name",
                    "5:84: challenges[0].credential.by-user.ann: \"*\" is not a valid name (use letters, digits, -, _ and .; at most 64 characters; do not begin with - or .)",
                    "5:91: challenges[0].credential.others: unknown key",
                ]
            ),
            (
                "name: c, upstream: u, scheme: basic, credential: { users: { ann: x } }",
                [
                    "5:56: challenges[0].credential: has neither by-user nor by-caller: add one of them, or write the name of a credential",
                    "5:58: challenges[0].credential.users: unknown key",
                ]
            ),
            (
                "name: c, upstream: u, credential: x, gateway: form, login: { exec: h }, success: { cookie: a }",
                [
                    "5:74: challenges[0].login.exec: \"h\" is not an absolute path: it must begin with /",
                    "5:88: challenges[0].success: has no effect with a helper, which reports if the login worked",
                ]
            ),
            (
                "name: c, upstream: u, credential: x, gateway: form, login: { exec: /h, socket: /s }",
                ["5:86: challenges[0].login.socket: cannot be combined with `exec`"]
            ),
            (
                "name: c, upstream: u, credential: x, gateway: form, login: { socket: /s, url: /in, fields: hidden }",
                [
                    "5:85: challenges[0].login.url: has no effect with a helper, which does the whole login",
                    "5:98: challenges[0].login.fields: has no effect with a helper, which does the whole login",
                ]
            ),
            (
                "name: c, upstream: u, credential: x, gateway: form, login: [{ socket: /s }, { url: /in }]",
                ["5:66: challenges[0].login: a helper does the whole login: write it as the only step"]
            ),
            (
                "name: c, upstream: u, credential: x, gateway: form, login: { socket: /\(String(repeating: "s", count: 107)) }",
                [
                    "5:76: challenges[0].login.socket: is longer than 107 bytes, the limit for the path of a socket"
                ]
            ),
            (
                "name: c, upstream: u, credential: x, gateway: none, login: { exec: /h }",
                [
                    "5:5: challenges[0]: the preset none needs `detect`: without it, the login page cannot be recognised"
                ]
            ),
            ("name: c, upstream: u, inject: {}", ["5:37: challenges[0].inject: is empty: nothing would be injected"]),
            ("name: c, upstream: u, inject: { A: \"{key}\" }", ["5:5: challenges[0].credential: is missing"]),
            (
                "name: c, upstream: u, inject: { Host: a }",
                [
                    "5:45: challenges[0].inject.Host: \"Host\" belongs to the connection and cannot be set"
                ]
            ),
            (
                "name: c, upstream: u, inject: { \"A B\": a }",
                [
                    "5:46: challenges[0].inject.A B: \"A B\" is not the name of a field"
                ]
            ),
            (
                "name: c, upstream: u, inject: { A: a, a: b }",
                [
                    "5:48: challenges[0].inject.a: the field is repeated: field names are not case-sensitive"
                ]
            ),
            (
                "name: c, upstream: u, inject: { A: {key} }, credential: x",
                [
                    "5:42: challenges[0].inject.A: put quotes around braces: \"{key}\""
                ]
            ),
            (
                "name: c, upstream: u, inject: { A: \"{key\" }, credential: x",
                [
                    "5:42: challenges[0].inject.A: A { has no }; write {{ for the character itself."
                ]
            ),
            (
                "name: c, upstream: u, inject: { A: b }, answer: {}, login: { when: at-start }",
                [
                    "5:55: challenges[0].answer: belongs to `security-check`, not to `inject`",
                    "5:66: challenges[0].login: must be on-demand or at-start: only a challenge with `gateway` has login steps",
                ]
            ),
            (
                "name: c, upstream: u, inject: { A: b }, retry-rejected: always",
                [
                    "5:63: challenges[0].retry-rejected: \"always\" is not a duration (use 500ms, 10s, 5m, 2h)"
                ]
            ),
            (
                "name: c, upstream: u, inject: { A: b }, prove-at: https://u.example.com/me",
                [
                    "5:57: challenges[0].prove-at: must be a path that begins with /, such as /whoami: it is requested at the "
                        + "upstream's own origin"
                ]
            ),
            ("name: c, upstream: u, security-check: P, credential: x", ["5:5: challenges[0].answer: is missing"]),
            (
                "name: c, upstream: u, security-check: P, answer: 1",
                [
                    "5:56: challenges[0].answer: must be a mapping: { pin: \"{pin}\" }"
                ]
            ),
            (
                "name: c, upstream: u, security-check: P, answer: { pin: {pin} }, credential: x",
                [
                    "5:63: challenges[0].answer.pin: put quotes around braces: \"{pin}\""
                ]
            ),
            (
                "name: c, upstream: u, security-check: P, answer: { a: [\"{\"] }, credential: x",
                [
                    "5:56: challenges[0].answer: a[0]: A { has no }; write {{ for the character itself."
                ]
            ),
            (
                "name: c, upstream: u, security-check: P, answer: {}, keep-attempts: -1",
                [
                    "5:75: challenges[0].keep-attempts: \"-1\" is not a whole number from 0 to 1000"
                ]
            ),
        ])
    func challenge(text: String, expected: [String]) {
        #expect(problems(SettingsTests.challenge(text)) == expected.map { "f:\($0)" })
    }

    @Test(
        "each problem of a scheme and its token is reported with its position and a remedy",
        arguments: [
            ("scheme: bearer", "5:5: challenges[0].token: is missing"),
            ("scheme: []", "5:37: challenges[0].scheme: is empty: name at least one scheme"),
            (
                "scheme: berer, token: { grant: mobilefirst }",
                "5:37: challenges[0].scheme: \"berer\" is not one of basic, bearer, digest, negotiate, ntlm; did you mean "
                    + "\"bearer\"?"
            ),
            (
                "scheme: [bearer, bearer], token: { grant: mobilefirst }",
                "5:46: challenges[0].scheme[1]: this scheme is already in the list"
            ),
            ("scheme: bearer, token: { scope: a }", "5:52: challenges[0].token.grant: is missing"),
            (
                "scheme: bearer, spn: a, token: { grant: mobilefirst }",
                "5:50: challenges[0].spn: belongs to the scheme negotiate"
            ),
            (
                "scheme: bearer, token: { grant: mobilefirst, url: http://id.example/ }",
                "5:79: challenges[0].token.url: secrets would go to another machine in plaintext: use https://, or set "
                    + "`plaintext: allow` at the upstream u"
            ),
            (
                "scheme: bearer, token: { grant: mobilefirst, parameters: { client_secret: x } }",
                "5:103: challenges[0].token.parameters.client_secret: \(secretAdvice("secret"))"
            ),
        ])
    func scheme(text: String, problem: String) {
        let yaml = SettingsTests.challenge("name: c, upstream: u, \(text), credential: x")
        #expect(problems(yaml) == ["f:\(problem)"])
    }

    @Test("the grant mobilefirst needs a url if the challenge has location patterns")
    func tokenURL() throws {
        let keys = "name: c, scheme: bearer, token: { grant: mobilefirst }, credential: x"
        #expect(
            problems(SettingsTests.challenge("at: \"https://u.example/*\", \(keys)")) == [
                "f:5:66: challenges[0].token.url: is missing"
            ])
        let settings = try #require(parsed(SettingsTests.challenge("upstream: u, \(keys)")))
        guard let scheme = settings.challenges[0].kind as? SchemeSettings else {
            Issue.record("the challenge is a scheme")
            return
        }
        #expect(scheme.token?.url?.description == "https://u.example/mfp/api/az/v1/token")
        #expect(scheme.token?.field == .authorization)
        #expect(scheme.token?.prefix == "Bearer")
    }

    @Test("the url of a login step may be relative to its page, and a step may have its own matchers")
    func gatewaySteps() throws {
        let yaml = SettingsTests.challenge(
            "name: c, upstream: u, gateway: j-security-check, credential: x, login: [{ url: \"../j_security_check?x=1\", "
                + "fields: none, success: { form-action: /totp, form-fields: [code] }, failed: { status: 422 } }]")
        #expect(problems(yaml) == [])
        guard let gateway = try #require(parsed(yaml)).challenges.first?.kind as? GatewaySettings else {
            Issue.record("no gateway")
            return
        }
        var step = LoginStep(target: .address(.path("../j_security_check?x=1")), hiddenFields: false)
        step.success = [ResponseMatcher(formAction: "/totp", formFields: ["code"])]
        step.failed = [FailureMatcher(matcher: ResponseMatcher(statuses: [422]), cause: .wrongPassword)]
        #expect(gateway.login == [step])
        let other = SettingsTests.challenge(
            "name: c, upstream: u, gateway: webseal, credential: x, login: [{ url: \"javascript:x\" }]")
        #expect(
            problems(other) == [
                "f:5:77: challenges[0].login[0].url: is neither a path that begins with /, such as /login, nor an address "
                    + "with http:// or https:// and a host"
            ])
    }

    @Test("cookies.pass lists cookies by name, and an empty list passes none")
    func passedCookies() throws {
        func read(_ cookies: String) throws -> [String]? {
            let yaml = SettingsTests.challenge(
                "name: c, upstream: u, gateway: webseal, credential: x, cookies: \(cookies)")
            guard let gateway = try #require(parsed(yaml)).challenges.first?.kind as? GatewaySettings else {
                return nil
            }
            return gateway.passedCookies
        }
        #expect(try read("{ pass: csrf }") == ["csrf"])
        #expect(try read("{ pass: [] }") == [])
        #expect(try read("{}") == nil)
        let wrong = SettingsTests.challenge(
            "name: c, upstream: u, gateway: webseal, credential: x, cookies: { pass: [a b, \"c=1\"], keep: [d] }")
        #expect(
            problems(wrong) == [
                "f:5:80: challenges[0].cookies.pass[0]: \"a b\" is not a valid cookie name (no white space, and none of = ; ,)",
                "f:5:85: challenges[0].cookies.pass[1]: \"c=1\" is not a valid cookie name (no white space, and none of = ; ,)",
                "f:5:93: challenges[0].cookies.keep: unknown key",
            ])
        let elsewhere = SettingsTests.challenge(
            "name: c, upstream: u, scheme: basic, credential: x, cookies: { pass: [a] }")
        #expect(
            problems(elsewhere).contains {
                $0.hasSuffix("challenges[0].cookies: belongs to `gateway`, not to `scheme`")
            })
    }

    @Test("the preset none needs detect, login, and a url in each step")
    func gateway() {
        let yaml = SettingsTests.challenge(
            "name: c, upstream: u, gateway: none, credential: x, login: [{ page: login }, { when: at-start }], "
                + "success: [{}], failed: [{ status: 1000, because: lockd }], logout: {}")
        #expect(
            problems(yaml) == [
                "f:5:5: challenges[0]: the preset none needs `detect`: without it, the login page cannot be recognised",
                "f:5:66: challenges[0].login: each step of the preset none needs a url",
                "f:5:75: challenges[0].login[0].page: is neither a path that begins with /, such as /login, nor an address "
                    + "with http:// or https:// and a host",
                "f:5:92: challenges[0].login[1].when: is allowed in the first step only",
                "f:5:115: challenges[0].success[0]: is empty and would match every response: add one of status, header, "
                    + "cookie, body-contains, json, redirect-to, content-type, form-action, form-fields",
                "f:5:139: challenges[0].failed[0].status: \"1000\" is not a whole number from 100 to 599",
                "f:5:154: challenges[0].failed[0].because: \"lockd\" is not one of locked, password-expired, "
                    + "too-many-sessions, unavailable, wrong-password; did you mean \"locked\"?",
                "f:5:172: challenges[0].logout.url: is missing",
            ])
    }
}

func secretAdvice(_ field: String) -> String {
    "a secret does not belong in this file, nor in a variable that it names: keep it in a credential source, name that "
        + "credential with `credential:`, and write the name of its field here in braces: \"{\(field)}\""
}
