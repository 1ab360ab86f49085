// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Base64 in both alphabets (RFC 4648 §4 and §5).
package enum Base64 {
    /// Decodes the ordinary or the URL-safe alphabet, with or without padding; `nil` if it is neither.
    ///
    /// Both, because the browser's kit writes the parts of a signature with `btoa` and the native kits do not.
    package static func decode(_ text: String) -> [UInt8]? {
        var digits = Array(text.utf8)
        while digits.last == UInt8(ascii: "="), text.utf8.count - digits.count < 2 { digits.removeLast() }
        guard digits.count % 4 != 1 else { return nil }
        var result: [UInt8] = []
        var group: UInt32 = 0
        var bits: UInt32 = 0
        for digit in digits {
            guard let value = value(of: digit) else { return nil }
            group = (group << 6 | UInt32(value)) & 0xff_ffff
            bits += 6
            if bits >= 8 {
                bits -= 8
                result.append(UInt8(truncatingIfNeeded: group >> bits))
            }
        }
        return result
    }

    /// Encodes with the ordinary alphabet and padding.
    package static func encode(_ bytes: [UInt8]) -> String {
        var result = encodeURL(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        while result.count % 4 != 0 { result.append("=") }
        return String(result)
    }

    /// Encodes with the URL-safe alphabet, without padding.
    package static func encodeURL(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var result: [UInt8] = []
        var group: UInt32 = 0
        var bits: UInt32 = 0
        for byte in bytes {
            group = (group << 8 | UInt32(byte)) & 0xffff
            bits += 8
            while bits >= 6 {
                bits -= 6
                result.append(alphabet[Int(group >> bits & 0x3f)])
            }
        }
        if bits > 0 { result.append(alphabet[Int(group << (6 - bits) & 0x3f)]) }
        return String(decoding: result, as: UTF8.self)
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
