// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Synchronization

/// Replay buffer as a copyable object, for `#expect`.
final class TestBody {
    private var buffer: ReplayBuffer

    init(memory: Int, disk: Int = 0, spool: ReplaySpool? = nil, isEmpty: Bool = false) {
        buffer = ReplayBuffer(tiers: ReplayTiers(memory: memory, disk: disk), spool: spool, isEmpty: isEmpty)
    }

    var canReplay: Bool { buffer.canReplay }
    var heldInMemory: Int { buffer.heldInMemory }
    var isBroken: Bool { buffer.isBroken }
    var isComplete: Bool { buffer.isComplete }
    var isDrained: Bool { buffer.isDrained }
    var isExhausted: Bool { buffer.isExhausted }
    var wantsMore: Bool { buffer.wantsMore }

    func append(_ bytes: [UInt8]) { buffer.append(bytes.span) }
    func complete() { buffer.complete() }
    func discard() { buffer.discard() }
    func rewind() -> Bool { buffer.rewind() }
    func stopKeeping() { buffer.stopKeeping() }

    /// Returns the bytes that a transfer gets if it asks for `count`.
    func take(_ count: Int) -> [UInt8] {
        unsafe withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { space in
            let count = unsafe buffer.read(into: space)
            return unsafe Array(space.prefix(count))
        }
    }
}

/// Files in memory that fail on request.
final class FakeDisk: Sendable {
    struct State {
        var isFull = false
        var isMissing = false
        var isUnreadable = false
        /// Free space, in bytes.
        var room = Int.max
        var files = 0
        var opened = 0
        var writes = 0
    }

    let state = Mutex(State())

    func makeFile() throws(ReplayFileError) -> any ReplayFile {
        let isMissing = state.withLock { state in
            if !state.isMissing {
                state.files += 1
                state.opened += 1
            }
            return state.isMissing
        }
        if isMissing { throw ReplayFileError(2) }
        return FakeFile(disk: self)
    }

    /// Returns a spool of such files, and the changes of state that it reports.
    func spool(limit: Int = .max, now: @escaping @Sendable () -> Int64 = { 0 }) -> (ReplaySpool, Told) {
        let told = Told()
        let spool = ReplaySpool(
            limit: limit, now: now, onChange: { told.append($0) },
            opening: { () throws(ReplayFileError) in try self.makeFile() })
        return (spool, told)
    }

    /// Changes of state that a spool has reported.
    final class Told: Sendable {
        private let troubles = Mutex<[ReplayTrouble?]>([])

        var all: [ReplayTrouble?] { troubles.withLock { $0 } }

        func append(_ trouble: ReplayTrouble?) { troubles.withLock { $0.append(trouble) } }
    }
}

private final class FakeFile: ReplayFile {
    private let disk: FakeDisk
    private var bytes: [UInt8] = []

    init(disk: FakeDisk) { self.disk = disk }

    deinit { disk.state.withLock { $0.files -= 1 } }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(ReplayFileError) {
        let fits = disk.state.withLock { state in
            state.writes += 1
            guard !state.isFull, bytes.count <= state.room else { return false }
            state.room -= bytes.count
            return true
        }
        guard fits, offset == self.bytes.count else { throw ReplayFileError(28) }
        unsafe self.bytes.append(contentsOf: bytes)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ReplayFileError) {
        guard !disk.state.withLock({ $0.isUnreadable }), offset + buffer.count <= bytes.count else {
            throw ReplayFileError(5)
        }
        unsafe buffer.copyBytes(from: bytes[offset..<offset + buffer.count])
    }
}
