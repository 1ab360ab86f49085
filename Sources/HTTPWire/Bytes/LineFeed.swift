// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#if canImport(Glibc)
    internal import Glibc
#endif

extension Span<UInt8> {
    /// The first LF at or after `position`, found by the C library, which looks at many bytes at a time.
    @inline(__always)
    func firstLineFeed(from position: Int) -> Int? {
        guard position < count else { return nil }
        return unsafe withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return nil }
            guard let found = unsafe memchr(base + position, Int32(UInt8.lineFeed), buffer.count - position) else {
                return nil
            }
            return unsafe UnsafeRawPointer(found) - UnsafeRawPointer(base)
        }
    }
}
