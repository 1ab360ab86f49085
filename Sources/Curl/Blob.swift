// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Bytes for libcurl in place of a file, such as a certificate. They do not change, and since they may be a private key
/// they are overwritten when they go.
///
/// With a file libcurl tells connections apart by its path, and goes on using one that was made with what the file held
/// before. Bytes it compares.
@safe
package final class Blob: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
    /// How many there are.
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
    /// Returns whether the bytes are the same.
    package static func == (left: Blob, right: Blob) -> Bool {
        unsafe left.count == right.count && memcmp(left.start, right.start, left.count) == 0
    }
}

extension Blob: CustomStringConvertible, CustomReflectable {
    /// Never the bytes.
    package var description: String { "<\(count) bytes>" }
    /// A mirror without children, so that `dump` shows nothing either.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
