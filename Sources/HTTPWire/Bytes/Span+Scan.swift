// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#if canImport(Glibc)
    internal import Glibc
#endif

extension Span<UInt8> {
    /// The first LF at or after `position`, found by the C library, which looks at many bytes at a time.
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

    /// The first position from `start` up to `end` that holds no `tchar`, or `end` (RFC 9110 section 5.6.2).
    @inline(__always)
    func endOfToken(from start: Int, to end: Int) -> Int {
        guard start >= 0, end <= count else { return start }
        var index = start
        while index < end, unsafe ByteClass.token.contains(self[unchecked: index]) { index &+= 1 }
        return index
    }

    /// Returns whether every byte from `start` up to `end` may stand in a field value (RFC 9110 section 5.5), eight at a time.
    func isFieldValue(from start: Int, to end: Int) -> Bool {
        guard start >= 0, end <= count else { return false }
        var index = start
        while index < end, end &- start >= 8 {
            // The last eight may be looked at a second time.
            index = Swift.min(index, end &- 8)
            let word = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            // The high bit of a byte is set by one below 0x20, and by 0x7F; a byte above may be accused with it, so that the
            // eight are then looked at one by one, as they are for a tab.
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
