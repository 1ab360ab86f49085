// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A range of positions in the bytes that were parsed, half the size of `Range<Int>`.
///
/// Heads and what a decoder looks at in one step are far shorter than 4 GiB; larger positions are brought down to that.
public struct ByteRange: Hashable, Sendable {
    @usableFromInline var lower: UInt32
    @usableFromInline var upper: UInt32

    /// The positions from `start` up to, but not including, `end`. An `end` before `start` makes an empty range.
    @inlinable
    @inline(__always)
    public init(start: Int, end: Int) {
        lower = UInt32(clamping: start)
        upper = max(lower, UInt32(clamping: end))
    }

    /// An empty range at the very beginning.
    @inlinable
    public static var empty: ByteRange { ByteRange(start: 0, end: 0) }

    /// The first position.
    @inlinable
    public var start: Int { Int(lower) }

    /// The position after the last.
    @inlinable
    public var end: Int { Int(upper) }

    /// The number of bytes.
    @inlinable
    public var count: Int { Int(upper - lower) }

    /// True if the range has no byte.
    @inlinable
    public var isEmpty: Bool { lower == upper }

    /// The same range for the standard library: `bytes.extracting(range.bounds)` is the slice.
    @inlinable
    public var bounds: Range<Int> { start..<end }
}
