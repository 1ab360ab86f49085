// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import SettingsReading
import Testing

@testable import Settings

@Suite("Callers by token in the configuration")
struct CallerSettingsTests {
    private func callers(_ text: String) throws -> CallerSettings {
        try #require(parsed(frame(listener: "callers: \(text)"))).listeners[0].callers
    }

    @Test("`callers` is a number, or a mapping with tokens, whose field is Authorization by default")
    func forms() throws {
        #expect(try callers("7") == CallerSettings(limit: 7))
        #expect(try callers("{ limit: 7 }") == CallerSettings(limit: 7))
        let tokens = try #require(HTTPField.Name("X-Caller-Token"))
        #expect(
            try callers("{ field: X-Caller-Token, credentials: [ci, backup], limit: 7 }")
                == CallerSettings(limit: 7, tokens: CallerTokenSettings(field: tokens, credentials: ["ci", "backup"])))
        #expect(
            try callers("{ credentials: ci }")
                == CallerSettings(tokens: CallerTokenSettings(field: .authorization, credentials: ["ci"])))
    }

    @Test(
        "each problem of tokens is reported with a remedy",
        arguments: [
            ("{ credentials: [] }", "credentials: is empty: no caller would be known"),
            ("{ credentials: [ci, ci] }", "credentials: names \"ci\" twice"),
            ("{ field: X-Token }", "field: needs `credentials`, whose tokens this field has"),
            ("{ credentials: [ci], fields: x }", "fields: unknown key; did you mean \"field\"?"),
            ("{ credentials: [ci], field: Host }", "field: \"Host\" belongs to the connection and cannot be set"),
            (
                "{ credentials: [ci], field: Cookie }",
                "field: \"Cookie\" already has a meaning in requests (use Authorization, or a name of your own such as X-Caller-Token)"
            ),
            ("{ credentials: [ci], limit: 0 }", "limit: \"0\" is not a whole number from 1 to 1048576"),
        ])
    func tokens(text: String, problem: String) {
        let found = errors(frame(listener: "callers: \(text)"))
        #expect(found.count == 1 && found[0].hasSuffix(": listeners[0].callers.\(problem)"), "\(found)")
    }

    @Test(
        "a field that proxies and servers act on has no token",
        arguments: [
            "Connection", "Content-Length", "Transfer-Encoding", "Transfer_Encoding", "Proxy-Authorization", "TE",
            "X-Forwarded-For", "Origin", "Sec-Fetch-Site", "Expect", "Via", "Max-Forwards", "Range", "Content_Length",
        ])
    func fields(name: String) {
        let found = errors(frame(listener: "callers: { credentials: [ci], field: \(name) }"))
        #expect(found.count == 1 && found[0].contains("listeners[0].callers.field: \"\(name)\""), "\(found)")
    }

    private func file(_ listener: String, _ credential: String) -> String {
        """
        listeners: [{ address: "127.0.0.1:1", upstream: u, \(listener) }]
        upstreams: { u: { url: "https://u" } }
        challenges: [{ name: c, upstream: u, scheme: basic, credential: \(credential) }]
        """
    }

    @Test("`by-caller` chooses the credential by the name of the caller's token, beside `by-user`")
    func byCaller() throws {
        let text = file(
            "callers: { credentials: [ci, backup] }",
            "{ by-user: { ann: own }, by-caller: { ci: ci-login, \"*\": other } }")
        let settings = try #require(parsed(text))
        #expect(
            settings.challenges[0].credentialsByCaller
                == CredentialsByCaller(
                    named: [
                        .init(caller: .user(.name("ann")), credential: "own"),
                        .init(caller: .token("ci"), credential: "ci-login"),
                    ], others: "other"))
        #expect(settings.callerCredentials == ["ci", "backup"])
        #expect(settings.neededFields["ci"] == ["token"])
    }

    @Test("`by-caller` names callers of a listener, and the default is set only once")
    func byCallerProblems() {
        #expect(
            errors(file("callers: { credentials: [ci] }", "{ by-caller: { cj: x } }")).first?
                .hasSuffix(".by-caller.cj: no listener has a caller of this name in `callers`") == true)
        #expect(
            errors(file("callers: { credentials: [ci] }", "{ by-user: { \"*\": a }, by-caller: { \"*\": b } }")).first?
                .contains("is already in by-user") == true)
        #expect(errors(file("callers: 3", "{}")).first?.contains("has neither by-user nor by-caller") == true)
        #expect(
            errors(file("callers: { credentials: [ci] }", "{ by-caller: {} }")).first?
                .contains("is empty: no caller would have a credential") == true)
    }

    @Test("an auth-request listener over TCP may have tokens in place of `users`, but not in Authorization")
    func authRequests() {
        #expect(errors(file("auth-requests: true, callers: { field: X-Token, credentials: [nginx] }", "b")).isEmpty)
        #expect(
            errors(file("auth-requests: true, callers: { credentials: [nginx] }", "b")).first?
                .contains("listeners[0].callers: auth requests have the Authorization") == true)
        #expect(
            errors(file("auth-requests: true", "b")).first?.contains("or `callers` to a token of that proxy") == true)
    }

    @Test("a listener that other machines reach is warned about what crosses the network")
    func exposed() {
        let text = file("callers: { credentials: [ci] }", "b").replacing("127.0.0.1", with: "0.0.0.0")
        let found = problems(text).filter { $0.contains("listeners[0].address") }
        #expect(found.count == 1 && found[0].contains("cross the network in the clear"), "\(found)")
    }
}

