// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What can be appended to a queue besides single bytes.
extension ByteQueue {
    /// Appends the bytes of a span.
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

    /// Appends the bytes of a buffer, unless more than `limit` would wait then. Returns whether it did.
    public mutating func append(_ bytes: UnsafeRawBufferPointer, upTo limit: Int) -> Bool {
        guard bytes.count <= limit - count else { return false }
        unsafe append(bytes)
        return true
    }

    /// Appends a literal.
    public mutating func append(_ text: StaticString) {
        guard text.hasPointerRepresentation else {
            append(String(describing: text))
            return
        }
        unsafe append(from: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Appends the UTF-8 of a text.
    @_disfavoredOverload
    public mutating func append(_ text: String) {
        append(text.utf8)
    }

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
        var divisor: UInt64 = 1
        while value / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(truncatingIfNeeded: 48 + value / divisor % 10))
            divisor /= 10
        }
    }

    /// Appends a number in lower-case hexadecimal digits.
    public mutating func append(hexadecimal value: UInt64) {
        var shift = max(0, (64 - value.leadingZeroBitCount + 3) / 4 - 1) * 4
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: value >> UInt64(shift)) & 15
            append(digit < 10 ? 48 + digit : 87 + digit)
            shift -= 4
        }
    }
}
