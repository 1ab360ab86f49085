// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import System
import TestSupport
import Testing

@testable import Credentials

@Suite("State thread")
struct StateThreadTests {
    private let notes = Notes()

    /// Starts a job that occupies the thread until the returned signal is set.
    private func hold(_ thread: StateThread, _ name: String = "held") -> Signal {
        let (begun, end) = (Signal(), Signal())
        let isQueued = thread.enqueue { [notes] in
            begun.set()
            end.wait()
            notes.add(name)
        }
        #expect(isQueued)
        begun.wait()
        return end
    }

    @Test("a state thread runs jobs in order, one at a time, and only itself")
    func order() async throws {
        let thread = try StateThread()
        let end = hold(thread)
        for index in 0..<20 { _ = thread.enqueue { [notes] in notes.add("\(index)") } }
        #expect(notes.all.isEmpty)
        end.set()
        let isThere = try await thread.run { StateThread.isCurrent }
        #expect(isThere)
        #expect(!StateThread.isCurrent)
        #expect(notes.all == ["held"] + (0..<20).map { "\($0)" })
    }

    @Test("the error of a state thread job is thrown to the caller that waits")
    func failure() async throws {
        let thread = try StateThread()
        let failing: @Sendable () throws(StateError) -> Int = { () throws(StateError) in
            throw StateError(reason: "no disk")
        }
        await #expect(throws: StateError(reason: "no disk")) { try await thread.run(failing) }
        #expect(throws: StateError(reason: "no disk")) { try thread.wait(for: failing) }
        let value = try thread.wait { 7 }
        #expect(value == 7)
    }

    @Test("a state thread with a blocked disk queues a limited number of jobs, then fails with the reason")
    func full() async throws {
        let thread = try StateThread(limit: 2)
        let end = hold(thread)
        let isQueued = (0..<3).map { index in thread.enqueue { [notes] in if index == 2 { notes.add("beyond") } } }
        #expect(isQueued == [true, true, false])
        await #expect(throws: StateThread.isFull) { try await thread.run {} }
        #expect(throws: StateThread.isFull) { try thread.wait {} }
        end.set()
        #expect(thread.finish(within: .seconds(300)))
        #expect(notes.all == ["held"])
        let value = try await thread.run { 7 }
        #expect(value == 7)
    }

    @Test("finishing a state thread waits for all jobs, including those that jobs enqueue")
    func finished() throws {
        let thread = try StateThread()
        let end = hold(thread)
        _ = thread.enqueue { [notes] in
            notes.add("batch")
            _ = thread.enqueue { notes.add("next batch") }
        }
        end.set()
        #expect(thread.finish(within: .seconds(300)))
        #expect(notes.all == ["held", "batch", "next batch"])
    }

    @Test("finishing a state thread does not exceed its limit")
    func bounded() throws {
        let thread = try StateThread()
        let end = hold(thread)
        #expect(!thread.finish(within: .zero))
        end.set()
        #expect(thread.finish(within: .seconds(300)))
    }

    @Test("a state thread without an owner runs its queued jobs before it ends")
    func abandoned() throws {
        let done = Signal()
        var thread: StateThread? = try StateThread()
        let end = thread.map { hold($0) }
        _ = thread?.enqueue { done.set() }
        thread = nil
        end?.set()
        #expect(done.wait())
    }

    @Test("a state directory whose thread cannot start is an error at start")
    func noThread() throws {
        let directory = try TemporaryDirectory()
        let refuse: ThreadStart = { _ throws(ThreadError) in throw ThreadError(code: EAGAIN) }
        let error = #expect(throws: StateError.self) {
            try SealedStateStore(directory: directory.file("state"), start: refuse)
        }
        #expect(error?.reason.contains("no thread could be started for the state directory") == true)
        #expect(error?.reason.contains("TasksMax=") == true)
    }

    @Test("a blocked disk delays only the callers that wait for the state thread")
    func hung() async throws {
        let directory = try TemporaryDirectory()
        let store = try SealedStateStore(directory: directory.file("state"))
        let end = hold(store.thread)
        let saved = Signal()
        let task = Task {
            try await store.save(Secret("value"), as: "client")
            saved.set()
        }
        // The caller's thread is free: another store goes on meanwhile.
        let other = try SealedStateStore(directory: directory.file("other"))
        try await other.save(Secret("value"), as: "client")
        #expect(!saved.isSet)
        end.set()
        try await task.value
        #expect(saved.isSet && store.finish(within: .seconds(300)))
        #expect(try await store.load("client") == Secret("value"))
    }

    #if DEBUG
        @Test("a debug build stops if another thread uses a state file")
        func strayed() async {
            await #expect(processExitsWith: .failure) {
                let directory = try TemporaryDirectory()
                let store = try SealedStateStore(directory: directory.file("state"))
                try store.files.save(Secret("value"), as: "client")
            }
        }
    #endif
}

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
