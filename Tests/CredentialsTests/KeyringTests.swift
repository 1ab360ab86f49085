// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@testable import Credentials

@Suite("Keyring")
struct KeyringTests {
    private func keyring() throws -> Keyring {
        try Keyring(passphrase: Secret("passphrase"), cost: .minimum)
    }

    @Test("a keyring replaces the value of a field")
    func replaces() throws {
        var keyring = try keyring()
        try keyring.set(Secret("1"), for: "a", "x")
        try keyring.set(Secret("2"), for: "a", "x")
        #expect(keyring.contents.map(\.fields) == [["x"]])
        #expect(try keyring.value(of: "a", "x") == Secret("2"))
    }

    @Test("a keyring returns all fields of a name as one credential")
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

    @Test("a keyring removes one field or all fields of a name")
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

    @Test("a keyring stores any bytes, up to 1 MiB")
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

    @Test("a keyring refuses a value that would make the file too large to read")
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
        "a keyring refuses names with unprintable characters",
        arguments: ["", "a b", "a\nb", "a/b", "\u{7F}", "a\0", "a\u{2028}b", String(repeating: "n", count: 256)])
    func badNames(name: String) throws {
        var keyring = try keyring()
        #expect(throws: KeyringError.self) { try keyring.set(Secret("x"), for: name, "f") }
        #expect(throws: KeyringError.self) { try keyring.set(Secret("x"), for: "n", name) }
        #expect(keyring.contents.isEmpty)
    }

    @Test("a keyring with a new passphrase opens only with that one and has new keys")
    func rekeyed() throws {
        var keyring = try keyring()
        try keyring.set(Secret("1234"), for: "bank-pin", "pin")
        let other = try keyring.rekeyed(passphrase: Secret("another"), cost: .minimum)
        let bytes = other.serialized()
        let reopened = try Keyring(reading: bytes, passphrase: Secret("another"))
        #expect(try reopened.value(of: "bank-pin", "pin") == Secret("1234"))
        #expect(throws: KeyringError.self) { try Keyring(reading: bytes, passphrase: Secret("passphrase")) }
        #expect(bytes[12..<28] != keyring.serialized()[12..<28])
    }

    @Test("printing or dumping a keyring shows no value")
    func printsNothing() throws {
        var keyring = try keyring()
        try keyring.set(Secret("hunter2"), for: "portal", "password")
        var text = "\(keyring)"
        dump(try keyring.credential(named: "portal"), to: &text)
        #expect(!text.contains("hunter2"))
    }
}

@Suite("Keyring source")
struct KeyringSourceTests {
    private let directory: TemporaryDirectory
    private let file: KeyringFile
    private let passphrase = Secret("passphrase")

    init() throws {
        directory = try TemporaryDirectory()
        file = KeyringFile(path: directory.file("keyring"))
        try file.create(passphrase: passphrase, cost: .minimum)
        try set("1234", "bank-pin")
    }

    private func set(_ value: String, _ name: String, _ passphrase: String = "passphrase") throws {
        try file.update(passphrase: Secret(passphrase)) { (keyring) throws(KeyringError) in
            try keyring.set(Secret(value), for: name, "pin")
        }
    }

    private func source(_ passphrase: KeyringPassphrase) -> KeyringSource {
        KeyringSource(path: file.path, passphrase: passphrase)
    }

    private var right: KeyringPassphrase {
        KeyringPassphrase(environment: ["COUNTERSIGN_KEYRING_PASSPHRASE": "passphrase"])
    }

    @Test("a keyring source returns the value that is on disk now")
    func follows() throws {
        let source = source(right)
        #expect(try source.credential(named: "bank-pin")?["pin"] == Secret("1234"))
        #expect(try source.credential(named: "other")?.name == nil)
        try set("4321", "bank-pin")
        #expect(try source.credential(named: "bank-pin")?["pin"] == Secret("4321"))
    }

    @Test("a keyring source follows a change of the passphrase")
    func followsRekey() throws {
        let keyFile = try directory.write("passphrase\n", to: "key")
        let source = source(KeyringPassphrase(environment: [:], keyFile: keyFile))
        #expect(try source.credential(named: "bank-pin")?["pin"] == Secret("1234"))
        try file.rekey(from: passphrase, to: Secret("other"), cost: .minimum)
        let error = #expect(throws: CredentialError.self) { try source.credential(named: "bank-pin") }
        #expect(error?.reason.contains("passphrase is wrong") == true)
        try directory.write("other", to: "key")
        #expect(try source.credential(named: "bank-pin")?["pin"] == Secret("1234"))
    }

    @Test("a keyring source reports errors with path and remedy")
    func errors() throws {
        let wrong = KeyringPassphrase(environment: ["COUNTERSIGN_KEYRING_PASSPHRASE": "hunter2"])
        for source in [source(wrong), source(KeyringPassphrase(environment: [:]))] {
            let error = #expect(throws: CredentialError.self) { try source.credential(named: "bank-pin") }
            #expect(error?.reason.contains("hunter2") == false)
            #expect(error?.reason.contains("passphrase") == true)
        }
        let missing = KeyringSource(path: directory.file("gone"), passphrase: right)
        let error = #expect(throws: CredentialError.self) { try missing.credential(named: "bank-pin") }
        #expect(error?.reason.contains(directory.file("gone")) == true)
    }

    @Test("a keyring passphrase comes from the first configured place that has one")
    func passphraseOrder() throws {
        try directory.write("systemd\n", to: "keyring-passphrase")
        let keyFile = try directory.write("file\n", to: "key")
        func read(_ environment: [String: String], _ keyFile: String?) throws -> String {
            try KeyringPassphrase(environment: environment, keyFile: keyFile) { Secret("prompt") }.read().revealText()
        }
        let systemd = ["CREDENTIALS_DIRECTORY": directory.path]
        let variable = ["COUNTERSIGN_KEYRING_PASSPHRASE": "variable"]
        #expect(try read(systemd.merging(variable) { $1 }, keyFile) == "systemd")
        #expect(try read(variable, keyFile) == "variable")
        #expect(try read([:], keyFile) == "file")
        #expect(try read([:], nil) == "prompt")
    }

    @Test("a keyring passphrase in a file that others can read is refused, and so is an empty one")
    func badKeyFile() throws {
        let open = try directory.write("file\n", to: "open", mode: 0o644)
        let empty = try directory.write("\n", to: "empty")
        for (path, kind) in [(open, KeyringError.Kind.exposed), (empty, .noPassphrase), ("/nowhere", .missing)] {
            let error = #expect(throws: KeyringError.self) {
                try KeyringPassphrase(environment: [:], keyFile: path).read()
            }
            #expect(error?.kind == kind)
        }
    }
}
