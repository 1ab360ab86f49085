// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Synchronization
import TestSupport
import Testing

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
