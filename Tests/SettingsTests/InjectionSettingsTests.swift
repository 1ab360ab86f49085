// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Settings
import SettingsReading
import Testing

@Suite("Values of a credential outside fields, in the configuration")
struct InjectionSettingsTests {
    private func settings(_ inject: String) throws -> InjectionSettings {
        let settings = try #require(parsed(challenge("name: c, upstream: u, credential: k, inject: \(inject)")))
        return try #require(settings.challenges.first?.kind as? InjectionSettings)
    }

    private func faults(_ inject: String) -> [String] {
        errors(challenge("name: c, upstream: u, credential: k, inject: \(inject)")).map {
            $0.split(separator: " ", maxSplits: 1).last.map(String.init) ?? ""
        }
    }

    @Test("a mapping with query, path, body or fields says where values go")
    func longForm() throws {
        let kind = try settings(
            #"{ query: { api_key: "{key}" }, path: "/bot{token}/", body: { "/a/k": "{key}" }, fields: { Path: "{key}" }, clean: pages }"#
        )
        #expect(kind.templates.query.map(\.name) == ["api_key"])
        #expect(kind.templates.path?.source == "/bot{token}/")
        #expect(kind.templates.body.map(\.pointer.source) == ["/a/k"])
        #expect(kind.templates.cleansPages)
        #expect(kind.fields.map(\.name.canonicalName) == ["path"])
        #expect(kind.neededFields == ["key", "token"])
        #expect(kind.needsCredential && kind.changesRequests)
    }

