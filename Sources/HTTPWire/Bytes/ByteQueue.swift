// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#if canImport(Glibc)
    internal import Glibc
#endif

/// A growing first-in, first-out queue of bytes on memory of its own: what sockets are read into and written from.
///
/// Nothing is allocated before the first byte. Consuming everything resets the queue to the start of its memory, so that
/// a connection that answers what it reads never moves a byte.
///
/// The `@inlinable` ones are called some tens of times for each request, from other targets.
@safe
public struct ByteQueue: ~Copyable {
    @usableFromInline var storage: UnsafeMutableRawPointer?
    @usableFromInline var start = 0
    @usableFromInline var end = 0
    @usableFromInline var allocated = 0

    /// An empty queue with room for `capacity` bytes; none is allocated for zero.
    public init(capacity: Int = 0) {
        if capacity > 0 { relocate(capacity: capacity) }
    }

    deinit {
        unsafe storage?.deallocate()
    }

    /// The number of bytes waiting.
    @inlinable
    public var count: Int { end - start }

    /// True if no byte waits.
    @inlinable
    public var isEmpty: Bool { start == end }

    /// The number of bytes of memory held.
    public var capacity: Int { allocated }

    /// Lends the waiting bytes to `body`; they must not be kept beyond it.
    @inlinable
    public func withSpan<Result, Failure>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let storage = unsafe storage else { return try body(Span()) }
        let pointer = unsafe UnsafePointer((storage + start).assumingMemoryBound(to: UInt8.self))
        let bytes = unsafe Span<UInt8>(_unsafeElements: UnsafeBufferPointer(start: pointer, count: count))
        return try body(bytes)
    }

    /// Lends the waiting bytes as a buffer, for a system call; it must not be kept beyond `body`.
    @inlinable
    public func withUnsafeBytes<Result, Failure>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let storage = unsafe storage else { return try unsafe body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        return try unsafe body(UnsafeRawBufferPointer(start: storage + start, count: count))
    }

    /// Lends at least `minimum` bytes of free space (and all there is) to `body`, which fills it from the front and
    /// returns how many bytes it wrote; those are appended. A count outside the space is brought into it.
    ///
    /// - Returns: the number of bytes appended.
    @discardableResult
    @inlinable
    public mutating func withUnsafeFreeSpace<Failure>(
        minimum: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        makeRoom(for: max(minimum, 1))
        guard let storage = unsafe storage else { return 0 }
        let space = unsafe UnsafeMutableRawBufferPointer(start: storage + end, count: allocated - end)
        let written = try unsafe body(space)
        let committed = min(max(written, 0), space.count)
        end += committed
        return committed
    }

    /// Forgets the first `count` bytes (all of them, if there are fewer).
    @inlinable
    public mutating func consume(_ count: Int) {
        guard count > 0 else { return }
        guard count < self.count else {
            start = 0
            end = 0
            return
        }
        start += count
    }

    /// All that it holds, copied.
    public func copy() -> [UInt8] { withSpan { $0.copy(ByteRange(start: 0, end: $0.count)) } }

    /// Forgets every byte, and the memory too where it is more than `maximum` bytes.
    @inlinable
    public mutating func removeAll(keepingCapacity maximum: Int = .max) {
        start = 0
        end = 0
        guard allocated > maximum else { return }
        unsafe storage?.deallocate()
        unsafe storage = nil
        allocated = 0
    }

    /// Forgets every byte, waiting or consumed, overwrites the memory and gives it back: for what held a secret.
    public mutating func erase() {
        if let storage = unsafe storage { unsafe explicit_bzero(storage, allocated) }
        removeAll(keepingCapacity: 0)
    }

    /// The same, but keeps the memory where it is no more than `maximum` bytes.
    public mutating func wipe(keepingCapacity maximum: Int) {
        guard allocated <= maximum else { return erase() }
        if let storage = unsafe storage { unsafe explicit_bzero(storage, allocated) }
        removeAll()
    }

    /// Sees to it that `count` bytes fit behind the waiting ones without another allocation.
    public mutating func reserve(_ count: Int) {
        makeRoom(for: max(count, 0))
    }

    /// Appends what `count` bytes at `source` hold.
    @inlinable
    @inline(__always)
    mutating func append(from source: UnsafeRawPointer, count: Int) {
        makeRoom(for: count)
        guard let storage = unsafe storage else { return }
        unsafe (storage + end).copyMemory(from: source, byteCount: count)
        end += count
    }

    /// Appends one byte.
    @inlinable
    public mutating func append(_ byte: UInt8) {
        makeRoom(for: 1)
        guard let storage = unsafe storage else { return }
        unsafe storage.storeBytes(of: byte, toByteOffset: end, as: UInt8.self)
        end += 1
    }

    @inlinable
    mutating func makeRoom(for extra: Int) {
        if allocated - end < extra { makeRoomSlowly(for: extra) }
    }

    /// Compacts where that is enough and cheap, grows otherwise. Moving most of a large queue for the sake of a few bytes
    /// consumed would make a long stream quadratic: above 16 KiB a quarter of the memory must have come free.
    @inline(never)
    @usableFromInline
    mutating func makeRoomSlowly(for extra: Int) {
        let needed = count + extra
        if needed <= allocated, allocated <= 16_384 || start >= allocated / 4 {
            guard let storage = unsafe storage else { return }
            unsafe storage.copyMemory(from: storage + start, byteCount: count)
            end = count
            start = 0
        } else {
            relocate(capacity: max(needed, min(allocated * 2, allocated + 16_777_216), 256))
        }
    }

    private mutating func relocate(capacity: Int) {
        let rounded = (capacity + 255) & ~255
        let fresh = UnsafeMutableRawPointer.allocate(byteCount: rounded, alignment: 16)
        if let storage = unsafe storage {
            unsafe fresh.copyMemory(from: storage + start, byteCount: count)
            unsafe storage.deallocate()
        }
        unsafe storage = fresh
        allocated = rounded
        end = count
        start = 0
    }
}
