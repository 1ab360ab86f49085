// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import System
import Testing

@testable import Credentials

/// User 65534 is the service, whose directory is `service`; `etc/passwd` stands for the system's files.
@Suite("Files that root writes in a service's directory", .enabled(if: geteuid() == 0))
struct ServiceDirectoryTests {
    private static let user: uid_t = 65_534
    private let directory: TemporaryDirectory
    private var victim: String { directory.file("etc/passwd") }

    init() throws {
        directory = try TemporaryDirectory()
        for (name, owner) in [("service", Self.user), ("etc", 0)] {
            try FileSystem.makeDirectory(directory.file(name), mode: 0o700)
            try #require(unsafe chown(directory.file(name), owner, owner) == 0)
        }
        try directory.write("root", to: "etc/passwd")
    }

    private func link(_ name: String, to target: String) throws {
        unsafe unlink(directory.file(name))
        try #require(unsafe symlink(target, directory.file(name)) == 0)
        try #require(unsafe lchown(directory.file(name), Self.user, Self.user) == 0)
    }

    private func isUntouched() throws -> Bool {
        let status = try FileSystem.status(of: victim)
        return try directory.read("etc/passwd") == Array("root".utf8) && status.st_uid == 0
            && status.st_mode & 0o7777 == 0o600 && DirectoryListing.names(in: directory.file("etc")) == ["passwd"]
    }

