// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ArgumentParser
import Glibc
import System
import Testing

@testable import CountersignDaemon
@testable import Credentials

@Suite("The keyring commands")
final class KeyringCommandTests {
    private let directory: String
    private let keyring: String
    private let keyFile: String

    init() throws {
        directory = "/tmp/countersign-keyring-\(getpid())-\(UInt64.random(in: .min ... .max))"
        keyring = directory + "/keyring"
        keyFile = directory + "/key"
        try #require(unsafe mkdir(directory, 0o700) == 0)
        try #require(try FileReplacement(path: keyFile).create(Array("passphrase\n".utf8)))
    }

    deinit {
        for name in DirectoryListing.names(in: directory) ?? [] { unsafe unlink("\(directory)/\(name)") }
        unsafe rmdir(directory)
    }

    private func run<Command: ParsableCommand>(_ command: Command.Type, _ arguments: String...) throws {
        var command = try Command.parse(["--keyring", keyring, "--key-file", keyFile] + arguments)
        try command.run()
    }

    /// Returns the exit code (sysexits.h) of the failure of `work`.
    private func code(_ work: () throws -> Void) -> Int32? {
        do {
            try work()
            return nil
        } catch let failure as Failure {
            return failure.code
        } catch let exit as ExitCode {
            return exit.rawValue
        } catch {
            return -1
        }
    }

    @Test("keyring init and rekey create a keyring once and change its passphrase; errors have their exit codes")
    func wholeFile() throws {
        #expect(code { try run(KeyringList.self) } == 78)
        try run(KeyringInit.self)
        #expect(code { try run(KeyringInit.self) } == 78)
        let other = directory + "/other"
        try #require(try FileReplacement(path: other).create(Array("another\n".utf8)))
        try run(KeyringRekey.self, "--new-key-file", other)
        #expect(code { try run(KeyringList.self) } == 77)
        #expect(try KeyringFile(path: keyring).open(passphrase: KeyringPassphrase.content(of: other)).contents.isEmpty)
        try #require(unsafe chmod(keyring, 0o644) == 0)
        #expect(code { try run(KeyringList.self, "--json") } == 77)
    }

    @Test("keyring get and remove exit with 69 if there is no such value")
    func missingValue() throws {
        try KeyringFile(path: keyring).create(passphrase: KeyringPassphrase.content(of: keyFile), cost: .minimum)
        #expect(code { try run(KeyringGet.self, "portal", "password") } == 69)
        #expect(code { try run(KeyringRemove.self, "portal") } == 69)
    }

    @Test("keyring remove removes one field, or all fields of a credential")
    func remove() throws {
        let file = KeyringFile(path: keyring)
        let passphrase = try KeyringPassphrase.content(of: keyFile)
        try file.create(passphrase: passphrase, cost: .minimum)
        try file.update(passphrase: passphrase) { (keyring) throws(KeyringError) in
            for field in ["a", "b", "c"] { try keyring.set(passphrase, for: "portal", field) }
        }
        try run(KeyringRemove.self, "portal", "b")
        #expect(try file.open(passphrase: passphrase).contents.first?.fields == ["a", "c"])
        try run(KeyringRemove.self, "portal")
        #expect(try file.open(passphrase: passphrase).contents.isEmpty)
    }

    @Test("keyring set and rekey accept no secret as an argument")
    func noValueInArguments() {
        #expect(throws: (any Error).self) { try KeyringSet.parse(["portal", "password", "hunter2"]) }
        #expect(throws: (any Error).self) { try KeyringRekey.parse(["hunter2"]) }
    }

    @Test("the keyring commands use the keyring and key file of the configuration unless options are given")
    func location() throws {
        let configuration = directory + "/countersign.yaml"
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: bank }]
            upstreams: { bank: { url: "https://bank.example.com/" } }
            credentials: { sources: [env, { keyring: /k/one, key-file: /k/key }, { keyring: /k/two }] }
            """
        try #require(try FileReplacement(path: configuration).create(Array(text.utf8)))
        let configured = try KeyringOptions.parse(["--config", configuration]).location()
        #expect(configured.path == "/k/one")
        #expect(configured.keyFile == "/k/key")
        let told = try KeyringOptions.parse(["--config", configuration, "--keyring", "/k/three"]).location()
        #expect(told.path == "/k/three")
        #expect(told.keyFile == nil)
        #expect(code { _ = try KeyringOptions.parse(["--config", "/no/such/file"]).location() } == 78)
    }

    @Test("the keyring commands exit with 78 if the configuration has no keyring")
    func noKeyring() throws {
        let configuration = directory + "/countersign.yaml"
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: bank }]
            upstreams: { bank: { url: "https://bank.example.com/" } }
            """
        try #require(try FileReplacement(path: configuration).create(Array(text.utf8)))
        #expect(code { _ = try KeyringOptions.parse(["--config", configuration]).location() } == 78)
    }
}
