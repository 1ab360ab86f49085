// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc
import Synchronization
import Testing

@Suite("The disk tier of all exchanges")
struct ReplaySpoolTests {
    private let disk = FakeDisk()
    private let clock = Clock()

    private final class Clock: Sendable {
        private let milliseconds = Atomic<Int64>(1_000_000)
        var now: Int64 { milliseconds.load(ordering: .relaxed) }
        func advance(by milliseconds: Int64) { self.milliseconds.wrappingAdd(milliseconds, ordering: .relaxed) }
    }

    private func spool(limit: Int = .max) -> (ReplaySpool, FakeDisk.Told) {
        let clock = clock
        return disk.spool(limit: limit, now: { clock.now })
    }

    private static let piece = ReplayBuffer.recentLimit

    /// Returns a body that was sent completely, and of which `count` bytes (whole pieces) go to disk.
    private func body(_ spool: ReplaySpool, onDisk count: Int) -> TestBody {
        let body = TestBody(memory: 0, disk: 100_000_000, spool: spool)
        var left = count + ReplayBuffer.window
        while left > 0 {
            let piece = min(left, 65_536)
            body.append([UInt8](repeating: 7, count: piece))
            _ = body.take(65_536)
            left -= piece
        }
        return body
    }

    @Test("bodies share one budget, and bytes released by one are available to another")
    func shared() {
        let (spool, told) = spool(limit: 400_000)
        var first: TestBody? = body(spool, onDisk: Self.piece)
        #expect(first?.canReplay == true)
        #expect(spool.figures.bytesInUse == Self.piece)
        #expect(spool.room == 400_000 - Self.piece)
        #expect(!body(spool, onDisk: Self.piece).canReplay)
        #expect(told.all == [.budget(400_000)])
        // The second body's share was released.
        #expect(spool.figures.bytesInUse == Self.piece)
        first = nil
        #expect(spool.figures.bytesInUse == 0)
        #expect(body(spool, onDisk: Self.piece).canReplay)
    }

    @Test("a changed limit of the spool applies at once, and existing bodies stay")
    func limit() {
        let (spool, _) = spool(limit: 1_000_000)
        let first = body(spool, onDisk: 600_000)
        spool.limit = 500_000
        #expect(spool.room == 0)
        #expect(!body(spool, onDisk: Self.piece).canReplay)
        #expect(first.rewind())
    }

    @Test("workers that spool at once never exceed the limit, and release everything in the end")
    func atOnce() async {
        let (spool, _) = spool(limit: 2_000_000)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<20 {
                        _ = body(spool, onDisk: 700_000)
                        #expect(spool.room >= 0)
                    }
                }
            }
        }
        #expect(spool.figures.bytesInUse == 0)
    }

    @Test("trouble of the spool is reported once, and its end after half a minute without trouble")
    func told() {
        let (spool, told) = spool()
        disk.state.withLock { $0.isFull = true }
        for _ in 0..<5 {
            #expect(!body(spool, onDisk: Self.piece).canReplay)
            clock.advance(by: 1_000)
        }
        #expect(told.all == [.writing(28)])
        disk.state.withLock { $0.isFull = false }
        #expect(body(spool, onDisk: Self.piece).canReplay)
        #expect(told.all.count == 1)
        clock.advance(by: 30_000)
        #expect(body(spool, onDisk: Self.piece).canReplay)
        #expect(told.all == [.writing(28), nil])
        #expect(body(spool, onDisk: Self.piece).canReplay)
        #expect(told.all.count == 2)
    }

    @Test("another kind of trouble is reported if the first report was a while ago")
    func anotherKind() {
        let (spool, told) = spool()
        disk.state.withLock { $0.isFull = true }
        _ = body(spool, onDisk: Self.piece)
        disk.state.withLock { $0.isMissing = true }
        _ = body(spool, onDisk: Self.piece)
        #expect(told.all == [.writing(28)])
        clock.advance(by: 30_000)
        _ = body(spool, onDisk: Self.piece)
        #expect(told.all == [.writing(28), .opening(2)])
    }

    @Test("after a file system error no room is planned for a second")
    func pause() {
        let (spool, _) = spool(limit: 500_000)
        disk.state.withLock { $0.isMissing = true }
        #expect(spool.room == 500_000)
        _ = body(spool, onDisk: Self.piece)
        #expect(spool.room == 0)
        clock.advance(by: 1_000)
        #expect(spool.room == 500_000)
    }

    @Test(
        "each trouble of the spool says what happened and what to do",
        arguments: [
            (ReplayTrouble.budget(7), "`limits.replay`"), (.opening(2), "No such file or directory"),
            (.opening(2), "$RUNTIME_DIRECTORY"), (.writing(28), "No space left on device"), (.reading(5), "error"),
        ])
    func reasons(trouble: ReplayTrouble, part: String) {
        #expect(trouble.reason.contains(part))
    }
}

