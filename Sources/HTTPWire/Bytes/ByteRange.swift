// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A range of positions in the bytes that were parsed, half the size of `Range<Int>`.
///
/// Heads and what a decoder looks at in one step are far shorter than 4 GiB; larger positions are brought down to that.
package struct ByteRange: Hashable, Sendable {
    private var lower: UInt32
    private var upper: UInt32

    /// The positions from `start` up to, but not including, `end`. An `end` before `start` makes an empty range.
    package init(start: Int, end: Int) {
        lower = UInt32(clamping: start)
        upper = max(lower, UInt32(clamping: end))
    }

    /// An empty range at the very beginning.
    package static let empty = ByteRange(start: 0, end: 0)

    /// The first position.
    package var start: Int { Int(lower) }

    /// The position after the last.
    package var end: Int { Int(upper) }

    /// The number of bytes.
    package var count: Int { Int(upper - lower) }

    /// Whether the range has no byte.
    package var isEmpty: Bool { lower == upper }

    /// The same range for the standard library: `bytes.extracting(range.bounds)` is the slice.
    package var bounds: Range<Int> { start..<end }
}

extension Span<UInt8> {
    /// The bytes in `range`, copied. Positions beyond the end are left out.
    package func copy(_ range: ByteRange) -> [UInt8] {
        let end = Swift.min(range.end, count)
        let start = Swift.min(range.start, end)
        return unsafe [UInt8](unsafeUninitializedCapacity: end - start) { buffer, filled in
            for index in start..<end { unsafe buffer[index - start] = self[index] }
            filled = end - start
        }
    }

    /// The bytes in `range` as text; invalid UTF-8 becomes U+FFFD. For slow paths: it allocates.
    package func text(_ range: ByteRange) -> String {
        String(decoding: copy(range), as: UTF8.self)
    }

    /// Whether the bytes in `range` are those of `literal`, which must be in lower case, without regard to the case of
    /// ASCII letters (RFC 9110 section 5.1: names; section 5.6.2: most tokens).
    package func matches(_ range: ByteRange, ignoringCase literal: StaticString) -> Bool {
        guard range.count == literal.utf8CodeUnitCount, range.end <= count, literal.hasPointerRepresentation else {
            return false
        }
        var index = 0
        while index < range.count {
            let expected = unsafe literal.utf8Start[index]
            guard self[range.start + index].lowercased == expected else { return false }
            index += 1
        }
        return true
    }

    /// Whether the bytes in `range` are exactly those of `literal`.
    package func matches(_ range: ByteRange, exactly literal: StaticString) -> Bool {
        guard range.count == literal.utf8CodeUnitCount, range.end <= count, literal.hasPointerRepresentation else {
            return false
        }
        var index = 0
        while index < range.count {
            let expected = unsafe literal.utf8Start[index]
            guard self[range.start + index] == expected else { return false }
            index += 1
        }
        return true
    }

    /// Whether two ranges of the same bytes spell the same without regard to the case of ASCII letters.
    package func matches(_ one: ByteRange, ignoringCase other: ByteRange) -> Bool {
        guard one.count == other.count, one.end <= count, other.end <= count else { return false }
        var index = 0
        while index < one.count {
            guard self[one.start + index].lowercased == self[other.start + index].lowercased else { return false }
            index += 1
        }
        return true
    }
}
