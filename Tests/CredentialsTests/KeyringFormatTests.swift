// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@testable import Credentials

@Suite("Keyring format")
struct KeyringFormatTests {
    private static let passphrase = Secret("correct horse")

    private func sample() throws -> [UInt8] {
        var keyring = try Keyring(passphrase: Self.passphrase, cost: .minimum)
        try keyring.set(Secret("1234"), for: "bank-pin", "pin")
        try keyring.set(Secret("ann"), for: "portal", "username")
        try keyring.set(Secret("hunter2"), for: "portal", "password")
        return keyring.serialized()
    }

    private func kind(
        of bytes: [UInt8], _ passphrase: Secret = passphrase, previous: Keyring? = nil
    ) -> KeyringError.Kind? {
        do {
            _ = try Keyring(reading: bytes, passphrase: passphrase, previous: previous)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("a keyring is restored unchanged from its bytes")
    func roundTrip() throws {
        let keyring = try Keyring(reading: sample(), passphrase: Self.passphrase)
        #expect(keyring.contents.map(\.name) == ["bank-pin", "portal"])
        #expect(keyring.contents.map(\.fields) == [["pin"], ["password", "username"]])
        #expect(try keyring.value(of: "portal", "password") == Secret("hunter2"))
        #expect(try keyring.value(of: "portal", "pin") == nil)
        #expect(try Keyring(reading: keyring.serialized(), passphrase: Self.passphrase).contents.count == 2)
    }

    @Test("the bytes of a keyring have the documented layout and contain no plain value")
    func layout() throws {
        let bytes = try sample()
        #expect(bytes.starts(with: Array("CSIGNKEY".utf8) + [1, 10, 8, 1]))
        #expect(Array(bytes[44..<48]) == [0, 0, 0, 3])
        let length = bytes[48..<52].reduce(0) { $0 << 8 | Int($1) }
        #expect(bytes.count == 84 + length + 32)
        let text = String(decoding: bytes, as: UTF8.self)
        for value in ["1234", "hunter2", "ann"] { #expect(!text.contains(value)) }
    }

    @Test("each changed byte of a keyring is detected, with the right error")
    func everyByte() throws {
        let bytes = try sample()
        // Avoids the key derivation if the header is unchanged.
        let keyring = try Keyring(reading: bytes, passphrase: Self.passphrase)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 0x10
            let expected: KeyringError.Kind =
                switch index {
                case 0..<8: .notAKeyring
                case 8: .unsupported
                default: .corrupt
                }
            #expect(kind(of: changed, previous: keyring) == expected, "byte \(index)")
        }
    }

    @Test("a keyring that ends at any earlier byte is reported as truncated")
    func truncated() throws {
        let bytes = try sample()
        for length in 0..<bytes.count {
            #expect(kind(of: Array(bytes.prefix(length))) == .truncated, "\(length) bytes")
        }
        #expect(kind(of: bytes + [0]) == .corrupt)
    }

    @Test("a wrong passphrase of a keyring is distinguished from damage")
    func wrongPassphrase() throws {
        #expect(kind(of: try sample(), Secret("correct hors")) == .wrongPassphrase)
        #expect(kind(of: try sample(), Secret("")) == .noPassphrase)
    }

    @Test("a keyring of another version and a file that is not a keyring are reported as such")
    func foreign() throws {
        var bytes = try sample()
        bytes[8] = 2
        #expect(kind(of: bytes) == .unsupported)
        #expect(kind(of: Array("listeners:\n  - address".utf8)) == .notAKeyring)
        #expect(kind(of: Array("x".utf8)) == .notAKeyring)
    }

    @Test(
        "a keyring whose scrypt parameters need too much memory is refused before the derivation",
        arguments: [9, 19, 31, 63, 255] as [UInt8])
    func hostileCost(log2N: UInt8) throws {
        var bytes = try sample()
        bytes[9] = log2N
        bytes.replaceSubrange(52..<84, with: KeyringKeys.digest(Array(bytes[0..<52])))
        #expect(kind(of: bytes) == .unsupported)
    }

    @Test("a keyring with lowered scrypt parameters and a matching checksum does not open")
    func loweredCost() throws {
        var bytes = try sample()
        bytes[9] = 11
        bytes.replaceSubrange(52..<84, with: KeyringKeys.digest(Array(bytes[0..<52])))
        #expect(kind(of: bytes) == .wrongPassphrase)
    }

    @Test("a keyring with an entry of an older copy does not open")
    func rolledTogether() throws {
        var keyring = try Keyring(passphrase: Self.passphrase, cost: .minimum)
        try keyring.set(Secret("old1"), for: "bank-pin", "pin")
        let old = keyring.serialized()
        try keyring.set(Secret("new1"), for: "bank-pin", "pin")
        let new = keyring.serialized()
        // Same lengths, same keys: the header and code of one around the entry of the other.
        try #require(old.count == new.count)
        let end = new.count - 32
        #expect(kind(of: Array(new[0..<84] + old[84..<end] + new[end...])) == .corrupt)
        #expect(kind(of: Array(new[0..<end] + old[end...])) == .corrupt)
    }

    @Test("a keyring with removed or reordered entries does not open")
    func entrySet() throws {
        let bytes = try sample()
        let format = try KeyringFormat(parsing: bytes, digest: KeyringKeys.digest)
        for entries in [format.entries.reversed(), Array(format.entries.dropLast()), []] {
            let forged = KeyringFormat.authenticatedBytes(
                header: format.header, entries: entries, digest: KeyringKeys.digest)
            #expect(kind(of: forged + format.code) == .corrupt)
        }
    }

    @Test("a keyring value moved under another name does not open")
    func movedValue() throws {
        let keys = try KeyringKeys(passphrase: Self.passphrase, cost: .minimum, salt: Array(repeating: 1, count: 16))
        var entry = try keys.seal(Secret("hunter2"), name: "portal", field: "password")
        #expect(try keys.open(entry) == Secret("hunter2"))
        entry.field = "username"
        #expect(throws: KeyringError.self) { try keys.open(entry) }
        // The boundary between name and field is authenticated as well.
        entry.name = "portalp"
        entry.field = "assword"
        #expect(throws: KeyringError.self) { try keys.open(entry) }
    }
}
