// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Immutable bytes passed to libcurl in place of a file, such as a certificate.
///
/// They may be a private key, so they are overwritten when they are released.
///
/// libcurl compares the bytes when it looks for a connection to reuse. With a file it would compare only the path, and
/// reuse a connection made with the file's former content.
@safe
package final class Blob: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
    /// Number of bytes.
    package let count: Int

    /// Copies `bytes`.
    package init(_ bytes: Span<UInt8>) {
        count = bytes.count
        unsafe start = .allocate(byteCount: max(1, count), alignment: 1)
        let start = unsafe start
        unsafe bytes.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe start.copyMemory(from: source, byteCount: bytes.count)
        }
    }

    deinit {
        unsafe explicit_bzero(start, count)
        unsafe start.deallocate()
    }
}

extension Blob: Equatable {
    /// Compares the bytes.
    package static func == (left: Blob, right: Blob) -> Bool {
        unsafe left.count == right.count && memcmp(left.start, right.start, left.count) == 0
    }
}

extension Blob: CustomStringConvertible, CustomReflectable {
    /// Number of bytes, never the bytes.
    package var description: String { "<\(count) bytes>" }
    /// Mirror without children, so that `dump` shows nothing either.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
