// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

#if canImport(Glibc)
    internal import Glibc
#endif

extension Span<UInt8> {
    /// Returns the position of the first LF at or after `position`.
    @inline(__always)
    public func firstLineFeed(from position: Int) -> Int? {
        guard position < count else { return nil }
        return unsafe withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return nil }
            guard let found = unsafe memchr(base + position, Int32(UInt8.lineFeed), buffer.count - position) else {
                return nil
            }
            return unsafe UnsafeRawPointer(found) - UnsafeRawPointer(base)
        }
    }

    /// Returns the first position from `start` up to `end` whose byte is not a `tchar`, or `end` (RFC 9110 §5.6.2).
    @inline(__always)
    func endOfToken(from start: Int, to end: Int) -> Int {
        guard start >= 0, end <= count else { return start }
        var index = start
        while index < end, unsafe ByteClass.token.contains(self[unchecked: index]) { index &+= 1 }
        return index
    }

    /// Returns true if a field value may contain all bytes from `start` up to `end` (RFC 9110 §5.5).
    func isFieldValue(from start: Int, to end: Int) -> Bool {
        guard start >= 0, end <= count else { return false }
        var index = start
        while index < end, end &- start >= 8 {
            // Eight bytes at a time; the last eight may overlap with the eight before.
            index = Swift.min(index, end &- 8)
            let word = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            // The high bit of a byte is set by a byte below 0x20 and by 0x7F. A byte above may be flagged with it, so
            // the eight are then checked one by one, as they are for a tab.
            let low = (word &- 0x2020_2020_2020_2020) & ~word
            let delete = word ^ 0x7F7F_7F7F_7F7F_7F7F
            let flags = (low | ((delete &- 0x0101_0101_0101_0101) & ~delete)) & 0x8080_8080_8080_8080
            if flags != 0 {
                for position in index..<index + 8 where !self[position].isFieldValue { return false }
            }
            index &+= 8
        }
        while index < end {
            guard self[index].isFieldValue else { return false }
            index &+= 1
        }
        return true
    }
}
