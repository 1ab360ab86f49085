// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// A request's body between caller and transfer, held from its beginning for a replay.
///
/// The first bytes stay in memory. Bytes after them wait in memory until they form a large piece, which is written to a
/// file: in a steadily flowing body each byte is written once and read back only for a replay, and a body that is
/// accepted before a piece has come together is not written at all. Bytes beyond both tiers are streamed: sent bytes
/// are dropped, and the body can no longer be replayed. The same happens if no file is available. Memory use never
/// exceeds `tiers.memory` and `recentLimit`.
package struct ReplayBuffer: ~Copyable {
    /// The limit of unsent body accepted from the caller, in bytes.
    package static let window = 64 * 1024
    /// The limit of bytes waiting in memory to be written: with a window unsent, pieces have three quarters of that or
    /// more.
    package static let recentLimit = 256 * 1024

    private var tiers: ReplayTiers
    private var spool: ReplaySpool?
    /// The first bytes, `tiers.memory` at most.
    private var kept = ByteQueue()
    /// The bytes after `kept`.
    private var file: SpooledBody?
    private var fileCount = 0
    /// The bytes after `file`; the only ones if nothing is held for a replay.
    private var recent = ByteQueue()
    /// The number of held bytes that the running transfer has taken.
    private var taken = 0
    /// The number of held bytes that earlier transfers had taken: reading below is a replay.
    private var furthest = 0
    /// `furthest`, while the body is read without a transfer.
    private var sentBefore = 0
    /// True if new bytes are still held for a replay.
    private var isKeeping: Bool
    /// True if the running transfer sends the body again, or the rest of it.
    private var isReplay = false
    /// The bytes taken by transfers that sent the body again, by source; `stream` came fresh from the caller.
    private var replayed = (memory: 0, disk: 0, stream: 0)

    /// True if the first byte is still held.
    package private(set) var canReplay = true
    /// True if the caller has sent all of the body.
    package private(set) var isComplete: Bool
    /// True if an unsent part is lost: its file could not be read back.
    package private(set) var isBroken = false

    /// Creates a buffer for a new body; `isEmpty` for a request without one. Without a `spool`, the body is held in
    /// memory only.
    package init(tiers: ReplayTiers, spool: ReplaySpool? = nil, isEmpty: Bool) {
        self.tiers = tiers
        self.spool = spool
        isComplete = isEmpty
        isKeeping = true
    }

    /// Begins with another body, as `init` does. Reuses the memory of a small last one.
    package mutating func reset(tiers: ReplayTiers, spool: ReplaySpool?, isEmpty: Bool) {
        discard()
        self.tiers = tiers
        self.spool = spool
        isComplete = isEmpty
        isKeeping = true
        canReplay = true
        isBroken = false
    }

    /// Releases everything at the end of the exchange, including file and budget share.
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

    /// The number of held bytes, taken ones included.
    private var held: Int { kept.count + fileCount + recent.count }

    /// The number of held bytes in memory.
    package var heldInMemory: Int { kept.count + recent.count }

    /// True if more is wanted from the caller now: the back-pressure towards the caller.
    package var wantsMore: Bool { !isComplete && !isBroken && held - taken < Self.window }

    /// True if the transfer has taken everything received and more is to come.
    package var isDrained: Bool { !isComplete && held == taken }

    /// True if the transfer has taken the whole body.
    package var isExhausted: Bool { isComplete && held == taken && !isBroken }

    // MARK: In

    /// Appends `data` from the caller.
    package mutating func append(_ data: Span<UInt8>) {
        if isKeeping, data.count > tiers.total - held { stopKeeping() }
        var used = 0
        if isKeeping, kept.count < tiers.memory, fileCount == 0, recent.isEmpty {
            used = min(tiers.memory - kept.count, data.count)
            // For all but small bodies, memory is reserved for the whole tier and not doubled beyond it.
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

    /// Marks the body as complete.
    package mutating func complete() { isComplete = true }

    /// Ends holding for a replay: from here on only untaken bytes are held.
    package mutating func stopKeeping() {
        isKeeping = false
        dropTaken()
    }

    /// Makes room in memory for `count` bytes after those that wait there.
    ///
    /// If there are too many, the oldest are moved to the file: bytes already taken, which are read only for a replay,
    /// and others only as far as necessary.
    private mutating func makeRoom(for count: Int) {
        let excess = recent.count + count - Self.recentLimit
        guard excess > 0 else {
            // For all but short bodies, memory is reserved for the largest piece and not doubled beyond it.
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

    /// Copies the next bytes into `buffer`, and returns their number.
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

    /// Reads as `read` does, but no further than the end of the next tier.
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

    /// Reads as `read` does, into an array of at most `count` bytes.
    package mutating func readBytes(upTo count: Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let read = unsafe buffer.withUnsafeMutableBytes { unsafe self.read(into: $0) }
        buffer.removeSubrange(read...)
        return buffer
    }

    /// Starts reading from the first byte without a transfer. Returns false if that is no longer held.
    package mutating func beginReading() -> Bool {
        guard rewind() else { return false }
        // Bytes read now do not count as replayed.
        sentBefore = furthest
        furthest = 0
        isReplay = false
        return true
    }

    /// Ends the reading started by `beginReading`.
    package mutating func endReading() {
        furthest = sentBefore
        isReplay = furthest > 0
        taken = 0
    }

    /// Restarts at the first byte for the next transfer. Returns false if that is no longer held.
    package mutating func rewind() -> Bool {
        guard canReplay else { return false }
        furthest = max(furthest, taken)
        isReplay = furthest > 0
        taken = 0
        return true
    }

    /// Releases taken bytes as far as that is cheap: the first tiers only as a whole.
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

    /// Releases the first tiers.
    private mutating func release() {
        kept.removeAll(keepingCapacity: 8_192)
        fileCount = 0
        if file != nil { file = nil }
    }
}

extension ByteQueue {
    /// Copies as many bytes as fit into `buffer`, from `start` on, and returns their number.
    fileprivate func copy(from start: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, self.count - start)
        guard count > 0, start >= 0 else { return 0 }
        unsafe withUnsafeBytes { source in
            unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[start..<start + count]))
        }
        return count
    }
}
