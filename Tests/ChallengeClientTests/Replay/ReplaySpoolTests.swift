// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
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

    /// A body of which `count` bytes, whole pieces of them, are to go to disk, and all were taken.
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
        // Its own share came back with it.
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
