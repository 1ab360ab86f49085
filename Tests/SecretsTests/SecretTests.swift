// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@Suite("A secret")
struct SecretTests {
    private let secret = Secret("hunter2")

    struct Account {
        var name = "ann"
        var password: Secret
        var spare: Secret?
    }

    struct Refusal: Error {
        var secret: Secret
    }

    @Test("a secret prints as <redacted>")
    func printsRedacted() {
        #expect("\(secret)" == "<redacted>")
        #expect(secret.description == "<redacted>")
        #expect(secret.debugDescription == "<redacted>")
        #expect(String(reflecting: secret) == "<redacted>")
    }

    @Test("a secret inside another value prints as <redacted>")
    func printsRedactedInside() {
        let account = Account(password: secret, spare: secret)
        let texts = [
            "\(Optional(secret) as Any)", "\([secret])", "\(["password": secret])", "\(account)",
            String(reflecting: account), "\(Refusal(secret: secret))", "\(Result<Secret, Refusal>.success(secret))",
            "\(Result<Secret, Refusal>.failure(Refusal(secret: secret)))",
        ]
        for text in texts {
            #expect(text.contains("<redacted>"))
            #expect(!text.contains("hunter2"))
        }
    }

    @Test("a secret dumps nothing, even inside another value")
    func dumpsNothing() {
        var text = ""
        dump(secret, to: &text)
        dump(Account(password: secret, spare: secret), to: &text)
        #expect(text.contains("<redacted>"))
        #expect(!text.contains("hunter2"))
        // The bytes as numbers, and the memory they are in.
        #expect(!text.contains("104"))
        #expect(!text.contains("0x"))
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test("a secret equals only a secret with the same bytes")
    func equality() {
        #expect(secret == Secret("hunter2"))
        #expect(secret != Secret("hunter3"))
        #expect(secret != Secret("hunter"))
        #expect(secret != Secret("Hunter2"))
        #expect(Secret("") == Secret([UInt8]()))
    }

    @Test("a secret returns its bytes unchanged, including zero bytes and invalid UTF-8")
    func reveals() {
        let bytes: [UInt8] = [0, 0xFF, 0x41, 0]
        let secret = Secret(bytes)
        #expect(secret.count == 4)
        #expect(!secret.isEmpty)
        #expect(secret.revealBytes() == bytes)
        #expect(secret.revealText() == "\0\u{FFFD}A\0")
        #expect(Secret("").isEmpty)
        #expect(Secret("").revealBytes() == [])
    }

    @Test("a secret taken from an array leaves no bytes in the array")
    func taking() {
        var bytes = Array("hunter2".utf8)
        let secret = Secret(taking: &bytes)
        #expect(bytes == [])
        #expect(secret == self.secret)
        var empty: [UInt8] = []
        #expect(Secret(taking: &empty).isEmpty)
    }
}
