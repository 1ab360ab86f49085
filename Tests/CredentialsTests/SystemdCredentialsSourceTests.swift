// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@testable import Credentials

@Suite("Systemd credentials source")
struct SystemdCredentialsSourceTests {
    private let directory: TemporaryDirectory
    private let source: SystemdCredentialsSource

    init() throws {
        directory = try TemporaryDirectory()
        source = SystemdCredentialsSource(environment: ["CREDENTIALS_DIRECTORY": directory.path])
    }

    private func fields(_ name: String) throws -> [String: Secret]? {
        try source.credential(named: name)?.fields
    }

    @Test("a systemd credential file NAME.FIELD holds one field, without one final newline")
    func files() throws {
        try directory.write("ann\n", to: "portal.username")
        try directory.write("two\n\n", to: "portal.password", mode: 0o440)
        try directory.write("dos\r\n", to: "portal.pin")
        try directory.write("", to: "portal.key")
        try directory.write("no", to: "portal2.username")
        #expect(
            try fields("portal") == [
                "username": Secret("ann"), "password": Secret("two\n"), "pin": Secret("dos"), "key": Secret(""),
            ])
        #expect(try fields("other") == nil)
    }

    @Test("a binary systemd credential file is used unchanged")
    func binary() throws {
        try directory.write([5, 2, 0, 10], to: "corp.keytab")
        #expect(try fields("corp") == ["keytab": Secret([5, 2, 0, 10])])
    }

    @Test("a systemd credential file with a JSON object holds all fields that have no file")
    func object() throws {
        try directory.write(#"{"username": "ann", "pin": 1234, "password": "old"}"# + "\n", to: "portal")
        try directory.write("new", to: "portal.password")
        #expect(
            try fields("portal") == ["username": Secret("ann"), "pin": Secret("1234"), "password": Secret("new")])
    }

    @Test(
        "an invalid systemd credential file is reported without its content",
        arguments: ["hunter2", #"{"a":["hunter2"]}"#, "[]"])
    func badObject(content: String) throws {
        try directory.write(content, to: "portal")
        let error = #expect(throws: CredentialError.self) { try source.credential(named: "portal") }
        #expect(error?.reason.contains(directory.file("portal")) == true)
        #expect(error?.reason.contains("hunter2") == false)
    }

    @Test("the field of a systemd credential file follows its last dot")
    func dots() throws {
        try directory.write("1", to: "a.b.c")
        #expect(try fields("a") == nil)
        #expect(try fields("a.b") == ["c": Secret("1")])
    }

    @Test(
        "a credential name never leads out of the systemd credentials directory",
        arguments: ["", "..", "../portal", "a/b", ".portal", "a\0b"])
    func escape(name: String) throws {
        try directory.write("1", to: "x.pin")
        #expect(try source.credential(named: name)?.name == nil)
        #expect(try source.value(named: name) == nil)
    }

    @Test("a missing systemd credentials directory knows no credential, and an unreadable one is an error")
    func missing() throws {
        #expect(try SystemdCredentialsSource(environment: [:]).credential(named: "a")?.name == nil)
        let gone = SystemdCredentialsSource(environment: ["CREDENTIALS_DIRECTORY": directory.file("gone")])
        #expect(throws: CredentialError.self) { try gone.credential(named: "a") }
    }

    @Test("the systemd credentials directory provides single values, such as a key")
    func value() throws {
        try directory.write("key\n", to: "state-key")
        #expect(try source.value(named: "state-key") == Secret("key"))
        #expect(try source.value(named: "other") == nil)
    }
}