@Suite("Files without a name")
final class UnnamedFileTests {
    private let directory: String

    init() throws {
        directory = "/tmp/countersign-replay-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        unsafe try #require(mkdir(directory, 0o700) == 0)
    }

    deinit {
        for name in names { unsafe unlink("\(directory)/\(name)") }
        unsafe rmdir(directory)
    }

    private var names: [String] {
        guard let listing = unsafe opendir(directory) else { return [] }
        defer { unsafe closedir(listing) }
        var names: [String] = []
        while let entry = unsafe readdir(listing) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    private func target(ofLink path: String) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { space in
            guard let start = space.baseAddress else { return "" }
            let count = unsafe readlink(path, start, space.count)
            return unsafe String(decoding: space.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    private func write(_ bytes: [UInt8], to file: UnnamedFile, at offset: Int) throws {
        try unsafe bytes.withUnsafeBytes { try unsafe file.write($0, at: offset) }
    }

    private func read(_ count: Int, of file: UnnamedFile, at offset: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(into: $0, at: offset) }
        return bytes
    }

    @Test("an unnamed file is read back at any offset, and never has a name", arguments: [false, true])
    func roundTrip(isNamed: Bool) throws {
        let file = try UnnamedFile(directory: directory, isNamed: isNamed)
        #expect(names == [])
        try write([1, 2, 3], to: file, at: 0)
        try write([4, 5], to: file, at: 3)
        #expect(try read(5, of: file, at: 0) == [1, 2, 3, 4, 5])
        #expect(try read(2, of: file, at: 2) == [3, 4])
        #expect(throws: ReplayFileError(EIO)) { try self.read(3, of: file, at: 3) }
    }

    @Test("an unnamed file is readable by its owner only", arguments: [false, true])
    func mode(isNamed: Bool) throws {
        let file = try UnnamedFile(directory: directory, isNamed: isNamed)
        let modes = (0..<4096).compactMap { number -> mode_t? in
            // `DIRECTORY/#123 (deleted)`.
            guard target(ofLink: "/proc/self/fd/\(number)").hasPrefix(directory + "/") else { return nil }
            var state = stat()
            return unsafe fstat(Int32(number), &state) == 0 ? state.st_mode & 0o7777 : nil
        }
        #expect(modes == [0o600])
        withExtendedLifetime(file) {}
    }

    @Test("a file left by a crash is removed, and a link with its name is not followed")
    func leftBehind() throws {
        let name = "\(directory)/.countersign-replay"
        let other = "\(directory)/other"
        close(unsafe open(other, O_CREAT | O_WRONLY, 0o600))
        #expect(unsafe symlink(other, name) == 0)
        let file = try UnnamedFile(directory: directory, isNamed: true)
        try write([1], to: file, at: 0)
        #expect(names == ["other"])
        var state = stat()
        #expect(unsafe stat(other, &state) == 0 && state.st_size == 0)
    }

    @Test("a missing directory is made, one whose parent is missing is an error")
    func missing() throws {
        unsafe rmdir(directory)
        _ = try UnnamedFile(directory: directory)
        #expect(throws: ReplayFileError(ENOENT)) { try UnnamedFile(directory: directory + "/a/b") }
        close(unsafe open("\(directory)/file", O_CREAT | O_WRONLY, 0o600))
        #expect(throws: ReplayFileError(ENOTDIR)) { try UnnamedFile(directory: directory + "/file") }
    }

    @Test("a file system is left an eighth of its room", .enabled(if: geteuid() == 0), arguments: [1, 16])
    func full(size: Int) throws {
        // In some containers not even root may mount; then the test has nothing to do.
        guard unsafe mount("none", directory, "tmpfs", 0, "size=\(size)m") == 0 else { return }
        defer { unsafe umount2(directory, Int32(MNT_DETACH)) }
        let file = try UnnamedFile(directory: directory)
        let piece = [UInt8](repeating: 1, count: 65_536)
        var count = 0
        let error = #expect(throws: ReplayFileError.self) {
            while count < 32 * size {
                try self.write(piece, to: file, at: count * piece.count)
                count += 1
            }
        }
        #expect(error == ReplayFileError(ENOSPC))
        #expect(count == 14 * size)
        #expect(try read(piece.count, of: file, at: (14 * size - 1) * piece.count) == piece)
    }
}
