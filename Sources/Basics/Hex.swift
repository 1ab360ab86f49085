// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Base 16 of RFC 4648 §8: written in lower case, read in either case.
package enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)
    private static let capitalDigits = Array("0123456789ABCDEF".utf8)

    /// The bytes, two digits each.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.underestimatedCount)
        for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the number with all digits of its type: 8 for a `UInt32`.
    package static func encode(_ number: some FixedWidthInteger & UnsignedInteger) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: number.bitWidth / 4 - text.utf8.count) + text
    }

    /// Returns a percent-encoded byte: `%2F` (RFC 3986 §2.1).
    package static func percentEncoded(_ byte: UInt8) -> [UInt8] {
        [UInt8(ascii: "%"), capitalDigits[Int(byte >> 4)], capitalDigits[Int(byte & 15)]]
    }

    /// Returns the bytes that `text` encodes; `nil` if it is not made of pairs of digits.
    package static func decode(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = byte(digits[index], digits[index + 1]) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    /// Returns the byte that two digits encode; `nil` if one is missing or is not a digit.
    package static func byte(_ high: UInt8?, _ low: UInt8?) -> UInt8? {
        guard let high = high?.hexadecimalValue, let low = low?.hexadecimalValue else { return nil }
        return high << 4 | low
    }
}
