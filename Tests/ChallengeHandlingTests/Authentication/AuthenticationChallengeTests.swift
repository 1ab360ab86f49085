// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Authentication challenges")
struct AuthenticationChallengeTests {
    /// `scheme token68? name=value…` of each challenge.
    private static func text(_ challenges: [AuthenticationChallenge]) -> [String] {
        challenges.map { challenge in
            ([challenge.scheme] + [challenge.token68].compactMap(\.self)
                + challenge.parameters.map { "\($0.name)=\($0.value)" })
                .joined(separator: "|")
        }
    }

    @Test(
        "a challenge that follows the grammar is parsed",
        arguments: [
            ("", []), (" , ,", []), ("Basic", ["Basic"]), ("Bearer error=\"x\"", ["Bearer|error=x"]),
            ("Negotiate, NTLM,Basic realm=\"a\"", ["Negotiate", "NTLM", "Basic|realm=a"]),
            (
                "Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\"",
                ["Newauth|realm=apps|type=1|title=Login to \"apps\"", "Basic|realm=simple"]
            ),
            ("Basic realm=\"a, Digest realm=\\\\b\"", ["Basic|realm=a, Digest realm=\\b"]),
            ("Negotiate YII+/w==", ["Negotiate|YII+/w=="]), ("Negotiate YII= , Basic", ["Negotiate|YII=", "Basic"]),
            ("Foo bar", ["Foo|bar"]), ("Foo bar=", ["Foo|bar="]), ("Foo a=b", ["Foo|a=b"]), ("Foo a = b", ["Foo|a=b"]),
            ("Foo a=\"\"", ["Foo|a="]), ("Foo ,a=b", ["Foo|a=b"]), ("Foo , , a=b,, c=d ,", ["Foo|a=b|c=d"]),
            ("Foo   a=b\t,\tBar", ["Foo|a=b", "Bar"]), ("Foo A=1,b=2", ["Foo|a=1|b=2"]),
            ("Foo a=\"t\tb\"", ["Foo|a=t\tb"]),
            (
                "Digest realm=r, qop=\"auth,auth-int\", Basic realm=r",
                ["Digest|realm=r|qop=auth,auth-int", "Basic|realm=r"]
            ),
            ("Foo a=1, Bar b=2, c=3", ["Foo|a=1", "Bar|b=2|c=3"]), ("Foo a=\"é\"", ["Foo|a=é"]),
            ("Foo, a=b", ["Foo|a=b"]), ("Foo ", ["Foo"]), ("Foo \t,\tBar a=b", ["Foo", "Bar|a=b"]), ("Foo \t", ["Foo"]),
            ("Foo \t, a=b", ["Foo|a=b"]),
        ])
    func wellFormed(value: String, expected: [String]) throws {
        #expect(Self.text(try AuthenticationChallenge.parse([value])) == expected)
    }

    @Test(
        "a challenge that violates the grammar is an error",
        arguments: [
            "=", "a=b", "Foo =b", "Foo a b", "Foo a=b c=d", "Foo a=b Bar", "Foo a=\"b", "Foo a=\"b\\", "Foo a=\"b\"c",
            "Foo a=1, a=2", "Foo a=1, A=2", "Foo bar, c=d", "Foo bar==x", "\"Foo\"", "Foo a=\"\u{1}\"",
            "Foo a=\"x\u{7F}\"",
            "Foo a=,b=c x", "Foo; a=b", "Basic realm=my realm", "Foo a=b=c", "Foo\ta=b", "Foo \ta=b", "é", "Foo a=(b)",
        ])
    func malformed(value: String) {
        #expect(throws: MalformedChallenge.self) { try AuthenticationChallenge.parse(["Basic realm=x", value]) }
    }

    @Test("a challenge with too many parameters is refused")
    func flood() throws {
        func field(_ count: Int) -> String { "Foo " + (0..<count).map { "p\($0)=1" }.joined(separator: ",") }
        #expect(try AuthenticationChallenge.parse([field(64)]).first?.parameters.count == 64)
        #expect(throws: MalformedChallenge.self) { try AuthenticationChallenge.parse([field(65)]) }
    }

    @Test("a malformed challenge is reported with its offset")
    func place() {
        let error = #expect(throws: MalformedChallenge.self) { try AuthenticationChallenge.parse(["Foo a=b c=d"]) }
        #expect(error?.offset == 8 && error?.reason == "expected a comma")
    }

    @Test("several challenge fields form one list, and no challenge continues in the next field")
    func fields() throws {
        #expect(Self.text(try AuthenticationChallenge.parse(["Foo a=1", "Bar"])) == ["Foo|a=1", "Bar"])
        #expect(throws: MalformedChallenge.self) { try AuthenticationChallenge.parse(["Foo a=1", "b=2"]) }
    }

    @Test("schemes and parameter names are compared without regard to case")
    func names() throws {
        let challenge = try #require(try AuthenticationChallenge.parse(["bEARER Error=x"]).first)
        #expect(challenge.isScheme("Bearer") && challenge["ERROR"] == "x" && challenge["realm"] == nil)
    }

    @Test("no bytes of a challenge field trap the parser")
    func anyBytes() {
        var chance = SystemRandomNumberGenerator()
        let signs = Array("aB =,\"\\;/\t\u{1}é".unicodeScalars)
        for _ in 0..<5000 {
            var text = ""
            for _ in 0..<Int.random(in: 0...24, using: &chance) {
                text.unicodeScalars.append(signs[Int.random(in: 0..<signs.count, using: &chance)])
            }
            let read = (try? AuthenticationChallenge.parse([text])) ?? []
            #expect(read.allSatisfy { !$0.scheme.isEmpty })
        }
    }
}
