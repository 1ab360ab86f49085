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

    /// Returns `range` of `bytes` decoded until no `%XX` is left, as readers in a row would: `%25%32%65` is a dot.
    static func whollyDecoded(_ bytes: Span<UInt8>, _ range: Range<Int>, plusIsSpace: Bool = false) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(range.count)
        for index in range {
            let byte = bytes[index]
            decoded.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            // Each decoded byte may be the last of another `%XX`.
            while let byte = Self.escape(atEndOf: decoded) {
                decoded.removeLast(3)
                decoded.append(byte)
            }
        }
        return decoded
    }

    private static func escape(atEndOf text: [UInt8]) -> UInt8? {
        let count = text.count
        guard count >= 3, text[count - 3] == UInt8(ascii: "%") else { return nil }
        return Hex.byte(text[count - 2], text[count - 1])
    }

    /// Returns true if a segment of `path` is `.` or `..`, in any spelling that a server may read as such.
    ///
    /// Dots and slashes that are encoded any number of times, backslashes, and parameters after a semicolon count.
    static func hasDotSegment(_ path: Span<UInt8>) -> Bool {
        for index in path.indices where path[index] == UInt8(ascii: "%") {
            return hasPlainDotSegment(whollyDecoded(path, 0..<path.count).span)
        }
        return hasPlainDotSegment(path)
    }

    private static func hasPlainDotSegment(_ path: Span<UInt8>) -> Bool {
        var dots = 0
        var isOnlyDots = true
        var hasEnded = false
        for index in 0...path.count {
            switch index < path.count ? path[index] : UInt8(ascii: "/") {
            case UInt8(ascii: "/"), UInt8(ascii: "\\"):
                if isOnlyDots, dots == 1 || dots == 2 { return true }
                dots = 0
                isOnlyDots = true
                hasEnded = false
            case UInt8(ascii: ";"): hasEnded = true
            case UInt8(ascii: "."): if !hasEnded { dots += 1 }
            default: if !hasEnded { isOnlyDots = false }
            }
        }
        return false
    }
}
