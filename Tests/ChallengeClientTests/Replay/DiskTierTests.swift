// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Synchronization
import Testing

@Suite("The body kept on disk")
struct DiskTierTests {
    private let piece = ReplayBuffer.recentLimit
    private let disk = FakeDisk()

    /// Returns bytes of the pattern, which differ by position.
    private func bytes(_ range: Range<Int>) -> [UInt8] { Array(pattern[range]) }

    /// Streams a body of `count` bytes through a transfer that keeps up.
    private func stream(_ body: TestBody, count: Int, piece: Int = 65_536) -> [UInt8] {
        var taken: [UInt8] = []
        var sent = 0
        while sent < count {
            let end = min(sent + piece, count)
            body.append(bytes(sent..<end))
            sent = end
            while !body.wantsMore, !body.isBroken { taken += body.take(65_536) }
        }
        body.complete()
        while !body.isExhausted, !body.isBroken { taken += body.take(65_536) }
        return taken
    }

    @Test("a body that fits into memory opens no file")
    func short() {
        let (spool, _) = disk.spool()
        let body = TestBody(memory: 65_536, disk: 1_000_000, spool: spool)
        #expect(stream(body, count: 65_536) == bytes(0..<65_536))
        #expect(body.rewind())
        #expect(disk.state.withLock { $0.opened } == 0)
        body.discard()
        #expect(spool.figures.bytesFromMemory == 0)
    }

    @Test("a body longer than the window can be replayed as often as needed", arguments: [1, 1000, 65_536])
    func long(memory: Int) {
        let (spool, _) = disk.spool()
        let body = TestBody(memory: memory, disk: 1_000_000, spool: spool)
        let whole = bytes(0..<1_000_000)
        #expect(stream(body, count: whole.count, piece: 30_000) == whole)
        for _ in 0..<2 {
            #expect(body.rewind())
            var again: [UInt8] = []
            while !body.isExhausted, !body.isBroken { again += body.take(50_000) }
            #expect(again == whole)
        }
        #expect(disk.state.withLock { $0.opened } == 1)
        #expect(body.heldInMemory <= memory + piece)
        body.discard()
        #expect(disk.state.withLock { $0.files } == 0)
        #expect(spool.figures.bytesInUse == 0)
        #expect(spool.figures.bytesFromMemory + spool.figures.bytesFromDisk == 2_000_000)
        #expect(spool.figures.bytesFromDisk >= 2 * (1_000_000 - memory - piece))
    }

    @Test("in a body that flows, each byte is written once, in large pieces, and none is read back")
    func economy() {
        // Pieces as they come over the loopback interface, and larger ones.
        for arrival in [1400, 40_000, 65_536] {
            let (spool, _) = disk.spool()
            let body = TestBody(memory: 65_536, disk: 4_000_000, spool: spool)
            // Any read would fail.
            disk.state.withLock {
                $0.isUnreadable = true
                $0.writes = 0
            }
            #expect(stream(body, count: 2_000_000, piece: arrival) == bytes(0..<2_000_000))
            #expect(disk.state.withLock { $0.writes } <= 2_000_000 / (piece - 65_536) + 1)
        }
    }

    @Test("a body that is accepted before a piece has come together opens no file, and nothing is written later")
    func accepted() {
        let (spool, _) = disk.spool()
        let body = TestBody(memory: 65_536, disk: 4_000_000, spool: spool)
        #expect(stream(body, count: 65_536 + piece) == bytes(0..<65_536 + piece))
        #expect(body.canReplay)
        let open = TestBody(memory: 65_536, disk: 4_000_000, spool: spool)
        var taken: [UInt8] = []
        for start in stride(from: 0, to: 2_000_000, by: 50_000) {
            if start == 250_000 { open.stopKeeping() }
            open.append(bytes(start..<start + 50_000))
            taken += open.take(65_536)
        }
        #expect(taken == bytes(0..<2_000_000))
        #expect(disk.state.withLock { $0.opened } == 0)
    }

