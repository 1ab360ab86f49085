// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Puts a secret together from pieces, `username:password` for example, without leaving copies behind: memory that it
/// grows out of is overwritten, and so is its own when it goes.
@safe
public struct SecretBuilder: ~Copyable {
    private var start: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    /// The number of bytes so far.
    public private(set) var count = 0

    /// An empty builder with room for `capacity` bytes; it grows beyond by itself.
    public init(capacity: Int = 64) {
        self.capacity = max(capacity, 1)
        unsafe start = SecretMemory.allocate(self.capacity)
    }

    deinit {
        unsafe SecretMemory.release(start, capacity)
    }

    /// Adds the bytes of a secret.
    public mutating func append(_ secret: Secret) {
        secret.withBytes { append($0) }
    }

    /// Adds bytes that are no secret by themselves, or whose copies are the caller's to forget.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        reserve(bytes.count)
        for byte in bytes { append(byte) }
    }

    /// Adds the bytes of a span, whose copies are the caller's to forget.
    public mutating func append(_ bytes: Span<UInt8>) {
        reserve(bytes.count)
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe (start + count).update(from: source, count: bytes.count)
        }
        count += bytes.count
    }

    /// Adds the UTF-8 bytes of `text`.
    public mutating func append(_ text: String) {
        append(text.utf8.span)
    }

    /// Adds one byte.
    public mutating func append(_ byte: UInt8) {
        reserve(1)
        put(byte)
    }

    /// Begins anew in the same memory.
    public mutating func removeAll() { count = 0 }

    /// Lends the bytes so far to `body`; they must not be kept beyond it.
    public func withBytes<Result, Failure>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = unsafe Span<UInt8>(_unsafeElements: UnsafeBufferPointer(start: start, count: count))
        return try body(bytes)
    }

    /// The secret that was put together.
    public consuming func finish() -> Secret {
        unsafe Secret(UnsafeBufferPointer(start: start, count: count))
    }

    private mutating func put(_ byte: UInt8) {
        unsafe start[count] = byte
        count += 1
    }

    /// Makes room for `more` bytes, and overwrites the memory that is left behind.
    private mutating func reserve(_ more: Int) {
        guard capacity - count < more else { return }
        let larger = max(capacity * 2, count + more)
        let moved = unsafe SecretMemory.allocate(larger)
        unsafe moved.update(from: start, count: count)
        unsafe SecretMemory.release(start, capacity)
        unsafe start = moved
        capacity = larger
    }
}

extension Secret {
    /// The bytes of all parts, one after the other.
    public static func joining(_ parts: [Secret]) -> Secret {
        var builder = SecretBuilder(capacity: parts.reduce(0) { $0 + $1.count })
        for part in parts { builder.append(part) }
        return builder.finish()
    }
}
