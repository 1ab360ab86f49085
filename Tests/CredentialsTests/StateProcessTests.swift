// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import System
import Testing

@testable import Credentials

@Suite("Processes that use a state directory")
struct StateProcessTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test("an entry shows process and admin socket while its lock is held, and is removed afterwards")
    func entries() throws {
        // As another process has made it.
        let path = directory.file("process-1-2")
        try FileSystem.write(Array("/run/x/admin.sock".utf8), to: path, mode: 0o600)
        try FileSystem.write([], to: directory.file("process-3-4"), mode: 0o600)
        try FileSystem.write([], to: directory.file("latches.sealed"), mode: 0o600)
        do {
            let holder = try Descriptor(opening: path, O_RDONLY)
            _ = flock(holder.number, LOCK_EX)
            let running = try StateProcess.running(in: directory.path)
            #expect(running.map(\.process) == [1] && running.map(\.socket) == ["/run/x/admin.sock"])
            #expect(!FileSystem.allows(directory.file("process-3-4"), F_OK), "the entry of an ended process stays")
            _ = flock(holder.number, LOCK_UN)
        }
        #expect(try StateProcess.running(in: directory.path).isEmpty && !FileSystem.allows(path, F_OK))
        #expect(FileSystem.allows(directory.file("latches.sealed"), F_OK))
    }

    @Test("a link in place of an entry is not followed")
    func link() throws {
        let target = directory.file("target")
        try FileSystem.write([1], to: target, mode: 0o600)
        unsafe symlink(target, directory.file("process-5-6"))
        #expect(try StateProcess.running(in: directory.path).isEmpty)
        #expect(FileSystem.allows(target, F_OK))
    }

    @Test("an entry or a directory that cannot be read is an error with its path: its process may be running")
    func unreadable() throws {
        #expect(try StateProcess.running(in: directory.file("nothing")).isEmpty, "no process has made the directory")
        try FileSystem.write([], to: directory.file("file"), mode: 0o600)
        let error = #expect(throws: StateError.self) { try StateProcess.running(in: directory.file("file")) }
        #expect(error?.reason.contains(directory.file("file")) == true)
        // A locked entry whose content cannot be read: reading a directory fails with EISDIR.
        let path = directory.file("process-1-2")
        try FileSystem.makeDirectory(path, mode: 0o700)
        let holder = try Descriptor(opening: path, O_RDONLY)
        _ = flock(holder.number, LOCK_EX)
        let unread = #expect(throws: StateError.self) { try StateProcess.running(in: directory.path) }
        #expect(unread?.reason.contains(path) == true)
    }

    @Test("the own entry has the socket, is locked, and ends with its owner")
    func own() throws {
        func names() -> [String] {
            (DirectoryListing.names(in: directory.path) ?? []).filter { $0.hasPrefix("process-") }
        }
        do {
            let entry = try StateProcess(in: directory.path, socket: "/run/admin.sock")
            #expect(names().count == 1)
            let path = directory.file(names().first ?? "")
            #expect(try FileSystem.contents(of: path, limit: 100) == Array("/run/admin.sock".utf8))
            let other = try Descriptor(opening: path, O_RDONLY)
            #expect(flock(other.number, LOCK_EX | LOCK_NB) == -1)
            #expect(try StateProcess.running(in: directory.path).isEmpty, "a process is told of itself")
            withExtendedLifetime(entry) {}
        }
        #expect(names().isEmpty)
    }
}
