// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import Synchronization
import System
import Testing

@testable import Credentials

@Suite("Credential store")
struct CredentialStoreTests {
    private struct Source: CredentialLookup {
        var known: [String: String] = [:]
        var failure: CredentialError?

        func credential(named name: String) throws(CredentialError) -> Credential? {
            if let failure { throw failure }
            return known[name].map { Credential(name: name, fields: ["pin": Secret($0)]) }
        }
    }

    @Test("the first source that knows a credential provides all of its fields")
    func firstWins() async throws {
        let store = CredentialStore(sources: [Source(known: ["a": "1"]), Source(known: ["a": "2", "b": "3"])])
        #expect(try await store.credential(named: "a")?["pin"] == Secret("1"))
        #expect(try await store.credential(named: "b")?["pin"] == Secret("3"))
        #expect(try await store.credential(named: "c")?.name == nil)
    }

    @Test("a credential names the source that gave it, and how to change its secret there; only operators see the path")
    func answering() async throws {
        let environment = EnvironmentSource(environment: [
            "COUNTERSIGN_A__USERNAME": "ann", "COUNTERSIGN_A__PASSWORD": "x",
        ])
        let store = CredentialStore(
            sources: [Source(known: ["b": "1"]), environment], needed: ["a": ["username", "password"]])
        let source = try #require(try await store.credential(named: "a")?.source)
        #expect(source.kind == "the environment (COUNTERSIGN_A__PASSWORD)" && source.name == source.kind)
        #expect(source.change.contains("restart the daemon"))
        guard case .known(let watched?) = try await store.watched(named: "a") else {
            Issue.record("not watched")
            return
        }
        #expect(watched.source == source)
        #expect(try await store.credential(named: "b")?.source == nil)
        let keyring = KeyringSource(path: "/x/keyring", passphrase: KeyringPassphrase(environment: [:]))
        let described = try #require(keyring.source(of: ["password"], of: "a"))
        #expect(described.kind == "the keyring" && described.name == "the keyring /x/keyring")
        #expect(described.change.contains("`countersign keyring set a password`"))
        let systemd = SystemdCredentialsSource(environment: ["CREDENTIALS_DIRECTORY": "/run/credentials/x"])
        #expect(systemd.source(of: ["password"], of: "a")?.kind == "systemd (a.password)")
        #expect(systemd.source(of: ["password"], of: "a")?.change.contains("restart the unit") == true)
        let file = EnvironmentFileSource(path: "/x/env").source(of: ["password"], of: "a")
        #expect(file?.kind == "the environment file" && file?.change.contains("COUNTERSIGN_A__PASSWORD") == true)
        let helper = ExecSource(command: ["/x/helper"], environment: [:]).source(of: ["password"], of: "a")
        #expect(helper?.kind == "a credential helper" && helper?.name == "the credential helper /x/helper")
    }

    @Test("a look-up without a prompt runs a helper, which the watch of files does not")
    func unprompted() async throws {
        struct Helper: CredentialLookup {
            var asksOthers: Bool { true }
            func credential(named name: String) throws(CredentialError) -> Credential? {
                Credential(name: name, fields: ["pin": Secret("1")])
            }
        }
        let store = CredentialStore(sources: [Helper()])
        guard case .unknown = try await store.watched(named: "a") else {
            Issue.record("the watch runs a helper")
            return
        }
        guard case .known(let credential?) = try await store.unprompted(named: "a") else {
            Issue.record("not known")
            return
        }
        #expect(credential["pin"] == Secret("1"))
    }

    @Test("the advice on a missing credential names its needed fields for each source")
    func advice() {
        let store = CredentialStore(
            sources: [
                EnvironmentSource(environment: [:]), SystemdCredentialsSource(environment: [:]), Source(),
                KeyringSource(path: "/x", passphrase: KeyringPassphrase(environment: [:])),
            ], needed: ["ledger-key": ["username", "key"]])
        #expect(
            store.advice(onMissing: "ledger-key") == """
                Add it: set COUNTERSIGN_LEDGER_KEY__USERNAME and COUNTERSIGN_LEDGER_KEY__KEY in the daemon's environment \
                (source `env`), or pass ledger-key.username and ledger-key.key with LoadCredential= in the unit (source \
                `systemd`), or run `countersign keyring set ledger-key username` and `countersign keyring set ledger-key key`.
                """)
        #expect(store.advice(onMissing: "other").contains("COUNTERSIGN_OTHER__FIELD"))
        #expect(CredentialStore(sources: [Source()]).advice(onMissing: "x") == "Add it to a source of `credentials`.")
    }

    @Test("a failing source ends the lookup, so that no older secret of a later source is used")
    func failureEnds() async {
        let failure = CredentialError(reason: "unreadable")
        let store = CredentialStore(sources: [Source(failure: failure), Source(known: ["a": "2"])])
        await #expect(throws: failure) { try await store.credential(named: "a") }
    }

    @Test("concurrent lookups of credentials each get their own result")
    func concurrent() async throws {
        let known = Dictionary(uniqueKeysWithValues: (0..<64).map { ("n\($0)", "\($0)") })
        let store = CredentialStore(sources: [Source(known: known)])
        try await withThrowingTaskGroup { group in
            for (name, value) in known {
                group.addTask {
                    let found = try await store.credential(named: name)
                    #expect(found?["pin"] == Secret(value))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("a credential lookup without a thread to run on fails and asks no source")
    func noThread() async {
        let failing: ThreadStart = { (_: @escaping @Sendable () -> Void) throws(ThreadError) in
            throw ThreadError(code: 11)
        }
        let looked = Mutex(0)
        let store = CredentialStore(sources: [Counting(looked: { looked.withLock { $0 += 1 } })], onThread: failing)
        let error = await #expect(throws: CredentialError.self) { try await store.credential(named: "a") }
        #expect(error?.reason.contains("no thread could be started") == true && error?.isAbsent == false)
        await #expect(throws: CredentialError.self) { try await store.watched(named: "a") }
        #expect(looked.withLock { $0 } == 0)
    }

    private struct Counting: CredentialLookup {
        let looked: @Sendable () -> Void

        func credential(named name: String) throws(CredentialError) -> Credential? {
            looked()
            return nil
        }
    }
}

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

    @Test("a key of which it cannot be told whether it exists is an error: state would be sealed with another key")
    func unknownValue() throws {
        unsafe symlink("state-key", directory.file("state-key"))
        #expect(throws: CredentialError.self) { try source.value(named: "state-key") }
    }
}