    @Test(
        "any other mapping has the names of fields, whose case decides",
        arguments: [
            (#"{ X-Api-Key: "{key}" }"#, ["x-api-key"]), (#"{ Path: "{key}", Query: a }"#, ["path", "query"]),
            (#"{ clean: a }"#, ["clean"]),
        ])
    func shortForm(written: String, names: [String]) throws {
        let kind = try settings(written)
        #expect(kind.fields.map(\.name.canonicalName) == names)
        #expect(kind.templates.isEmpty && !kind.changesRequests)
    }

    @Test(
        "problems of injections are reported at their place",
        arguments: [
            (#"{ query: { k: "{key}" }, X-Api-Key: a }"#, "challenges[0].inject.X-Api-Key: unknown key"),
            (#"{ path: "bot{key}" }"#, "challenges[0].inject.path: must be a path"),
            (#"{ path: "/a/../{key}" }"#, "challenges[0].inject.path: must be a path"),
            (#"{ path: "/a//{key}" }"#, "challenges[0].inject.path: must be a path"),
            (#"{ path: "/" }"#, "challenges[0].inject.path: must be a path"),
            (#"{ path: "/a?b={key}" }"#, "challenges[0].inject.path: must be a path"),
            (#"{ path: "/%2e%2e/{key}" }"#, "challenges[0].inject.path: must be a path"),
            (#"{ body: { key: "{key}" } }"#, "challenges[0].inject.body.key: must be a JSON pointer"),
            (
                #"{ body: { /a: "{key}", /a/b: x } }"#,
                "challenges[0].inject.body: has /a and /a/b, one of which is within the other"
            ),
            (#"{ fields: { A: a }, clean: pages }"#, "challenges[0].inject.clean: has nothing to replace"),
            (#"{ query: {} }"#, "challenges[0].inject: is empty"),
            (#"{ query: a }"#, "challenges[0].inject.query: must be a mapping"),
            (#"{ query: { "": "{key}" } }"#, "challenges[0].inject.query: has a parameter without a name"),
            (#"{ query: { api_key: hunter2 } }"#, "challenges[0].inject.query.api_key: a secret does not belong"),
            (#"{ query: { a: "{cookie:b}" } }"#, "challenges[0].inject.query.a: {cookie:b} is known only to a login"),
        ])
    func problems(written: String, problem: String) {
        #expect(faults(written).contains { $0.hasPrefix(problem) }, "\(faults(written))")
    }

    @Test(
        "two challenges that set one parameter, member or path at one place are an error",
        arguments: [
            (#"query: { a: x }"#, #"query: { a: y, b: z }"#, true), (#"query: { a: x }"#, #"query: { b: x }"#, false),
            (#"path: /a"#, #"path: /b"#, true), (#"body: { /a: x }"#, #"body: { /a/b: x }"#, true),
            (#"body: { /a/c: x }"#, #"body: { /a/b: x }"#, false), (#"fields: { A: x }"#, #"A: y"#, true),
            (#"path: /a"#, #"query: { a: x }"#, false),
        ])
    func conflicts(first: String, second: String, isConflict: Bool) {
        let yaml = frame(
            """
            challenges:
              - { name: c, upstream: u, inject: { \(first) } }
              - { name: d, upstream: u, inject: { \(second) } }
            """)
        #expect(errors(yaml).contains { $0.contains("\"c\" already answers this challenge here") } == isConflict)
    }

    @Test("an auth-request listener that leads to such values is refused, and one that leads to fields is not")
    func authRequests() {
        func yaml(_ inject: String) -> String {
            """
            listeners:
              - { address: 127.0.0.1:8081, upstream: u, auth-requests: true, users: [www-data] }
              - { address: 127.0.0.1:8080, upstream: u }
            upstreams: { u: { url: "https://u" } }
            challenges: [{ name: c, upstream: u, inject: \(inject), credential: c }]
            """
        }
        #expect(
            errors(yaml(#"{ query: { k: "{key}" } }"#)).contains {
                $0.contains("\"c\" puts values into queries, paths or bodies")
            })
        #expect(errors(yaml(#"{ fields: { K: "{key}" } }"#)) == [])
    }

    @Test("values that would go to another machine in the clear are refused")
    func plaintext() {
        let yaml = """
            listeners: [{ address: 127.0.0.1:8080, upstream: u }]
            upstreams: { u: { url: "http://u.example/" } }
            challenges: [{ name: c, upstream: u, inject: { path: "/bot{token}" }, credential: c }]
            """
        #expect(errors(yaml).contains { $0.contains("the secrets of \"c\" would go to another machine in plaintext") })
    }

    @Test("each value is a term of its login, and a configuration without them has the same terms as before")
    func terms() throws {
        let upstream = ProtectedUpstream(name: "u", url: try #require(WebURL("https://u.example/")))
        func terms(_ written: String) throws -> String {
            var terms = LoginTerms()
            try settings(written).add(to: &terms, at: upstream)
            return terms.text
        }
        let short = try terms(#"{ A: "{key}" }"#)
        #expect(short == "inject.a={key}\n")
        let long = try terms(
            #"{ query: { a: "{key}" }, path: "/{key}", body: { /a: x }, fields: { A: "{key}" }, clean: pages }"#)
        #expect(
            long == "inject.a={key}\ninject-query.a={key}\ninject-path=/{key}\ninject-body./a=x\ninject-clean=pages\n")
    }
}

@Suite("Values that a server has sent, in the configuration")
struct ReceivedValueSettingsTests {
    private func gateway(_ keys: String) throws -> GatewaySettings {
        let yaml = challenge("name: c, upstream: u, \(keys)")
        #expect(problems(yaml) == [])
        return try #require(parsed(yaml)?.challenges.first?.kind as? GatewaySettings)
    }

    @Test("a session's field may be limited to methods, and hold the value of a cookie")
    func inject() throws {
        let settings = try gateway(
            "gateway: form, credential: x, login: { page: /l }, inject: { X-CSRFToken: { value: \"{cookie:csrftoken}\", on: [POST, "
                + "PUT] }, X-Plain: \"{token}\" }")
        #expect(settings.inject.map(\.methods) == [["POST", "PUT"], []])
        #expect(settings.inject.first?.value.sources == [.cookie("csrftoken")])
    }

    @Test("a JSON body has the types of the file, and may be a list")
    func document() throws {
        let settings = try gateway(
            "gateway: none, detect: { json: { /error/code: \"1\" } }, credential: x, login: { url: /json, body: json, parameters: { "
                + "method: auth.login, params: [\"{password}\"], id: 1, keep: true } }")
        #expect(
            settings.login.first?.document?.source
                == ["method": "auth.login", "params": ["{password}"], "id": 1, "keep": true])
        #expect(settings.detect.first?.json.map(\.pointer.source) == ["/error/code"])
        let list = try gateway(
            "gateway: none, detect: { status: 401 }, credential: x, login: { url: /j, body: json, parameters: [{ p: \"{pin}\" }] }"
        )
        #expect(list.login.first?.document?.source == [["p": "{pin}"]])
    }

    @Test("a login that sends no field of a credential needs none")
    func withoutCredential() throws {
        let settings = try gateway(
            "gateway: none, detect: { status: 409 }, login: { url: /rpc, method: GET, extract: { sid: \"header:X-Id\" } }, inject: "
                + "{ X-Id: \"{sid}\" }")
        #expect(!settings.needsCredential)
    }

    @Test(
        "a value that no server has sent yet is refused where no login is",
        arguments: [
            ("inject: { X-A: \"{cookie:a}\" }, credential: x", "inject.X-A"),
            ("security-check: S, credential: x, answer: { pin: \"{json:/a}\" }", "answer"),
            (
                "scheme: bearer, credential: x, token: { grant: client-credentials, url: \"https://i.example/t\", parameters: { a: "
                    + "\"{header:A}\" } }", "token.parameters.a"
            ),
        ])
    func elsewhere(keys: String, path: String) {
        let found = problems(challenge("name: c, upstream: u, \(keys)"))
        #expect(found.count == 1 && found.first?.contains("challenges[0].\(path)") == true, "\(found)")
        #expect(found.first?.contains("is known only to a login") == true, "\(found)")
    }

    @Test(
        "mistakes in received values are reported at their place",
        arguments: [
            ("gateway: form, credential: x, inject: { X-A: { on: POST } }", "value: is missing"),
            ("gateway: form, credential: x, inject: { X-A: { value: \"{a}\", on: post } }", "did you mean"),
            ("gateway: form, credential: x, inject: { X-A: { value: \"{page:/(a/}\" } }", "has a ( without a )"),
            ("gateway: form, credential: x, logout: { url: /x, parameters: { a: \"{password}\" } }", "does not send"),
            ("gateway: form, credential: x, login: { page: /l, body: json, parameters: text }", "mapping or a list"),
            (
                "gateway: none, credential: x, detect: { json: { error: x } }, login: { url: /l }",
                "is not a JSON pointer"
            ),
        ])
    func mistakes(keys: String, problem: String) {
        let found = errors(challenge("name: c, upstream: u, \(keys)"))
        #expect(found.count == 1 && found.first?.contains(problem) == true, "\(found)")
    }

    @Test("a token may be asked for by a response that names no scheme")
    func token() throws {
        let yaml = challenge(
            "name: c, upstream: u, scheme: bearer, credential: x, token: { grant: static, detect: { status: 401 } }")
        #expect(problems(yaml) == [])
        let settings = try #require(parsed(yaml)?.challenges.first?.kind as? SchemeSettings)
        #expect(settings.token?.detect == [ResponseMatcher(statuses: [401])])
    }
}
