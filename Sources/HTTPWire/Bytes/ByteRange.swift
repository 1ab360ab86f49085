// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Range of positions in parsed bytes, half the size of `Range<Int>`.
///
/// Heads, and the bytes that a decoder examines in one step, are far shorter than 4 GiB; larger positions are clamped.
public struct ByteRange: Hashable, Sendable {
    @usableFromInline var lower: UInt32
    @usableFromInline var upper: UInt32

    /// Creates the range from `start` up to, but not including, `end`; empty if `end` precedes `start`.
    @inlinable
    @inline(__always)
    public init(start: Int, end: Int) {
        lower = UInt32(clamping: start)
        upper = max(lower, UInt32(clamping: end))
    }

    /// Empty range at position 0.
    @inlinable
    public static var empty: ByteRange { ByteRange(start: 0, end: 0) }

    /// First position.
    @inlinable
    public var start: Int { Int(lower) }

    /// Position after the last byte.
    @inlinable
    public var end: Int { Int(upper) }

    /// Number of bytes.
    @inlinable
    public var count: Int { Int(upper - lower) }

    /// True if the range is empty.
    @inlinable
    public var isEmpty: Bool { lower == upper }

    /// Range for the standard library: `bytes.extracting(range.bounds)` is the slice.
    @inlinable
    public var bounds: Range<Int> { start..<end }
}

extension Span<UInt8> {
    /// Returns a copy of the bytes in `range`; positions beyond the end are ignored.
    public func copy(_ range: ByteRange) -> [UInt8] {
        let end = Swift.min(range.end, count)
        let start = Swift.min(range.start, end)
        return unsafe [UInt8](unsafeUninitializedCapacity: end - start) { buffer, filled in
            for index in start..<end { unsafe buffer[index - start] = self[index] }
            filled = end - start
        }
    }

    /// Returns the bytes in `range` as text, with U+FFFD in place of invalid UTF-8.
    ///
    /// Long runs of combining marks are broken by U+FFFD too, so that comparing the text stays cheap. For slow paths:
    /// this allocates.
    public func text(_ range: ByteRange) -> String {
        String(decoding: copy(range), as: UTF8.self).withShortRuns
    }

    /// Returns true if `range` spells `literal`, ignoring ASCII case.
    ///
    /// `literal` must be in lower case. Field names and most tokens are compared this way (RFC 9110 §5.1 and §5.6.2).
    public func matches(_ range: ByteRange, ignoringCase literal: StaticString) -> Bool {
        guard range.count == literal.utf8CodeUnitCount, range.end <= count, literal.hasPointerRepresentation else {
            return false
        }
        let (start, length) = (range.start, range.count)
        let expected = unsafe UnsafeRawPointer(literal.utf8Start)
        var index = 0
        // The range was checked above, and the literal is as long. Eight at a time; the last eight may overlap.
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

    /// Returns true if `range` spells exactly `literal`.
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

    /// Returns true if two ranges spell the same text, ignoring ASCII case.
    public func matches(_ one: ByteRange, ignoringCase other: ByteRange) -> Bool {
        guard one.count == other.count, one.end <= count, other.end <= count else { return false }
        var index = 0
        while index < one.count {
            guard self[one.start + index].lowercased == self[other.start + index].lowercased else { return false }
            index += 1
        }
        return true
    }

    /// Returns true if `literal` occurs anywhere, exactly.
    public func contains(_ literal: StaticString) -> Bool {
        let length = literal.utf8CodeUnitCount
        guard length > 0, length <= count, literal.hasPointerRepresentation else { return length == 0 }
        let first = unsafe literal.utf8Start.pointee
        for start in 0...count - length where unsafe self[unchecked: start] == first {
            if matches(ByteRange(start: start, end: start + length), exactly: literal) { return true }
        }
        return false
    }

    /// Returns the decimal number in `range`, or nil if there is none or it does not fit.
    ///
    /// RFC 9110 §5.6: `1*DIGIT`, as in `Max-Forwards` and `Retry-After`.
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
    /// Case bit (0x20) in each byte that is a lowercase ASCII letter; no byte may be above 0x7F.
    fileprivate var capitalBits: UInt64 {
        // The sums set the high bit of a byte from `a` on, and of a byte beyond `z`, without a carry into the next
        // byte.
        let fromA = self &+ 0x1F1F_1F1F_1F1F_1F1F
        let beyondZ = self &+ 0x0505_0505_0505_0505
        return (fromA & ~beyondZ & 0x8080_8080_8080_8080) >> 2
    }
}

extension String {
    /// Copy with a U+FFFD after every 30 combining marks in a row.
    ///
    /// Swift compares and hashes strings in canonical form and sorts each run of marks for this, in time quadratic in
    /// the length of the run: comparing a 64 KiB field with "a" takes seconds. Readable text has no longer runs (UAX
    /// #15, stream-safe text).
    var withShortRuns: String {
        // Most text is ASCII, which has no marks.
        guard !utf8.allSatisfy({ $0 < 0x80 }) else { return self }
        var run = 0
        var bounded = UnicodeScalarView()
        for scalar in unicodeScalars {
            let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
            if isMark, run == 30 {
                bounded.append("\u{FFFD}")
                run = 0
            }
            run = isMark ? run + 1 : 0
            bounded.append(scalar)
        }
        return String(bounded)
    }
}
