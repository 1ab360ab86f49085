// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Synchronization
import System
import TestSupport
import Testing

@testable import Credentials

@Suite("Locks of logins in a state directory")
struct FileLoginLocksTests {
    private let directory: TemporaryDirectory
    private let failures = Notes()

    init() throws { directory = try TemporaryDirectory() }

    /// Returns the locks of one process; `refresh` reads its state again.
    private func process(
        refresh: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() }
    ) throws -> FileLoginLocks {
        let state = try SealedStateStore(directory: directory.file("state"))
        return FileLoginLocks(in: state, refresh: refresh) { [failures] in failures.add($0.reason) }
    }

    private func take(_ locks: FileLoginLocks, _ name: String) async -> LoginTurn? {
        guard case .taken(let turn) = await locks.lock(name) else { return nil }
        return turn
    }

    @Test("one process at a time has a lock; locks of other logins are free")
    func exclusive() async throws {
        let (first, second) = (try process(), try process())
        let turn = try #require(await take(first, "a"))
        #expect(await take(second, "a") == nil)
        #expect(await take(first, "a") == nil)
        let other = try #require(await take(second, "b"))
        turn.end()
        let next = try #require(await take(second, "a"))
        #expect(await take(first, "a") == nil)
        next.end()
        other.end()
        #expect(failures.all.isEmpty)
        #expect(try directory.mode(of: "state/login-locks") == 0o600)
        #expect(try directory.read("state/login-locks").isEmpty)
    }

    @Test("a lock whose turn is dropped, as at the end of a process, is free")
    func dropped() async throws {
        let (first, second) = (try process(), try process())
        var turn = await take(first, "a")
        #expect(turn != nil)
        #expect(await take(second, "a") == nil)
        turn = nil
        #expect(await take(second, "a") != nil)
    }

    @Test("the state is read after the lock is taken, and written before it is free")
    func order() async throws {
        let held = Mutex<[@Sendable () -> Void]>([])
        let first = try process { done in held.withLock { $0.append(done) } }
        let second = try process()
        let taking = Task { await take(first, "a") }
        #expect(await eventually { held.withLock { $0.count } == 1 })
        #expect(await take(second, "a") == nil)
        held.withLock { $0.removeFirst() }()
        let turn = try #require(await taking.value)
        turn.end()
        #expect(held.withLock { $0.count } == 1)
        #expect(await take(second, "a") == nil)
        held.withLock { $0.removeFirst() }()
        #expect(await take(second, "a") != nil)
    }

    @Test("if locking does not work, the login runs all the same, and the failure is reported once")
    func failing() async throws {
        let locks = try process()
        #expect(unsafe mkdir(directory.file("state/login-locks"), 0o700) == 0)
        for _ in 0..<3 { #expect(await take(locks, "a") != nil) }
        #expect(failures.all.count == 1 && failures.all[0].contains("login-locks"), "\(failures.all)")
        #expect(unsafe rmdir(directory.file("state/login-locks")) == 0)
        let held = await take(locks, "a")
        let second = try process()
        #expect(await take(second, "a") == nil)
        held?.end()
    }

    @Test("the file that root creates belongs to the directory's owner", .enabled(if: geteuid() == 0))
    func root() async throws {
        let locks = try process()
        #expect(unsafe chown(directory.file("state"), 65_534, 65_534) == 0)
        #expect(await take(locks, "a") != nil)
        #expect(try FileSystem.status(of: directory.file("state/login-locks")).st_uid == 65_534)
    }

    @Test("a name has the same byte in all builds, and two names have two")
    func offsets() {
        #expect(FileLoginLocks.offset(of: "login") == 0x4288_2135_0e96)
        #expect(Set((0..<10_000).map { FileLoginLocks.offset(of: "\($0)") }).count == 10_000)
    }
}
