// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import HTTPWire
import Synchronization
import TestSupport
import Testing

@Suite("The body kept for a replay")
struct ReplayBufferTests {
    private let window = ReplayBuffer.window

    @Test("taken bytes are there again after a rewind, within the limit")
    func replay() {
        let buffer = TestBody(memory: 10)
        buffer.append([1, 2, 3])
        #expect(buffer.take(2) == [1, 2])
        #expect(buffer.rewind())
        buffer.append([4])
        buffer.complete()
        #expect(buffer.take(10) == [1, 2, 3, 4])
        #expect(buffer.isExhausted)
        #expect(buffer.rewind())
        #expect(!buffer.isExhausted)
        #expect(buffer.take(10) == [1, 2, 3, 4])
    }

    @Test("a body of exactly the limit is kept, one of a byte more is not once it was taken")
    func limit() {
        let exact = TestBody(memory: 4)
        exact.append([1, 2, 3, 4])
        #expect(exact.take(4).count == 4)
        #expect(exact.rewind())
        let longer = TestBody(memory: 4)
        longer.append([1, 2, 3, 4, 5])
        #expect(longer.canReplay)
        #expect(longer.rewind())
        #expect(longer.take(1) == [1])
        #expect(!longer.canReplay)
        #expect(!longer.rewind())
        #expect(longer.take(9) == [2, 3, 4, 5])
    }

    @Test("a body that grows beyond the limit after a rewind is not lost before it is taken again")
    func growsAfterRewind() {
        let buffer = TestBody(memory: 4)
        buffer.append([1, 2, 3])
        #expect(buffer.take(3) == [1, 2, 3])
        #expect(buffer.rewind())
        buffer.append([4, 5, 6])
        #expect(buffer.canReplay)
        #expect(buffer.take(9) == [1, 2, 3, 4, 5, 6])
    }

    @Test("an empty body is complete from the beginning")
    func empty() {
        let buffer = TestBody(memory: 0, isEmpty: true)
        #expect(buffer.isComplete && buffer.isExhausted && !buffer.wantsMore)
        #expect(buffer.take(4) == [])
        #expect(buffer.rewind())
    }

    @Test("drained is not exhausted: more may come")
    func drained() {
        let buffer = TestBody(memory: 0)
        #expect(buffer.isDrained && buffer.wantsMore && !buffer.isExhausted)
        buffer.append([1])
        #expect(!buffer.isDrained)
        _ = buffer.take(1)
        #expect(buffer.isDrained)
        buffer.complete()
        #expect(buffer.isExhausted && !buffer.isDrained && !buffer.wantsMore)
    }

    @Test("a window of unsent body stops the caller, and taking some lets it go on")
    func pressure() {
        let buffer = TestBody(memory: 0)
        buffer.append([UInt8](repeating: 1, count: window - 1))
        #expect(buffer.wantsMore)
        buffer.append([1])
        #expect(!buffer.wantsMore)
        _ = buffer.take(1)
        #expect(buffer.wantsMore)
    }

    @Test(
        "a long body streams through in order, with no more held than limit, window and one piece",
        arguments: [0, 1000, 64 * 1024, 200_000])
    func streaming(limit: Int) {
        let buffer = TestBody(memory: limit)
        var random = SplitMix(state: 7)
        var (sent, received, held) = (0, 0, 0)
        let total = 600_000
        while received < total {
            while buffer.wantsMore, sent < total {
                let count = min(Int.random(in: 1...65_536, using: &random), total - sent)
                buffer.append((0..<count).map { UInt8(truncatingIfNeeded: (sent + $0) &* 31) })
                sent += count
                held = max(held, sent - (buffer.canReplay ? 0 : received))
            }
            let piece = buffer.take(Int.random(in: 1...40_000, using: &random))
            let isRight = piece.enumerated().allSatisfy { $1 == UInt8(truncatingIfNeeded: (received + $0) &* 31) }
            #expect(isRight)
            received += piece.count
        }
        #expect(held <= limit + window + 65_536)
        #expect(!buffer.canReplay)
    }
}

@Suite("The body kept for a replay, in any order of events")
struct ReplayBufferModelTests {
    @Test("every transfer gets the same bytes, and memory stays within its bound", arguments: 0..<40)
    func anyOrder(seed: UInt64) {
        var random = SplitMix(state: seed)
        let disk = FakeDisk()
        let (spool, _) = disk.spool(limit: Bool.random(using: &random) ? .max : 300_000)
        let memory = [0, 1, 1000, 65_536, 100_000].randomElement(using: &random) ?? 0
        let room = [0, 1, 100_000, 500_000, 2_000_000].randomElement(using: &random) ?? 0
        let body = TestBody(memory: memory, disk: room, spool: spool)
        let whole = noise.prefix(Int.random(in: 0...noise.count, using: &random))
        let mostPiece = [10, 3_000, 65_536].randomElement(using: &random) ?? 1
        let wholeIsKept = whole.count <= memory + room
        var (sent, taken, furthest, lost) = (0, 0, 0, false)
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<50 where body.wantsMore && sent < whole.count:
                let count = min(Int.random(in: 1...mostPiece, using: &random), whole.count - sent)
                body.append(Array(whole[sent..<sent + count]))
                sent += count
                if sent == whole.count { body.complete() }
            case 50..<95:
                let piece = body.take(Int.random(in: 1...65_536, using: &random))
                #expect(taken + piece.count <= sent)
                #expect(piece[...] == whole[taken..<min(taken + piece.count, sent)])
                #expect(!piece.isEmpty || taken == sent)
                taken += piece.count
                furthest = max(furthest, taken)
            case 95, 96:
                let canReplay = body.canReplay
                #expect(body.rewind() == canReplay)
                if canReplay { taken = 0 }
            case 97 where Int.random(in: 0..<40, using: &random) == 0:
                disk.state.withLock { $0.isFull = true }
            case 98 where Int.random(in: 0..<40, using: &random) == 0:
                body.stopKeeping()
                lost = true
            default:
                break
            }
            #expect(body.heldInMemory <= memory + ReplayBuffer.recentLimit)
            if lost, taken > 0 { #expect(!body.canReplay) }
            if furthest == 0 { #expect(body.canReplay) }
            if body.canReplay, furthest > 0 { #expect(sent <= memory + room) }
            if spool.limit == .max, wholeIsKept, !lost, !disk.state.withLock({ $0.isFull }) { #expect(body.canReplay) }
        }
        body.discard()
        #expect(disk.state.withLock { $0.files } == 0)
        #expect(spool.figures.bytesInUse == 0)
    }
}

private let noise = {
    var random = SplitMix(state: 1)
    return (0..<150_000).flatMap { _ in
        let value: UInt64 = random.next()
        return (0..<8).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
}()
