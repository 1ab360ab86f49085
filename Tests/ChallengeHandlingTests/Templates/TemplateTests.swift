// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@Suite("Text templates")
struct TextTemplateTests {
    let ann = Credential(
        name: "ann", fields: ["pin": Secret("12{34"), "user-name": Secret("ann"), "raw": Secret([0xFF])])

    @Test(
        "a template's fields and escaped braces are replaced",
        arguments: [
            ("{pin}", "12{34"), ("Bearer {pin}!", "Bearer 12{34!"), ("{user-name}:{pin}", "ann:12{34"),
            ("{{pin}}", "{pin}"), ("a{{{pin}}}b", "a{12{34}b"), ("", ""), ("naïve 🔑 {pin}", "naïve 🔑 12{34"),
        ])
    func render(source: String, expected: String) async throws {
        #expect(try await TextTemplate(source).render(ann).revealText() == expected)
    }

    @Test("a template's field may hold any bytes")
    func bytes() async throws {
        #expect(try await TextTemplate("<{raw}>").render(ann).revealBytes() == [0x3C, 0xFF, 0x3E])
    }

    @Test("a malformed template is refused", arguments: ["{", "}", "a}b", "{pin", "{}", "{p in}", "{a{b}}", "{ü}"])
    func malformed(source: String) {
        #expect(throws: TemplateError.self) { try TextTemplate(source) }
    }

    @Test(
        "a source of values that is not written completely is refused with the right form",
        arguments: [
            ("{cookie:}", "name of a cookie"), ("{cookie:a b}", "name of a cookie"), ("{header:}", "name of a field"),
            ("{json:data}", "JSON pointer"), ("{page:/a/}", "one group"), ("{page:a}", "slashes"),
            ("{page:/(a)}", "no }"),
            ("{body:x}", "field's name"), ("{base64:}", "field's name"), ("{base64:a:}", "field's name"),
        ])
    func malformedSource(source: String, reason: String) {
        let error = #expect(throws: TemplateError.self) { try TextTemplate(source) }
        #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    }

    @Test("values that the server has sent are inserted, and a missing one is reported by its source")
    func received() async throws {
        let template = try TextTemplate(#"{cookie:a}-{page:/\d{2}/(x})\/}/}-{json:/t/0}"#)
        #expect(template.sources.count == 3 && template.fieldNames.isEmpty)
        #expect(try await template.render(ann) { _ in Secret("v") }.revealText() == "v-v-v")
        await #expect(throws: TemplateError.valueNotFound(source: "cookie:a")) { try await template.render(ann) }
        let failure = TemplateError.valueNotFound(source: "cookie:a").loginFailure(challenge: "c")
        #expect(failure.code == .failed && failure.detail.contains("{cookie:a}"))
    }

    @Test("{base64:…} joins fields by colons, and only the last may hold one")
    func base64() async throws {
        #expect(try TextTemplate("{base64:user-name:pin}").fieldNames == ["user-name", "pin"])
        #expect(try await TextTemplate("Basic {base64:user-name:pin}").render(ann).revealText() == "Basic YW5uOjEyezM0")
        let other = Credential(name: "b", fields: ["u": Secret("a:b"), "p": Secret("c:d")])
        #expect(try await TextTemplate("{base64:p}").render(other).revealText() == "Yzpk")
        await #expect(throws: TemplateError.fieldHasColon(field: "u", credential: "b")) {
            try await TextTemplate("{base64:u:p}").render(other)
        }
    }

    @Test("a template knows its required fields")
    func fieldNames() throws {
        #expect(try TextTemplate("{a}{b}{a}{{c}}").fieldNames == ["a", "b"])
        #expect(try TextTemplate("{totp}").fieldNames == ["totp-seed"])
    }

    @Test("a missing field is reported with its name and the credential's")
    func missing() async throws {
        let error = await #expect(throws: TemplateError.fieldMissing(field: "otp", credential: "ann")) {
            try await TextTemplate("{otp}").render(ann)
        }
        let failure = error?.loginFailure(challenge: "bank")
        #expect(failure?.code == .noCredential)
        #expect(failure?.detail.contains("\"otp\"") == true && failure?.detail.contains("\"ann\"") == true)
    }

