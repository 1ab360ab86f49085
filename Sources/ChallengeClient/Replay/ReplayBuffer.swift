// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The request's body on its way from the caller to a transfer, kept from its beginning so that it can be sent again.
///
/// Its first bytes stay in memory, those that follow wait there until they are a large piece, which is written to a file: in a body
/// that flows, each byte is written once there and read back only for a replay, and a body that is accepted before a piece has come
/// together is not written at all. What goes beyond both tiers is streamed: sent bytes are dropped, and the body can no longer
/// be replayed. The same happens if no file can be had. Never holds more in memory than `tiers.memory` and `recentLimit`.
package struct ReplayBuffer: ~Copyable {
    /// The most unsent body that is taken from the caller ahead of the transfer, in bytes.
    package static let window = 64 * 1024
    /// The most that waits in memory to be written, in bytes: with a window unsent, pieces have three quarters of that or more.
    package static let recentLimit = 256 * 1024

    private var tiers: ReplayTiers
    private var spool: ReplaySpool?
    /// The first bytes, `tiers.memory` at most.
    private var kept = ByteQueue()
    /// Those that follow `kept`.
    private var file: SpooledBody?
    private var fileCount = 0
    /// Those that follow `file`; the only ones where nothing is kept.
    private var recent = ByteQueue()
    /// How many of all these the running transfer has taken.
    private var taken = 0
    /// How many of them an earlier one had taken: below, reading is a replay.
    private var furthest = 0
    /// `furthest`, while all is read for no transfer.
    private var sentBefore = 0
    /// True if what comes is still kept.
    private var isKeeping: Bool
    /// True if the running transfer sends the body again, or what is left of it.
    private var isReplay = false
    /// How many bytes were taken by transfers that sent the body again: by where they were, and those that came fresh from the
    /// caller.
    private var replayed = (memory: 0, disk: 0, stream: 0)

    /// True if the first byte is still held.
    package private(set) var canReplay = true
    /// True if the caller has sent all of it.
    package private(set) var isComplete: Bool
    /// True if a part that no transfer has taken is lost: its file could not be read back.
    package private(set) var isBroken = false

    /// A buffer for a body that begins now; `isEmpty` for a request without one. Without a `spool` there is no disk tier.
    package init(tiers: ReplayTiers, spool: ReplaySpool? = nil, isEmpty: Bool) {
        self.tiers = tiers
        self.spool = spool
        isComplete = isEmpty
        isKeeping = true
    }

    /// Begins with another body, as `init` does, on the memory of the last one where that was a small one.
    package mutating func reset(tiers: ReplayTiers, spool: ReplaySpool?, isEmpty: Bool) {
        discard()
        self.tiers = tiers
        self.spool = spool
        isComplete = isEmpty
        isKeeping = true
        canReplay = true
        isBroken = false
    }

    /// Lets go of everything, its file and its share of the budget too: the exchange is over.
    package mutating func discard() {
        if replayed != (0, 0, 0) {
            spool?.figures.replayed(memory: replayed.memory, disk: replayed.disk, stream: replayed.stream)
            replayed = (0, 0, 0)
        }
        isReplay = false
        release()
        recent.removeAll(keepingCapacity: 8_192)
        taken = 0
        furthest = 0
        isKeeping = false
        canReplay = false
    }

    /// How many bytes are held, taken ones included.
    private var held: Int { kept.count + fileCount + recent.count }

    /// How many of them in memory.
    package var heldInMemory: Int { kept.count + recent.count }

    /// True if more is wanted from the caller now: the back-pressure towards it.
    package var wantsMore: Bool { !isComplete && !isBroken && held - taken < Self.window }

    /// True if the transfer has taken all that there is and more is to come.
    package var isDrained: Bool { !isComplete && held == taken }

    /// True if the transfer has taken the whole body.
    package var isExhausted: Bool { isComplete && held == taken && !isBroken }

    // MARK: In

    /// The caller sent `data`.
    package mutating func append(_ data: Span<UInt8>) {
        if isKeeping, data.count > tiers.total - held { stopKeeping() }
        var used = 0
        if isKeeping, kept.count < tiers.memory, fileCount == 0, recent.isEmpty {
            used = min(tiers.memory - kept.count, data.count)
            // Once it is no small body, its memory is made for the whole tier and not doubled beyond it.
            if kept.count + used > 8_192 {
                kept.reserve(min(tiers.memory, max(Self.window, kept.count + used)) - kept.count)
            }
            kept.append(data.extracting(0..<used))
        }
        let rest = data.count - used
        guard rest > 0 else { return }
        if isKeeping { makeRoom(for: rest) }
        recent.append(data.extracting(used..<data.count))
    }

    /// The caller has sent the last of it.
    package mutating func complete() { isComplete = true }

    /// It will not be sent again: from here on only what no transfer has taken is held.
    package mutating func stopKeeping() {
        isKeeping = false
        dropTaken()
    }

    /// Makes room in memory for `count` bytes after those that wait there. If there are too many, the oldest go to the file: those
    /// that the transfer has, which nobody will read before a replay, and others only where too much of them would pile up.
    private mutating func makeRoom(for count: Int) {
        let excess = recent.count + count - Self.recentLimit
        guard excess > 0 else {
            // Once it is no short body, its memory is made for the largest piece and not doubled beyond it.
            if recent.count + count > Self.window, recent.capacity < Self.recentLimit {
                recent.reserve(Self.recentLimit - recent.count)
            }
            return
        }
        let moved = min(recent.count, max(excess, taken - kept.count - fileCount))
        if file == nil { file = spool?.makeFile() }
        let isWritten = recent.withSpan { bytes in
            unsafe bytes.extracting(0..<moved).withUnsafeBytes { unsafe file?.write($0, at: fileCount) ?? false }
        }
        guard isWritten else {
            stopKeeping()
            return
        }
        recent.consume(moved)
        fileCount += moved
    }

    // MARK: Out

    /// Copies what comes next into `buffer`, and returns how much that was.
    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var count = 0
        while count < buffer.count, taken < held, !isBroken {
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let next = unsafe readPart(into: room)
            guard next > 0 else { break }
            count += next
        }
        if !isKeeping { dropTaken() }
        return count
    }

    /// As `read`, but no further than the end of the tier that comes next.
    private mutating func readPart(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let again = max(0, furthest - taken)
        var count: Int
        if taken < kept.count {
            count = unsafe kept.copy(from: taken, into: buffer)
            replayed.memory += min(count, again)
        } else if taken < kept.count + fileCount {
            let offset = taken - kept.count
            count = min(buffer.count, fileCount - offset)
            let part = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            guard unsafe file?.read(into: part, at: offset) == true else {
                isBroken = true
                canReplay = false
                return 0
            }
            replayed.disk += min(count, again)
        } else {
            count = unsafe recent.copy(from: taken - kept.count - fileCount, into: buffer)
            replayed.memory += min(count, again)
        }
        if isReplay, count > again { replayed.stream += count - again }
        taken += count
        return count
    }

    /// As `read`, into an array of at most `count` bytes.
    package mutating func readBytes(upTo count: Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let read = unsafe buffer.withUnsafeMutableBytes { unsafe self.read(into: $0) }
        buffer.removeSubrange(read...)
        return buffer
    }

    /// Begins to read from the first byte, for no transfer. False where that is no longer held.
    package mutating func beginReading() -> Bool {
        guard rewind() else { return false }
        // What is read now is not sent again by that.
        sentBefore = furthest
        furthest = 0
        isReplay = false
        return true
    }

    /// What `beginReading` began is over.
    package mutating func endReading() {
        furthest = sentBefore
        isReplay = furthest > 0
        taken = 0
    }

    /// Begins again from the first byte, for the next transfer. False where that is no longer held.
    package mutating func rewind() -> Bool {
        guard canReplay else { return false }
        furthest = max(furthest, taken)
        isReplay = furthest > 0
        taken = 0
        return true
    }

    /// Forgets what the transfer has, as far as that comes free: the first tiers only as a whole.
    private mutating func dropTaken() {
        guard taken > 0 else { return }
        canReplay = false
        let before = kept.count + fileCount
        guard taken >= before else { return }
        recent.consume(taken - before)
        if before > 0 { release() }
        furthest = max(0, furthest - taken)
        taken = 0
    }

    /// Gives up the first tiers.
    private mutating func release() {
        kept.removeAll(keepingCapacity: 8_192)
        fileCount = 0
        if file != nil { file = nil }
    }
}

extension ByteQueue {
    /// Copies as many bytes as fit into `buffer`, from the one at `start` on, and returns how many.
    fileprivate func copy(from start: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, self.count - start)
        guard count > 0, start >= 0 else { return 0 }
        unsafe withUnsafeBytes { source in
            unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[start..<start + count]))
        }
        return count
    }
}
