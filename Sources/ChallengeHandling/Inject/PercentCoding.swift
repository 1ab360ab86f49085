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

    /// Returns `bytes` with ASCII characters in place of their longer forms, which UTF-8 forbids (RFC 3629 §3) and careless
    /// servers read: `C0 AE` and `E0 80 AE` are dots. `nil` if there is none.
    static func withoutLongForms(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.contains(where: { [0xC0, 0xC1, 0xE0, 0xF0].contains($0) }) else { return nil }
        var short: [UInt8] = []
        short.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let (character, count) = longForm(bytes[index...]) ?? (bytes[index], 1)
            short.append(character)
            index += count
        }
        return short.count == bytes.count ? nil : short
    }

    /// Returns the ASCII character that `bytes` begin with in a longer form, and the length of that form.
    ///
    /// Of the last byte only the low bits count, as for the servers that read such forms: `C0 2E` is a dot.
    private static func longForm(_ bytes: ArraySlice<UInt8>) -> (UInt8, Int)? {
        // Bytes before the two that hold the character.
        let prefix: [UInt8]? =
            switch bytes.first {
            case 0xC0, 0xC1: []
            case 0xE0: [0xE0]
            case 0xF0: [0xF0, 0x80]
            default: nil
            }
        guard let prefix, bytes.starts(with: prefix) else { return nil }
        let rest = bytes.dropFirst(prefix.count)
        guard let high = rest.first, let low = rest.dropFirst().first, prefix.isEmpty || high & 0xFE == 0x80 else {
            return nil
        }
        return ((high & 1) << 6 | low & 0x3F, prefix.count + 2)
    }

    private static func escape(atEndOf text: [UInt8]) -> UInt8? {
        let count = text.count
        guard count >= 3, text[count - 3] == UInt8(ascii: "%") else { return nil }
        return Hex.byte(text[count - 2], text[count - 1])
    }

    /// Returns true if a segment of `path` is `.` or `..`, in any spelling that a server may read as such.
    ///
    /// Dots and slashes that are encoded any number of times or in a longer form of UTF-8, backslashes, and parameters after
    /// a semicolon count.
    static func hasDotSegment(_ path: Span<UInt8>) -> Bool {
        for index in path.indices where path[index] == UInt8(ascii: "%") {
            let decoded = whollyDecoded(path, 0..<path.count)
            if hasPlainDotSegment(decoded.span) { return true }
            guard let short = withoutLongForms(decoded) else { return false }
            return hasPlainDotSegment(whollyDecoded(short.span, 0..<short.count).span)
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
