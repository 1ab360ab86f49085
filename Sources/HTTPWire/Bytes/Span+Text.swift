// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension Span<UInt8> {
    /// The bytes in `range`, copied. Positions beyond the end are left out.
    public func copy(_ range: ByteRange) -> [UInt8] {
        let end = Swift.min(range.end, count)
        let start = Swift.min(range.start, end)
        return unsafe [UInt8](unsafeUninitializedCapacity: end - start) { buffer, filled in
            for index in start..<end { unsafe buffer[index - start] = self[index] }
            filled = end - start
        }
    }

    /// The bytes in `range` as text; invalid UTF-8 becomes U+FFFD, and long runs of combining marks are broken by it, so that whoever
    /// compares the text is not kept for long. For slow paths: it allocates.
    public func text(_ range: ByteRange) -> String {
        String(decoding: copy(range), as: UTF8.self).withShortRuns
    }

    /// Returns whether the bytes in `range` are those of `literal`, which must be in lower case, without regard to the case of
    /// ASCII letters (RFC 9110 section 5.1: names; section 5.6.2: most tokens).
    public func matches(_ range: ByteRange, ignoringCase literal: StaticString) -> Bool {
        guard range.count == literal.utf8CodeUnitCount, range.end <= count, literal.hasPointerRepresentation else {
            return false
        }
        let (start, length) = (range.start, range.count)
        let expected = unsafe UnsafeRawPointer(literal.utf8Start)
        var index = 0
        // The range was checked above, and the literal is as long. Eight at a time, the last eight perhaps a second time.
        while length >= 8, index < length {
            let position = Swift.min(index, length &- 8)
            let word = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: start &+ position, as: UInt64.self)
            let wanted = unsafe expected.loadUnaligned(fromByteOffset: position, as: UInt64.self)
            guard (word ^ wanted) & ~wanted.capitalBits == 0 else { return false }
            index = position &+ 8
        }
        while index < length {
            let wanted = unsafe expected.load(fromByteOffset: index, as: UInt8.self)
            guard unsafe self[unchecked: start &+ index].lowercased == wanted else { return false }
            index &+= 1
        }
        return true
    }

    /// Returns whether the bytes in `range` are exactly those of `literal`.
    public func matches(_ range: ByteRange, exactly literal: StaticString) -> Bool {
        guard range.count == literal.utf8CodeUnitCount, range.end <= count, literal.hasPointerRepresentation else {
            return false
        }
        let (start, length) = (range.start, range.count)
        let expected = unsafe literal.utf8Start
        var index = 0
        while index < length, unsafe self[unchecked: start &+ index] == expected[index] { index &+= 1 }
        return index == length
    }

    /// Returns whether two ranges of the same bytes spell the same without regard to the case of ASCII letters.
    public func matches(_ one: ByteRange, ignoringCase other: ByteRange) -> Bool {
        guard one.count == other.count, one.end <= count, other.end <= count else { return false }
        var index = 0
        while index < one.count {
            guard self[one.start + index].lowercased == self[other.start + index].lowercased else { return false }
            index += 1
        }
        return true
    }

    /// Returns whether the bytes of `literal` stand anywhere, exactly.
    public func contains(_ literal: StaticString) -> Bool {
        let length = literal.utf8CodeUnitCount
        guard length > 0, length <= count, literal.hasPointerRepresentation else { return length == 0 }
        let first = unsafe literal.utf8Start.pointee
        for start in 0...count - length where unsafe self[unchecked: start] == first {
            if matches(ByteRange(start: start, end: start + length), exactly: literal) { return true }
        }
        return false
    }

    /// The number that the bytes in `range` spell in decimal digits; nil where they do not, or it does not fit
    /// (RFC 9110 section 5.6: `1*DIGIT`, as in `Max-Forwards` and `Retry-After`).
    public func decimal(_ range: ByteRange) -> UInt64? {
        guard !range.isEmpty, range.end <= count else { return nil }
        var value: UInt64 = 0
        for index in range.bounds {
            guard self[index].isDigit else { return nil }
            let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, larger) = product.addingReportingOverflow(UInt64(self[index] &- 0x30))
            guard !tooLarge, !larger else { return nil }
            value = sum
        }
        return value
    }
}

extension UInt64 {
    /// The bit in which capital and small letters differ, in each of the eight bytes that is a small ASCII letter; none may be above 0x7F.
    fileprivate var capitalBits: UInt64 {
        // The sums set the high bit of a byte from `a` on, and of one beyond `z`; they do not reach the next byte.
        let fromA = self &+ 0x1F1F_1F1F_1F1F_1F1F
        let beyondZ = self &+ 0x0505_0505_0505_0505
        return (fromA & ~beyondZ & 0x8080_8080_8080_8080) >> 2
    }
}