    private func kind(_ work: () throws(FileFault) -> Void) -> FileFault.Kind? {
        do throws(FileFault) {
            try work()
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("a file is not replaced at the target of a link of the service")
    func replacement() throws {
        try link("service/latches.sealed", to: victim)
        let file = FileReplacement(path: directory.file("service/latches.sealed"))
        #expect(kind { () throws(FileFault) in try file.write([1]) } == .exposed)
        #expect(try !file.create([1]))
        try link("service/inner", to: directory.file("etc"))
        let inner = FileReplacement(path: directory.file("service/inner/passwd"))
        #expect(kind { () throws(FileFault) in try inner.write([1]) } == .exposed)
        #expect(kind { () throws(FileFault) in _ = try inner.create([1]) } == .exposed)
        #expect(kind { () throws(FileFault) in try inner.remove() } == .exposed)
        try directory.write("", to: "etc/.passwd.tmp-1")
        try directory.age("etc/.passwd.tmp-1", seconds: 3600)
        inner.removeLeftovers()
        file.removeLeftovers()
        try FileSystem.remove(directory.file("etc/.passwd.tmp-1"))
        // The name itself is the service's.
        #expect(try file.remove())
        #expect(try isUntouched())
    }

    @Test("a directory that is swapped for a link while a file is written does not lead the file elsewhere")
    func swapped() throws {
        let inner = directory.file("service/inner")
        try FileSystem.makeDirectory(inner, mode: 0o700)
        var replacement = FileReplacement(path: "\(inner)/passwd")
        let (moved, system) = (directory.file("service/moved"), directory.file("etc"))
        replacement.synchronize = { _ in
            if unsafe rename(inner, moved) == 0 { _ = unsafe symlink(system, inner) }
            return 0
        }
        try replacement.write([1])
        #expect(try directory.read("service/moved/passwd") == [1])
        #expect(try isUntouched())
    }

    @Test("a file that is swapped for a link while a keyring is changed stays as it is, and the change is refused")
    func swappedKeyring() throws {
        let (path, passphrase) = (directory.file("service/keyring"), Secret("correct horse"))
        let file = KeyringFile(administered: path)
        try file.create(passphrase: passphrase, cost: .minimum)
        #expect(try FileSystem.status(of: path).st_uid == Self.user)
        let error = #expect(throws: KeyringError.self) {
            try file.update(passphrase: passphrase) { (keyring) throws(KeyringError) in
                try keyring.set(Secret("1"), for: "a", "pin")
                try? link("service/keyring", to: victim)
            }
        }
        #expect(error?.kind == .exposed && error?.reason.contains(path) == true)
        #expect(throws: KeyringError.self) { try file.open(passphrase: passphrase) }
        #expect(try isUntouched())
    }

    @Test("a lock is neither a link, a second name of a file of the system, nor a pipe, and none changes its owner")
    func locks() throws {
        let path = directory.file("service/lock")
        for place in 0..<3 {
            unsafe unlink(path)
            switch place {
            case 0: try link("service/lock", to: victim)
            case 1: try FileSystem.link(victim, to: path)
            default: try #require(unsafe mkfifo(path, 0o600) == 0)
            }
            #expect(kind { () throws(FileFault) in try FileLock(path).release() } == (place == 2 ? .failed : .exposed))
            #expect(kind { () throws(FileFault) in _ = try ByteLock.acquire(path, at: 1) } != nil)
        }
        #expect(try isUntouched())
        unsafe unlink(path)
        try FileLock(path).release()
        #expect(try FileSystem.status(of: path).st_uid == Self.user)
    }

    @Test("a private file is not read through a link, from a second name of a file of the system, or from a pipe")
    func reading() throws {
        func kind(_ name: String) -> FileFault.Kind? {
            let file = PrivateFile(path: directory.file(name), trust: .ownerOnlyOrDirectory)
            return self.kind { () throws(FileFault) in _ = try file.read() }
        }
        try link("service/key", to: victim)
        #expect(kind("service/key") == .exposed)
        #expect(throws: FileFault.self) { try PrivateFile(path: directory.file("service/key")).identity() }
        try FileSystem.link(victim, to: directory.file("service/second"))
        #expect(kind("service/second") == .exposed)
        try #require(unsafe mkfifo(directory.file("service/pipe"), 0o600) == 0)
        #expect(kind("service/pipe") == .failed)
        #expect(kind("service/gone") == .missing)
    }

    @Test("no directory is made where a link of the service leads")
    func directories() throws {
        try link("service/state", to: directory.file("etc"))
        let made = PrivateDirectory(path: directory.file("service/state/a/b"))
        #expect(kind { () throws(FileFault) in try made.ensure() } == .exposed)
        try PrivateDirectory(path: directory.file("service/c/d")).ensure()
        #expect(try isUntouched())
    }

    @Test("sealed state goes where the directory is, and not where a link of the service leads")
    func state() async throws {
        try link("service/latches.sealed", to: victim)
        let store = try SealedStateStore(directory: directory.file("service"))
        await #expect(throws: StateError.self) { try await store.save(Secret("x"), as: "latches") }
        await #expect(throws: StateError.self) { try await store.load("latches") }
        try await store.save(Secret("x"), as: "other")
        for name in ["other.sealed", "key"] {
            #expect(try FileSystem.status(of: directory.file("service/\(name)")).st_uid == Self.user, "\(name)")
        }
        #expect(try isUntouched())
    }

    @Test("a second name of a file of the system is no entry of a process")
    func entries() throws {
        try FileSystem.link(victim, to: directory.file("service/process-1-2"))
        #expect(try StateProcess.running(in: directory.file("service")).isEmpty)
        do {
            let entry = try StateProcess(in: directory.file("service"), socket: nil)
            withExtendedLifetime(entry) {}
        }
        #expect(DirectoryListing.names(in: directory.file("service")) == ["process-1-2"])
        try link("service/inner", to: directory.file("etc"))
        #expect(throws: SystemError(code: ELOOP)) {
            try StateProcess(in: directory.file("service/inner"), socket: nil)
        }
        #expect(try isUntouched())
    }

    @Test("a question for a person is asked in the directory that was opened, and leaves nothing")
    func questions() throws {
        try link("service/agents", to: directory.file("etc"))
        for (name, isOpened) in [("service/agents", false), ("service", true)] {
            let agents = PasswordAgents(directories: [directory.file(name)], limit: .milliseconds(1))
            let failure = #expect(throws: AskFailure.self) { try agents.ask("the pin of x", id: "countersign:x:pin") }
            #expect(failure?.reason.contains("in time") == isOpened, "\(failure?.reason ?? "")")
        }
        #expect(DirectoryListing.names(in: directory.file("service")) == ["agents"])
        #expect(try isUntouched())
    }
}
