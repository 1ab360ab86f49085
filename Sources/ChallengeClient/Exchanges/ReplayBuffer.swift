// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The request's body on its way from the caller to a transfer, kept from its beginning so that it can be sent again.
///
/// Up to `limit` bytes are kept. What goes beyond is streamed: sent bytes are dropped, and the body can no longer be
/// replayed. Never holds more than `limit`, one window and what one read of the socket brings.
package struct ReplayBuffer: ~Copyable {
    /// How much unsent body is taken from the caller ahead of the transfer, in bytes.
    package static let window = 64 * 1024

    /// How many bytes are kept for a replay.
    package private(set) var limit: Int
    private var bytes = ByteQueue()
    /// How many of `bytes` the running transfer has taken.
    private var taken = 0
    /// Whether the first byte is still held.
    package private(set) var canReplay = true
    /// Whether the caller has sent all of it.
    package private(set) var isComplete: Bool

    /// A buffer for a body that begins now; `isEmpty` for a request without one.
    package init(limit: Int, isEmpty: Bool) {
        self.limit = limit
        isComplete = isEmpty
    }

    /// Begins with another body, as `init` does, on the memory of the last one where that was a small one.
    package mutating func reset(limit: Int, isEmpty: Bool) {
        bytes.removeAll(keepingCapacity: 8_192)
        self.limit = limit
        taken = 0
        canReplay = true
        isComplete = isEmpty
    }

    /// Whether more is wanted from the caller now: the back-pressure towards it.
    package var wantsMore: Bool { !isComplete && bytes.count - taken < Self.window }

    /// Whether the transfer has taken all that there is and more is to come.
    package var isDrained: Bool { !isComplete && bytes.count == taken }

    /// Whether the transfer has taken the whole body.
    package var isExhausted: Bool { isComplete && bytes.count == taken }

    /// The caller sent `data`.
    package mutating func append(_ data: Span<UInt8>) {
        bytes.append(data)
        if bytes.count > limit { dropTaken() }
    }

    /// The caller has sent the last of it.
    package mutating func complete() { isComplete = true }

    /// Copies what comes next into `buffer`, and returns how much that was.
    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let position = taken
        let count = min(buffer.count, bytes.count - position)
        guard count > 0 else { return 0 }
        unsafe bytes.withUnsafeBytes { source in
            unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[position..<position + count]))
        }
        taken += count
        if bytes.count > limit || !canReplay { dropTaken() }
        return count
    }

    /// Begins again from the first byte, for the next transfer. False where that is no longer held.
    package mutating func rewind() -> Bool {
        guard canReplay else { return false }
        taken = 0
        return true
    }

    private mutating func dropTaken() {
        guard taken > 0 else { return }
        bytes.consume(taken)
        taken = 0
        canReplay = false
    }
}
