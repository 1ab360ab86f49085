// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Percent-encoding of values in targets (RFC 3986 §2.1).
enum PercentCoding {
    /// Bytes of a value in a path that need no encoding: `pchar` (RFC 3986 §3.3) without the semicolon, which begins
    /// parameters of a segment at some servers.
    static func isPlainInPath(_ byte: UInt8) -> Bool {
        ByteClass.path.contains(byte) && byte != UInt8(ascii: "/") && byte != UInt8(ascii: ";")
    }

    /// Appends `value` with every byte outside `plain` as `%XX`.
    static func append(_ value: Secret, to text: inout SecretBuilder, keeping plain: ByteClass) {
        append(value, to: &text) { plain.contains($0) }
    }

    /// Appends `value` with every byte that is not plain as `%XX`.
    static func append(_ value: Secret, to text: inout SecretBuilder, keeping isPlain: (UInt8) -> Bool) {
        value.withBytes { bytes in
            for index in bytes.indices {
                let byte = bytes[index]
                if isPlain(byte) { text.append(byte) } else { text.append(Hex.percentEncoded(byte)) }
            }
        }
    }

    /// Returns true if a segment of `path` is `.` or `..`, in any spelling that a server may read as such.
    ///
    /// Encoded dots and slashes, backslashes, and parameters after a semicolon count.
    static func hasDotSegment(_ path: Span<UInt8>) -> Bool {
        var dots = 0
        var isOnlyDots = true
        var hasEnded = false
        var index = 0
        while index <= path.count {
            var byte = index < path.count ? path[index] : UInt8(ascii: "/")
            var length = 1
            // Twice encoded as well: `%252e`.
            while byte == UInt8(ascii: "%"), index + length + 1 < path.count,
                let decoded = Hex.byte(path[index + length], path[index + length + 1])
            {
                byte = decoded
                length += 2
            }
            switch byte {
            case UInt8(ascii: "/"), UInt8(ascii: "\\"):
                if isOnlyDots, dots == 1 || dots == 2 { return true }
                dots = 0
                isOnlyDots = true
                hasEnded = false
            case UInt8(ascii: ";"): hasEnded = true
            case UInt8(ascii: "."): if !hasEnded { dots += 1 }
            default: if !hasEnded { isOnlyDots = false }
            }
            index += length
        }
        return false
    }
}
