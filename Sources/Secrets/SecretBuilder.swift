// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Builder of a secret from pieces, such as `username:password`, without leaving copies.
///
/// Memory is overwritten when it is outgrown or released.
@safe
public struct SecretBuilder: ~Copyable {
    private var start: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    /// Number of bytes so far.
    public private(set) var count = 0

    /// Creates an empty builder with an initial capacity.
    public init(capacity: Int = 64) {
        self.capacity = max(capacity, 1)
        unsafe start = SecretMemory.allocate(self.capacity)
    }

    deinit {
        unsafe SecretMemory.release(start, capacity)
    }

    /// Appends the bytes of a secret.
    public mutating func append(_ secret: Secret) {
        secret.withBytes { append($0) }
    }

    /// Appends bytes that are not secret, or whose copies the caller erases.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        reserve(bytes.count)
        for byte in bytes { append(byte) }
    }

    /// Appends the bytes of a span, whose copies the caller erases.
    public mutating func append(_ bytes: Span<UInt8>) {
        reserve(bytes.count)
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe (start + count).update(from: source, count: bytes.count)
        }
        count += bytes.count
    }

    /// Appends the UTF-8 bytes of `text`.
    public mutating func append(_ text: String) {
        append(text.utf8.span)
    }

    /// Appends one byte.
    public mutating func append(_ byte: UInt8) {
        reserve(1)
        put(byte)
    }

    /// Removes all bytes but keeps the memory.
    public mutating func removeAll() { count = 0 }

    /// Passes the bytes so far to `body`; the span must not escape.
    public func withBytes<Result, Failure>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = unsafe Span<UInt8>(_unsafeElements: UnsafeBufferPointer(start: start, count: count))
        return try body(bytes)
    }

    /// Returns the finished secret.
    public consuming func finish() -> Secret {
        unsafe Secret(UnsafeBufferPointer(start: start, count: count))
    }

    private mutating func put(_ byte: UInt8) {
        unsafe start[count] = byte
        count += 1
    }

    /// Reserves `more` bytes, and overwrites the former memory.
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
    /// Returns the bytes of all parts, concatenated.
    public static func joining(_ parts: [Secret]) -> Secret {
        var builder = SecretBuilder(capacity: parts.reduce(0) { $0 + $1.count })
        for part in parts { builder.append(part) }
        return builder.finish()
    }
}