    @Test("{totp} is computed from the seed, even if a field has that name")
    func totp() async throws {
        let odd = Credential(
            name: "odd", fields: ["totp": Secret("1"), "totp-seed": Secret("A")], oneTimePasswords: Passwords())
        #expect(try await TextTemplate("{totp}!").render(odd).revealText() == "A of odd!")
        let bare = Credential(name: "bare", fields: ["totp-seed": Secret("A")])
        await #expect(throws: TemplateError.oneTimePasswordUnsupported(credential: "bare")) {
            try await TextTemplate("{totp}").render(bare)
        }
        let seedless = Credential(name: "seedless", fields: ["totp": Secret("1")], oneTimePasswords: Passwords())
        await #expect(throws: TemplateError.fieldMissing(field: "totp-seed", credential: "seedless")) {
            try await TextTemplate("{totp}").render(seedless)
        }
    }

    @Test("a one-time password that was used is unknown until the next, not a missing credential")
    func used() {
        let failure = TemplateError.oneTimePasswordUsed(credential: "ann", nextAt: 90_000).loginFailure(
            challenge: "bank")
        #expect(failure.code == .failed && failure.isUnknown && failure.retryAt == 90_000)
    }
}

private struct Passwords: OneTimePasswords {
    func password(from seed: Secret, of credential: String) throws(TemplateError) -> Secret {
        Secret("\(seed.revealText()) of \(credential)")
    }

    func check(_ seed: Secret, of credential: String) throws(TemplateError) {}
}

@Suite("Answer templates")
struct AnswerTemplateTests {
    let ann = Credential(
        name: "ann", fields: ["user": Secret("ann"), "password": Secret("a\"b\\c\n€"), "raw": Secret([0xC3, 0x28])])

    @Test("every string of an answer template is filled in and escaped as JSON")
    func render() async throws {
        let template = try AnswerTemplate([
            "user": "{user}", "remember": true, "deep": ["list": ["{password}", 1, nil]], "{user}": "literal {{}}",
        ])
        let answer = try await template.render(ann)
        #expect(
            JSONValue(parsing: answer.text.revealBytes())
                == [
                    "user": "ann", "remember": true, "deep": ["list": ["a\"b\\c\n€", 1, nil]], "{user}": "literal {}",
                ])
        #expect(template.fieldNames == ["user", "password"])
    }

    @Test("an answer never prints")
    func redacted() async throws {
        let answer = try await AnswerTemplate(["user": "{user}"]).render(ann)
        #expect("\(answer) \(String(reflecting: answer))".contains("ann") == false)
        var dumped = ""
        dump(answer, to: &dumped)
        #expect(!dumped.contains("ann") && dumped.contains("<redacted>"))
    }

    @Test("a field that is not text is refused by an answer template")
    func notText() async throws {
        await #expect(throws: TemplateError.fieldNotText(field: "raw", credential: "ann")) {
            try await AnswerTemplate(["pin": "{raw}"]).render(ann)
        }
    }

    @Test("an error of an answer template names its member")
    func malformed() {
        let error = #expect(throws: TemplateError.self) { try AnswerTemplate(["a": ["b": ["x", "{"]]]) }
        #expect(error?.reason.hasPrefix("a.b[1]: ") == true)
    }

    @Test("an object of secret answers is one JSON object")
    func object() {
        let body = SecretJSON(object: ["b\"": SecretJSON(["pin": "1"]), "a": SecretJSON(nil)])
        #expect(body.text.revealText() == #"{"a":null,"b\"":{"pin":"1"}}"#)
        #expect(SecretJSON(object: [:]).text.revealText() == "{}")
    }
}
