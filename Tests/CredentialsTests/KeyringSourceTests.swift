// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@testable import Credentials

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
