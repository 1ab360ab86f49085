// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Secrets
import System
import Testing

@testable import Credentials

@Suite("Keyring file")
struct KeyringFileTests {
    private let directory: TemporaryDirectory
    private let file: KeyringFile
    private let passphrase = Secret("passphrase")

    init() throws {
        directory = try TemporaryDirectory()
        file = KeyringFile(path: directory.file("keyring"))
        try file.create(passphrase: passphrase, cost: .minimum)
    }

    private func set(_ value: String, _ name: String) throws {
        try file.update(passphrase: passphrase) { (keyring) throws(KeyringError) in
            try keyring.set(Secret(value), for: name, "pin")
        }
    }

    private func kind(_ passphrase: Secret = Secret("passphrase")) -> KeyringError.Kind? {
        do {
            _ = try file.open(passphrase: passphrase)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("a keyring file is created with mode 0600 and never replaces an existing file")
    func creates() throws {
        #expect(try directory.mode(of: "keyring") == 0o600)
        let before = try directory.read("keyring")
        let error = #expect(throws: KeyringError.self) { try file.create(passphrase: Secret("x"), cost: .minimum) }
        #expect(error?.kind == .exists)
        #expect(try directory.read("keyring") == before)
        #expect(directory.names == ["keyring"])
    }

    @Test("a keyring file is created with its directory, which is closed to others")
    func createsDirectory() throws {
        let other = KeyringFile(path: directory.file("new/keyring"))
        try other.refuseExisting()
        try other.create(passphrase: passphrase, cost: .minimum)
        #expect(try directory.mode(of: "new") == 0o700)
        #expect(throws: KeyringError.self) { try other.refuseExisting() }
    }

    @Test("a keyring file stores the values that are set")
    func keeps() throws {
        try set("1", "a")
        try set("2", "b")
        #expect(try file.open(passphrase: passphrase).contents.map(\.name) == ["a", "b"])
        #expect(try directory.mode(of: "keyring") == 0o600)
        #expect(directory.names == ["keyring", "keyring.lock"])
    }

    @Test("concurrent changes of a keyring file lose no value")
    func concurrent() async throws {
        try await withThrowingTaskGroup { group in
            for index in 0..<16 { group.addTask { try set("\(index)", "n\(index)") } }
            try await group.waitForAll()
        }
        #expect(try file.open(passphrase: passphrase).contents.count == 16)
    }

    @Test("a change of a keyring file waits for the change of another process")
    func waits() async throws {
        let lock = try FileLock(directory.file("keyring.lock"))
        let change = Task { try set("late", "a") }
        // The lock covers reading and replacing: this change must not be lost to the waiting one.
        try FileReplacement(path: file.path).write(
            {
                var keyring = try file.open(passphrase: passphrase)
                try keyring.set(Secret("early"), for: "b", "pin")
                return keyring.serialized()
            }())
        lock.release()
        try await change.value
        #expect(try file.open(passphrase: passphrase).contents.map(\.name) == ["a", "b"])
    }

    @Test("a keyring file is unchanged after a failed change or a wrong passphrase")
    func failedChange() throws {
        try set("1", "a")
        let before = try directory.read("keyring")
        #expect(throws: KeyringError.self) { try set("1", "not a name") }
        #expect(throws: KeyringError.self) {
            try file.update(passphrase: Secret("wrong")) { (keyring) throws(KeyringError) in _ = keyring.remove("a") }
        }
        #expect(try directory.read("keyring") == before)
    }

    @Test("a failure to synchronize the directory says that the file is written all the same")
    func unsynchronized() throws {
        let path = directory.file("half")
        var calls = 0
        var replacement = FileReplacement(path: path)
        replacement.synchronize = { _ in
            calls += 1
            errno = EIO
            return calls % 2 == 1 ? 0 : -1
        }
        let fault = try #require(throws: FileFault.self) { try replacement.write([1]) }
        #expect(fault.kind == .failed && fault.reason.hasPrefix("\(path) is written, but may be lost"), "\(fault)")
        #expect(try FileSystem.contents(of: path, limit: 10) == [1])
        calls = 1
        let removal = try #require(throws: FileFault.self) { try replacement.remove() }
        #expect(removal.reason.hasPrefix("\(path) is removed, but may be back"), "\(removal)")
        #expect(!FileSystem.allows(path, F_OK))
    }

    @Test("a keyring file is complete after its writer was killed, and the leftover is removed later")
    func killedWriter() throws {
        try set("1", "a")
        let leftover = FileReplacement.prefix(for: file.path) + "1-1"
        try directory.write("half", to: leftover)
        try directory.age(leftover, seconds: 3600)
        #expect(try file.open(passphrase: passphrase).contents.map(\.name) == ["a"])
        try set("2", "b")
        #expect(directory.names == ["keyring", "keyring.lock"])
    }

    @Test(
        "a keyring file that others can read or write is refused",
        arguments: [0o640, 0o620, 0o604, 0o602, 0o610] as [mode_t])
    func exposed(mode: mode_t) throws {
        unsafe chmod(file.path, mode)
        let error = #expect(throws: KeyringError.self) { try file.open(passphrase: passphrase) }
        #expect(error?.kind == .exposed)
        #expect(error?.reason.contains("chmod 600 \(file.path)") == true)
        #expect(throws: KeyringError.self) { try set("1", "a") }
    }

    @Test(
        "a keyring file of another user is refused, unless root administers a service's keyring",
        .enabled(if: geteuid() == 0))
    func owner() throws {
        unsafe chown(file.path, 4711, 4711)
        #expect(kind() == .exposed)
        let administered = KeyringFile(administered: file.path)
        #expect(throws: KeyringError.self) { try administered.open(passphrase: passphrase) }
        unsafe chown(directory.path, 4711, 4711)
        try administered.update(passphrase: passphrase) { (keyring) throws(KeyringError) in
            try keyring.set(Secret("1"), for: "a", "pin")
        }
        // The new files still belong to the service's user.
        var status = stat()
        for path in [file.path, file.path + ".lock"] {
            try #require(unsafe stat(path, &status) == 0)
            #expect(status.st_uid == 4711)
        }
    }

    @Test("a keyring accepts passphrases and values of one line, and multi-line PEM and binary values")
    func lines() throws {
        for text in ["new\nnew", "new\n", "a\rb", "new\r\nnew"] {
            let other = directory.file("other")
            let made = #expect(throws: KeyringError.self) {
                try KeyringFile(path: other).create(passphrase: Secret(text))
            }
            #expect(made?.kind == .invalid && made?.reason.contains("one line") == true)
            #expect(throws: KeyringError.self) { try file.rekey(from: passphrase, to: Secret(text), cost: .minimum) }
            #expect(throws: KeyringError.self) { try set(text, "pin") }
        }
        #expect(try file.open(passphrase: passphrase).contents.isEmpty)
        let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQ==\n-----END PRIVATE KEY-----\n"
        try set(pem, "private-key")
        let binary = Secret([5, 2, 10, 0xFF, 0x0D])
        try file.update(passphrase: passphrase) { (keyring) throws(KeyringError) in
            try keyring.set(binary, for: "a", "keytab")
        }
        #expect(try file.open(passphrase: passphrase).value(of: "a", "keytab") == binary)
        try file.rekey(from: passphrase, to: binary, cost: .minimum)
        #expect(try file.open(passphrase: binary).contents.count == 2)
    }

