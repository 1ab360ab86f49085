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
