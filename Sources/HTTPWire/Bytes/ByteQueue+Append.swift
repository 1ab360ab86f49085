// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What can be appended to a queue besides single bytes.
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

    /// Appends the bytes of a buffer, unless more than `limit` would wait then. Returns whether it did.
    public mutating func append(_ bytes: UnsafeRawBufferPointer, upTo limit: Int) -> Bool {
        guard bytes.count <= limit - count else { return false }
        unsafe append(bytes)
        return true
    }

    /// Appends a literal, whose length the compiler knows: a few stores, and no call.
    @inlinable
    @inline(__always)
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