    @Test("a missing, irregular, empty, foreign, truncated or corrupt keyring file is reported as such, with its path")
    func toldApart() throws {
        #expect(kind(Secret("wrong")) == .wrongPassphrase)
        let whole = try directory.read("keyring")
        try directory.write(whole.dropLast(), to: "keyring")
        #expect(kind() == .truncated)
        try directory.write([], to: "keyring")
        #expect(kind() == .truncated)
        try directory.write(whole.dropLast() + [0], to: "keyring")
        #expect(kind() == .corrupt)
        try directory.write("something else", to: "keyring")
        #expect(kind() == .notAKeyring)
        unsafe unlink(file.path)
        #expect(kind() == .missing)
        unsafe mkdir(file.path, 0o700)
        let error = #expect(throws: KeyringError.self) { try file.open(passphrase: passphrase) }
        #expect(error?.reason.contains(file.path) == true)
    }

    @Test("a named pipe at the path of a keyring file does not block the reader")
    func pipe() throws {
        unsafe unlink(file.path)
        unsafe mkfifo(file.path, 0o600)
        #expect(kind() == .failed)
    }

    @Test("a keyring file is replaced at the target of its symbolic link")
    func link() throws {
        unsafe symlink(file.path, directory.file("link"))
        try KeyringFile(path: directory.file("link")).update(passphrase: passphrase) { (keyring) throws(KeyringError) in
            try keyring.set(Secret("1"), for: "a", "pin")
        }
        #expect(try file.open(passphrase: passphrase).contents.map(\.name) == ["a"])
    }

    @Test("a new passphrase applies to all values of a keyring file")
    func rekey() throws {
        try set("1", "a")
        try file.rekey(from: passphrase, to: Secret("other"), cost: .minimum)
        #expect(kind() == .wrongPassphrase)
        #expect(try file.open(passphrase: Secret("other")).value(of: "a", "pin") == Secret("1"))
        #expect(throws: KeyringError.self) { try file.rekey(from: Secret("other"), to: Secret(""), cost: .minimum) }
        #expect(try file.open(passphrase: Secret("other")).value(of: "a", "pin") == Secret("1"))
    }
}
