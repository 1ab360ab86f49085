// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Settings
import SettingsReading
import Testing

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
        "mistakes are reported at their place",
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
