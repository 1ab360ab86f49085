// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@Suite("Answer templates")
struct AnswerTemplateTests {
    let ann = Credential(
        name: "ann", fields: ["user": Secret("ann"), "password": Secret("a\"b\\c\n€"), "raw": Secret([0xC3, 0x28])])

    @Test("every string is filled in, wherever it stands, and escaped as JSON demands")
    func render() throws {
        let template = try AnswerTemplate([
            "user": "{user}", "remember": true, "deep": ["list": ["{password}", 1, nil]], "{user}": "literal {{}}",
        ])
        let answer = try template.render(ann)
        #expect(
            JSONValue(parsing: answer.text.revealBytes())
                == [
                    "user": "ann", "remember": true, "deep": ["list": ["a\"b\\c\n€", 1, nil]], "{user}": "literal {}",
                ])
        #expect(template.fieldNames == ["user", "password"])
    }

    @Test("an answer never prints")
    func redacted() throws {
        let answer = try AnswerTemplate(["user": "{user}"]).render(ann)
        #expect("\(answer) \(String(reflecting: answer))".contains("ann") == false)
        var dumped = ""
        dump(answer, to: &dumped)
        #expect(!dumped.contains("ann") && dumped.contains("<redacted>"))
    }

    @Test("a field that is no text is refused, not changed")
    func notText() throws {
        #expect(throws: TemplateError.fieldNotText(field: "raw", credential: "ann")) {
            try AnswerTemplate(["pin": "{raw}"]).render(ann)
        }
    }

    @Test("a mistake is told with the member it stands in")
    func malformed() {
        let error = #expect(throws: TemplateError.self) { try AnswerTemplate(["a": ["b": ["x", "{"]]]) }
        #expect(error?.reason.hasPrefix("a.b[1]: ") == true)
    }

    @Test("an object of answers is one JSON object")
    func object() {
        let body = SecretJSON(object: ["b\"": SecretJSON(["pin": "1"]), "a": SecretJSON(nil)])
        #expect(body.text.revealText() == #"{"a":null,"b\"":{"pin":"1"}}"#)
        #expect(SecretJSON(object: [:]).text.revealText() == "{}")
    }
}
