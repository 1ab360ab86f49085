// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#if canImport(Glibc)
    internal import Glibc
#endif

/// Growing first-in, first-out queue of bytes, for reading from and writing to sockets.
///
/// Allocates nothing before the first byte. Consuming everything resets the queue to the start of its memory, so a
/// connection that answers each request as it arrives never moves a byte.
///
/// Methods marked `@inlinable` are called dozens of times per request from other targets.
@safe
public struct ByteQueue: ~Copyable {
    @usableFromInline var storage: UnsafeMutableRawPointer?
    @usableFromInline var start = 0
    @usableFromInline var end = 0
    @usableFromInline var allocated = 0

    /// Creates an empty queue with room for `capacity` bytes; allocates nothing for zero.
    public init(capacity: Int = 0) {
        if capacity > 0 { relocate(capacity: capacity) }
    }

    deinit {
        unsafe storage?.deallocate()
    }

    /// Number of waiting bytes.
    @inlinable
    public var count: Int { end - start }

    /// True if no byte is waiting.
    @inlinable
    public var isEmpty: Bool { start == end }

    /// Number of bytes of allocated memory.
    public var capacity: Int { allocated }

    /// Passes the waiting bytes to `body`; the span must not escape.
    @inlinable
    public func withSpan<Result, Failure>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let storage = unsafe storage else { return try body(Span()) }
        let pointer = unsafe UnsafePointer((storage + start).assumingMemoryBound(to: UInt8.self))
        let bytes = unsafe Span<UInt8>(_unsafeElements: UnsafeBufferPointer(start: pointer, count: count))
        return try body(bytes)
    }

    /// Passes the waiting bytes to `body` as a buffer, for a system call; the buffer must not escape.
    @inlinable
    public func withUnsafeBytes<Result, Failure>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let storage = unsafe storage else { return try unsafe body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        return try unsafe body(UnsafeRawBufferPointer(start: storage + start, count: count))
    }

    /// Passes all free space, at least `minimum` bytes, to `body` and appends what was written.
    ///
    /// `body` fills the space from the front and returns the number of bytes written. A count outside the space is
    /// clamped.
    ///
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

    /// Removes the first `count` bytes, or all if there are fewer.
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

    /// Returns a copy of all waiting bytes.
    public func copy() -> [UInt8] { withSpan { $0.copy(ByteRange(start: 0, end: $0.count)) } }

    /// Removes every byte, and frees memory larger than `maximum` bytes.
    @inlinable
    public mutating func removeAll(keepingCapacity maximum: Int = .max) {
        start = 0
        end = 0
        guard allocated > maximum else { return }
        unsafe storage?.deallocate()
        unsafe storage = nil
        allocated = 0
    }

    /// Overwrites and frees the memory, for a queue that held a secret.
    public mutating func erase() {
        if let storage = unsafe storage { unsafe explicit_bzero(storage, allocated) }
        removeAll(keepingCapacity: 0)
    }

    /// Overwrites the memory, and frees memory larger than `maximum` bytes.
    public mutating func wipe(keepingCapacity maximum: Int) {
        guard allocated <= maximum else { return erase() }
        if let storage = unsafe storage { unsafe explicit_bzero(storage, allocated) }
        removeAll()
    }

    /// Reserves space for `count` more bytes, so that appending them allocates nothing.
    public mutating func reserve(_ count: Int) {
        makeRoom(for: max(count, 0))
    }

    /// Appends `count` bytes from `source`.
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

    /// Makes room by compacting if compacting is enough and cheap, by growing otherwise.
    ///
    /// Moving most of a large queue to reclaim a few consumed bytes would make a long stream quadratic: above 16 KiB, a
    /// quarter of the memory must be free.
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

/// Appending bytes, text and numbers.
extension ByteQueue {
    /// Appends the bytes of a span.
    @inlinable
    public mutating func append(_ bytes: Span<UInt8>) {
        unsafe bytes.withUnsafeBytes { source in
            guard let base = source.baseAddress else { return }
            unsafe append(from: base, count: source.count)
        }
    }

    /// Appends the bytes of a buffer.
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        unsafe append(from: base, count: bytes.count)
    }

    /// Appends the bytes of a buffer, and returns false if more than `limit` bytes would then be waiting.
    public mutating func append(_ bytes: UnsafeRawBufferPointer, upTo limit: Int) -> Bool {
        guard bytes.count <= limit - count else { return false }
        unsafe append(bytes)
        return true
    }

    /// Appends a literal, whose length the compiler knows: a few stores and no call.
    @inlinable
    @inline(__always)
    public mutating func append(_ text: StaticString) {
        guard text.hasPointerRepresentation else {
            append(String(describing: text))
            return
        }
        unsafe append(from: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Appends a text as UTF-8.
    @_disfavoredOverload
    public mutating func append(_ text: String) {
        append(text.utf8)
    }

    /// Appends the bytes of an array.
    @inlinable
    public mutating func append(_ bytes: [UInt8]) { append(bytes.span) }

    /// Appends the bytes of a collection.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        let copied: Void? = bytes.withContiguousStorageIfAvailable { buffer in
            unsafe append(UnsafeRawBufferPointer(buffer))
        }
        if copied == nil {
            for byte in bytes { append(byte) }
        }
    }

    /// Appends a number in decimal digits.
    public mutating func append(decimal value: UInt64) {
        var (digits, bound): (Int, UInt64) = (1, 10)
        // The greatest number has 20 digits.
        while digits < 20, value >= bound {
            digits += 1
            bound &*= 10
        }
        unsafe withUnsafeFreeSpace(minimum: digits) { room in
            var rest = value
            for index in stride(from: digits - 1, through: 0, by: -1) {
                unsafe room[index] = UInt8(truncatingIfNeeded: 48 + rest % 10)
                rest /= 10
            }
            return digits
        }
    }

    /// Appends a number in lowercase hexadecimal digits.
    public mutating func append(hexadecimal value: UInt64) {
        var shift = max(0, (64 - value.leadingZeroBitCount + 3) / 4 - 1) * 4
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: value >> UInt64(shift)) & 15
            append(digit < 10 ? 48 + digit : 87 + digit)
            shift -= 4
        }
    }
}
