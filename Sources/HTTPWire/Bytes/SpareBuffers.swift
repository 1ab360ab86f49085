// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Memory of queues that are empty now, for those that are filled next.
///
/// Between two requests a connection needs no memory for input. Without the spare memory, each request would allocate.
@safe
public struct SpareBuffers: ~Copyable {
    /// Number of bytes of each buffer. A queue of another capacity keeps its memory.
    private let size: Int
    /// Number of buffers that are kept.
    private let most: Int
    /// The buffer that is lent next. Its first bytes have the address of the one after it.
    private var first: UnsafeMutableRawPointer?
    /// Number of buffers in the store.
    public private(set) var count = 0

    /// Creates an empty store for at most `most` buffers of `size` bytes, a multiple of 256.
    public init(size: Int, most: Int) {
        (self.size, self.most) = (size, most)
    }

    deinit {
        var rest = unsafe first
        while let buffer = unsafe rest {
            unsafe rest = buffer.load(as: UnsafeMutableRawPointer?.self)
            unsafe buffer.deallocate()
        }
    }

    /// Gives a buffer to a queue without memory, if there is one.
    public mutating func lend(to queue: inout ByteQueue) {
        guard queue.allocated == 0, let buffer = unsafe first else { return }
        unsafe first = buffer.load(as: UnsafeMutableRawPointer?.self)
        count -= 1
        unsafe queue.storage = buffer
        queue.allocated = size
    }

    /// Takes the memory of an empty queue, or frees it if there is enough.
    public mutating func takeBack(from queue: inout ByteQueue) {
        guard queue.isEmpty, queue.allocated == size, let buffer = unsafe queue.storage else { return }
        guard count < most else { return queue.removeAll(keepingCapacity: 0) }
        unsafe buffer.storeBytes(of: first, as: UnsafeMutableRawPointer?.self)
        unsafe first = buffer
        count += 1
        unsafe queue.storage = nil
        (queue.start, queue.end, queue.allocated) = (0, 0, 0)
    }
}
