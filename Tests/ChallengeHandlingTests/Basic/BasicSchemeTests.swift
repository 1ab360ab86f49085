// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@Suite("Basic authentication")
struct BasicSchemeTests {
    private func field(_ username: String, _ password: String) throws(LoginFailure) -> String {
        try field(["username": Secret(username), "password": Secret(password)])
    }

    private func field(_ fields: [String: Secret]) throws(LoginFailure) -> String {
        let pair = try NameAndPassword(Credential(name: "corp", fields: fields), challenge: "portal")
        return try BasicScheme.field(for: pair, credential: "corp", challenge: "portal").value.revealText()
    }

    @Test(
        "a Basic answer is encoded as in RFC 7617",
        arguments: [
            ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("test", "123\u{A3}", "Basic dGVzdDoxMjPCow=="), ("", "", "Basic Og=="), ("a", "b:c", "Basic YTpiOmM="),
        ])
    func examples(username: String, password: String, expected: String) throws {
        #expect(try field(username, password) == expected)
    }

    @Test("a user name with a colon is refused by Basic")
    func colon() {
        let failure = #expect(throws: LoginFailure.self) { try field("a:b", "c") }
        #expect(failure?.code == .noCredential && failure?.detail.contains("colon") == true)
    }

    @Test("control characters in name or password are refused by Basic", arguments: ["a\n", "\u{0}", "\u{7F}", "a\tb"])
    func controls(text: String) {
        #expect(throws: LoginFailure.self) { try field(text, "c") }
        let failure = #expect(throws: LoginFailure.self) { try field("c", text) }
        #expect(failure?.code == .noCredential && failure?.detail.contains("\"password\"") == true)
    }

    @Test("Basic needs both name and password in UTF-8")
    func fields() {
        let missing = #expect(throws: LoginFailure.self) { try field(["username": Secret("a")]) }
        #expect(missing?.code == .noCredential && missing?.detail.contains("\"password\"") == true)
        let binary = #expect(throws: LoginFailure.self) {
            try field(["username": Secret("a"), "password": Secret([0xE4])])
        }
        #expect(binary?.code == .noCredential && binary?.detail.contains("UTF-8") == true)
    }
}
