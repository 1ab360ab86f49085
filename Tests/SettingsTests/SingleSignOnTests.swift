// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SettingsReading
import Testing

@testable import Settings

@Suite("Settings of single sign-on")
struct SingleSignOnTests {
    private func yaml(_ login: String, gateway: String = "form", more: String = "") -> String {
        SettingsTests.challenge("name: c, upstream: u, gateway: \(gateway), credential: x, login: \(login)\(more)")
    }

    @Test("`through` names the origins of the identity providers, one or several")
    func through() throws {
        for (written, origins) in [
            ("https://idp.example.com", ["https://idp.example.com"]),
            (
                "[https://a.example.com/, https://B.example.com:8443]",
                ["https://a.example.com", "https://b.example.com:8443"]
            ),
            ("http://127.0.0.1:8081", ["http://127.0.0.1:8081"]),
        ] {
            let text = yaml("{ through: \(written) }")
            #expect(problems(text) == [])
            let challenge = try #require(parsed(text)?.challenges.first)
            let gateway = try #require(challenge.kind as? GatewaySettings)
            #expect(gateway.through.map(\.description) == origins)
        }
    }

    @Test(
        "each problem of `through` is reported with a remedy",
        arguments: [
            (
                "{ through: [] }",
                "is empty: name the origin of the server that shows the login form, such as https://idp.example.com"
            ),
            ("{ through: https://idp.example.com/login }", "names a server, not a page: write https://idp.example.com"),
            (
                "{ through: idp.example.com }",
                "is not an address (use http:// or https://, a host, and optionally a port and a path)"
            ),
            ("[{ through: https://i }, { through: https://i }]", "is allowed in the first step only"),
            (
                "{ through: http://idp.example.com }",
                "secrets would go to another machine in plaintext: use https://, or set `plaintext: allow` at the upstream u"
            ),
        ])
    func wrong(login: String, problem: String) {
        let found = problems(yaml(login))
        #expect(found.count == 1 && found.first?.hasSuffix(problem) == true, "\(found)")
    }

    @Test("`through` is for the presets `form` and `none`, and for no upstream that is the provider itself")
    func elsewhere() {
        let preset = problems(yaml("{ through: https://idp.example.com }", gateway: "webseal"))
        #expect(preset.count == 1 && preset.first?.contains("has a form of its own") == true, "\(preset)")
        let extract = problems(
            yaml("{ through: https://i, extract: { t: /t } }", more: ", inject: { A: \"{t}\" }"))
        #expect(
            extract.count == 1 && extract.first?.contains("cannot be combined with `extract`") == true, "\(extract)")
        let own = problems(
            """
            listeners: [{ address: "127.0.0.1:1", upstream: u }]
            upstreams: { u: { url: "https://u.example.com" } }
            challenges: [{ name: c, upstream: u, gateway: form, credential: x, login: { through: https://u.example.com } }]
            """)
        #expect(own.count == 1 && own.first?.contains("names the upstream's own origin") == true, "\(own)")
    }

    @Test("the providers change the meaning of a login, whatever their order")
    func terms() throws {
        func terms(_ login: String) throws -> String {
            let challenge = try #require(parsed(yaml(login))?.challenges.first)
            let url = try #require(WebURL("https://u.example.com/"))
            return challenge.terms(at: ProtectedUpstream(name: "u", url: url)).text
        }
        #expect(try terms("{ through: [https://a, https://b] }") == terms("{ through: [https://b, https://a] }"))
        #expect(try terms("{ through: https://a }") != terms("{ through: https://b }"))
        #expect(try terms("{ through: https://a }").contains("login.through=https://a\n"))
    }
}

@Suite("A login page that may say where its form goes")
struct LoginPageWarningTests {
    private func problems(_ login: String, _ more: String = "") -> [String] {
        SettingsTests.problems(
            """
            listeners: [{ address: "127.0.0.1:8080", upstream: u }]
            upstreams: { u: { url: "https://u.example/" } }
            challenges:
              - name: page
                upstream: u
                gateway: none
                credential: ann
                detect: { form-action: /login }
                login: \(login)
                \(more)
            """)
    }

    @Test("`url: form` is warned about unless `page` or `prove-at` is set")
    func warned() throws {
        let warned = problems("{ url: form }")
        #expect(warned.count == 1 && warned[0].contains("challenges[0].login: warning: "), "\(warned)")
        #expect(problems("[{ url: form }, { url: form }]").count == 1)
        #expect(problems("{ page: /login, url: form }").isEmpty)
        #expect(problems("{ url: /login }").isEmpty)
        #expect(problems("{ url: form }", "prove-at: /whoami").isEmpty)
    }

    @Test("the preset `form` is warned about as a written `url: form` is")
    func presetWarned() {
        func warnings(_ more: String) -> [String] {
            SettingsTests.problems(
                """
                listeners: [{ address: "127.0.0.1:8080", upstream: u }]
                upstreams: { u: { url: "https://u.example/" } }
                challenges: [{ name: page, upstream: u, gateway: form, credential: ann\(more) }]
                """)
        }
        let warned = warnings("")
        #expect(warned.count == 1 && warned[0].contains("challenges[0]: warning: "), "\(warned)")
        #expect(warnings(", login: { page: /login }").isEmpty)
        #expect(warnings(", login: { url: /login }").isEmpty)
        #expect(warnings(", prove-at: /whoami").isEmpty)
        #expect(warnings(", login: at-start").count == 1)
    }
}

@Suite("Handlers that the program brings along")
struct OwnHandlerTests {
    private func parse(
        _ challenge: String, handlers: Set<String> = ["mine"]
    ) -> (settings: Settings?, problems: [String]) {
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: a }]
            upstreams: { a: { url: "http://127.0.0.1:1/" } }
            challenges: [{ name: x, upstream: a, \(challenge) }]
            """
        let (settings, problems) = Settings.parse(
            Array(text.utf8), file: "f", environment: [:], handlers: handlers)
        return (settings, problems.map(\.message))
    }

    @Test("a challenge with handler needs a name and no credential")
    func named() {
        let (settings, problems) = parse("handler: mine")
        #expect(settings?.challenges.map { $0.kind as? OwnHandlerSettings } == [OwnHandlerSettings("mine")])
        #expect(problems.isEmpty)
    }

    @Test("an unknown handler is a problem that names the known ones")
    func unknown() {
        #expect(
            parse("handler: mime").problems
                == ["there is no handler \"mime\" in this program; did you mean \"mine\"?"])
        let none = parse("handler: mine", handlers: []).problems
        #expect(none.count == 1 && none[0].contains("Countersign.main(handlers:)"))
    }

    @Test(
        "keys that a handler decides itself are refused in its challenge",
        arguments: [
            "credential: c", "retry-rejected: 5m", "prove-at: /whoami", "login: at-start", "answer: { pin: x }",
        ])
    func refused(key: String) {
        #expect(parse("handler: mine, \(key)").settings == nil)
    }
}