@Suite("Listeners that answer auth requests")
struct AuthRequestKeyTests {
    private func yaml(_ scheme: String, ordinary: Bool = true) -> String {
        """
        listeners:
          - { address: 127.0.0.1:8081, upstream: u, auth-requests: true, users: [www-data] }
          - { address: 127.0.0.1:8080, upstream: \(ordinary ? "u" : "v") }
        upstreams: { u: { url: "https://u" }, v: { url: "https://v" } }
        challenges: [{ name: c, upstream: u, scheme: \(scheme), credential: c }]
        """
    }

    @Test("auth-requests: true makes an auth-request listener, and false does not")
    func read() throws {
        let settings = try #require(parsed(yaml("[basic]")))
        #expect(settings.listeners.map(\.answersAuthRequests) == [true, false])
        #expect(
            errors(frame(listener: "auth-requests: yes")) == [
                "f:1:70: listeners[0].auth-requests: \"yes\" is neither true nor false"
            ])
    }

    @Test("an auth-request listener that leads to a challenge with ntlm is refused with the reason")
    func connections() {
        let problem = """
            f:2:60: listeners[0].auth-requests: "c" has the scheme ntlm, which authenticates a connection, but the \
            connection to u is the other proxy's: remove ntlm, or use an ordinary listener
            """
        #expect(errors(yaml("[negotiate, ntlm]")) == [problem])
        #expect(errors(yaml("[negotiate, digest]")) == [])
    }

    @Test("an auth-request listener without an ordinary listener for its upstream is warned about")
    func alone() {
        let problem = """
            listeners[0].auth-requests: warning: no ordinary listener leads to u: a challenge that the other proxy receives cannot be \
            handed back
            """
        #expect(problems(yaml("[basic]", ordinary: false)).contains { $0.hasSuffix(problem) })
        #expect(!problems(yaml("[basic]")).contains { $0.contains("auth-requests") })
    }

    @Test("an auth-request listener over TCP without users is refused")
    func users() {
        func listener(_ address: String, _ more: String = "") -> String {
            """
            listeners:
              - { address: "\(address)", upstream: u, auth-requests: true\(more) }
              - { address: "127.0.0.1:8080", upstream: u }
            upstreams: { u: { url: "https://u" } }
            """
        }
        let problem = """
            listeners[0].auth-requests: this listener gives out sessions: over TCP, set `users` to the user that the other \
            proxy runs as, or `callers` to a token of that proxy, or use a Unix socket
            """
        for address in ["127.0.0.1:8081", "[::1]:8081", "localhost:8081"] {
            #expect(errors(listener(address)).map { String($0.drop { $0 != " " }.dropFirst()) } == [problem])
            #expect(errors(listener(address, ", users: [www-data]")) == [])
        }
        #expect(errors(listener("unix:/run/a.sock")) == [])
        #expect(errors(listener("systemd:authority")) == [])
    }

    @Test("config/auth-requests.yaml has no problems")
    func shipped() {
        let folder = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let (settings, problems) = Settings.load(path: "\(folder)/config/auth-requests.yaml", environment: [:])
        #expect(problems.map(\.description) == [])
        #expect(settings?.listeners.first?.answersAuthRequests == true)
    }
}
