// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Finds the address in a `Refresh` field, `5; url=/next`, as browsers do: no RFC has the field, HTML has its grammar
/// ("shared declarative refresh steps").
enum RefreshTarget {
    /// Where in `value` the address is, without the quotes around it; `nil` where there is none.
    static func range(_ bytes: Span<UInt8>, _ value: ByteRange) -> ByteRange? {
        guard value.end <= bytes.count else { return nil }
        let end = value.end
        var index = skip(bytes, from: value.start, to: end, while: isBlank)
        let digits = index
        index = skip(bytes, from: index, to: end) { $0 &- 0x30 < 10 || $0 == UInt8(ascii: ".") }
        guard index > digits, index < end else { return nil }
        guard isBlank(bytes[index]) || isSeparator(bytes[index]) else { return nil }
        index = skip(bytes, from: index, to: end, while: isBlank)
        if index < end, isSeparator(bytes[index]) { index += 1 }
        index = skip(bytes, from: index, to: end, while: isBlank)
        index = behindURL(bytes, from: index, to: end) ?? index
        guard index < end else { return nil }
        let quote = bytes[index]
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            return ByteRange(start: index, end: end)
        }
        let close = skip(bytes, from: index + 1, to: end) { $0 != quote }
        return ByteRange(start: index + 1, end: close)
    }

    /// Behind `url=`, with white space around the sign.
    private static func behindURL(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> Int? {
        guard end - start > 3, bytes.matches(ByteRange(start: start, end: start + 3), ignoringCase: "url") else {
            return nil
        }
        let sign = skip(bytes, from: start + 3, to: end, while: isBlank)
        guard sign < end, bytes[sign] == UInt8(ascii: "=") else { return nil }
        return skip(bytes, from: sign + 1, to: end, while: isBlank)
    }

    private static func skip(
        _ bytes: Span<UInt8>, from start: Int, to end: Int, while condition: (UInt8) -> Bool
    ) -> Int {
        var index = start
        while index < end, condition(bytes[index]) { index += 1 }
        return index
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func isSeparator(_ byte: UInt8) -> Bool { byte == UInt8(ascii: ";") || byte == UInt8(ascii: ",") }
}
