// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@testable import Credentials

@Suite("A keyring")
struct KeyringTests {
    private func keyring() throws -> Keyring {
        try Keyring(passphrase: Secret("passphrase"), cost: .least)
    }

    @Test("replaces a value in its place")
    func replaces() throws {
        var keyring = try keyring()
        try keyring.set(Secret("1"), for: "a", "x")
        try keyring.set(Secret("2"), for: "a", "x")
        #expect(keyring.contents.map(\.fields) == [["x"]])
        #expect(try keyring.value(of: "a", "x") == Secret("2"))
    }

    @Test("gives all fields of a name as a credential")
    func credential() throws {
        var keyring = try keyring()
        try keyring.set(Secret("ann"), for: "portal", "username")
        try keyring.set(Secret(""), for: "portal", "password")
        try keyring.set(Secret("1234"), for: "pin", "pin")
        let credential = try #require(try keyring.credential(named: "portal"))
        #expect(credential.name == "portal")
        #expect(credential.fields == ["username": Secret("ann"), "password": Secret("")])
        #expect(try keyring.credential(named: "other")?.name == nil)
    }

    @Test("removes a field, or a name with all its fields")
    func removes() throws {
        var keyring = try keyring()
        for field in ["a", "b", "c"] { try keyring.set(Secret(field), for: "portal", field) }
        let removals = [keyring.remove("portal", "b"), keyring.remove("portal", "b")]
        #expect(removals == [true, false])
        #expect(keyring.contents.map(\.fields) == [["a", "c"]])
        let all = [keyring.remove("portal"), keyring.remove("portal")]
        #expect(all == [true, false])
        #expect(keyring.contents.isEmpty)
    }

    @Test("keeps bytes of any kind, up to a mebibyte")
    func anyBytes() throws {
        var keyring = try keyring()
        let keytab = Secret((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0) })
        try keyring.set(keytab, for: "corp", "keytab")
        #expect(try keyring.value(of: "corp", "keytab") == keytab)
        #expect(throws: KeyringError.self) {
            try keyring.set(Secret(Array(repeating: 0, count: (1 << 20) + 1)), for: "corp", "keytab")
        }
        #expect(try keyring.value(of: "corp", "keytab") == keytab)
    }

    @Test("stays small enough to be read again")
    func full() throws {
        var keyring = try keyring()
        let large = Secret(Array(repeating: 0, count: 1 << 20))
        #expect(throws: KeyringError.self) {
            for index in 0..<17 { try keyring.set(large, for: "n\(index)", "f") }
        }
        #expect(keyring.contents.count == 15)
        #expect(keyring.serialized().count <= KeyringFormat.limit)
    }

    @Test(
        "refuses names that could not be shown or asked for again",
        arguments: ["", "a b", "a\nb", "a/b", "\u{7F}", "a\0", "a\u{2028}b", String(repeating: "n", count: 256)])
    func badNames(name: String) throws {
        var keyring = try keyring()
        #expect(throws: KeyringError.self) { try keyring.set(Secret("x"), for: name, "f") }
        #expect(throws: KeyringError.self) { try keyring.set(Secret("x"), for: "n", name) }
        #expect(keyring.contents.isEmpty)
    }

    @Test("with another passphrase opens under that only, and has new keys")
    func rekeyed() throws {
        var keyring = try keyring()
        try keyring.set(Secret("1234"), for: "bank-pin", "pin")
        let other = try keyring.rekeyed(passphrase: Secret("another"), cost: .least)
        let bytes = other.serialized()
        let reopened = try Keyring(reading: bytes, passphrase: Secret("another"))
        #expect(try reopened.value(of: "bank-pin", "pin") == Secret("1234"))
        #expect(throws: KeyringError.self) { try Keyring(reading: bytes, passphrase: Secret("passphrase")) }
        #expect(bytes[12..<28] != keyring.serialized()[12..<28])
    }

    @Test("prints no value, not even with dump")
    func printsNothing() throws {
        var keyring = try keyring()
        try keyring.set(Secret("hunter2"), for: "portal", "password")
        var text = "\(keyring)"
        dump(try keyring.credential(named: "portal"), to: &text)
        #expect(!text.contains("hunter2"))
    }
}