    @Test("a body of exactly both tiers is kept, one of a byte more is not")
    func bothTiers() {
        for excess in [0, 1] {
            let (spool, _) = disk.spool()
            let body = TestBody(memory: 1000, disk: 1_000_000, spool: spool)
            #expect(stream(body, count: 1_001_000 + excess).count == 1_001_000 + excess)
            #expect(body.canReplay == (excess == 0))
            #expect(body.rewind() == (excess == 0))
            // A body that cannot be replayed takes no space.
            #expect(disk.state.withLock { $0.files } == 1 - excess)
        }
    }

    @Test("a disk that fills up in the middle costs the replay and nothing else", arguments: [0, 70_000, 300_000])
    func fillsUp(room: Int) {
        let (spool, told) = disk.spool(now: { 100_000 })
        disk.state.withLock { $0.room = room }
        let body = TestBody(memory: 65_536, disk: 4_000_000, spool: spool)
        #expect(stream(body, count: 1_000_000) == bytes(0..<1_000_000))
        #expect(!body.canReplay)
        #expect(disk.state.withLock { $0.files } == 0)
        #expect(spool.figures.bytesInUse == 0)
        #expect(told.all == [.writing(28)])
        #expect(body.heldInMemory <= 2 * 65_536)
    }

    @Test("a disk that fills up while the body is read from the file again loses nothing of it")
    func fillsUpDuringReplay() {
        let (spool, _) = disk.spool()
        let body = TestBody(memory: 1000, disk: 4_000_000, spool: spool)
        var sent = 0
        while sent < 500_000 {
            body.append(bytes(sent..<sent + 50_000))
            sent += 50_000
            _ = body.take(65_536)
        }
        #expect(body.rewind())
        disk.state.withLock { $0.isFull = true }
        var again: [UInt8] = []
        while again.count < 1_000_000, !body.isBroken {
            while body.wantsMore, sent < 1_000_000 {
                body.append(bytes(sent..<sent + 50_000))
                sent += 50_000
            }
            again += body.take(20_000)
        }
        #expect(again == bytes(0..<1_000_000))
        #expect(!body.canReplay)
    }

    @Test("a file that cannot be read back breaks the body, and asks for no more of it")
    func unreadable() {
        let (spool, told) = disk.spool(now: { 100_000 })
        let body = TestBody(memory: 1000, disk: 4_000_000, spool: spool)
        for start in stride(from: 0, to: 500_000, by: 50_000) {
            body.append(bytes(start..<start + 50_000))
            _ = body.take(65_536)
        }
        #expect(body.rewind())
        disk.state.withLock { $0.isUnreadable = true }
        #expect(body.take(65_536) == bytes(0..<1000))
        #expect(body.take(65_536) == [])
        #expect(body.isBroken && !body.wantsMore && !body.isExhausted && !body.rewind())
        #expect(told.all == [.reading(5)])
    }

    @Test("once nothing will be sent again, the file goes as soon as the transfer has it")
    func stopKeeping() {
        let (spool, _) = disk.spool()
        let body = TestBody(memory: 1000, disk: 4_000_000, spool: spool)
        _ = stream(body, count: 500_000)
        #expect(body.rewind())
        var again = body.take(100_000)
        body.stopKeeping()
        #expect(disk.state.withLock { $0.files } == 1)
        while !body.isExhausted, !body.isBroken { again += body.take(10_000) }
        #expect(again == bytes(0..<500_000))
        #expect(disk.state.withLock { $0.files } == 0)
        #expect(!body.rewind())
    }

    @Test("without a spool there is no disk tier")
    func noSpool() {
        let body = TestBody(memory: 1000, disk: 4_000_000)
        #expect(stream(body, count: 500_000) == bytes(0..<500_000))
        #expect(!body.canReplay)
    }
}

/// Two million bytes, which differ by position.
private let pattern = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
