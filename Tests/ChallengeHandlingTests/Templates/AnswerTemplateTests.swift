// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

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
