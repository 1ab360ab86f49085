// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Base64 (RFC 4648): §4 with padding for fields and stored values, §5 without padding for JOSE.
package enum Base64 {
    /// Alphabets of base64.
    package enum Alphabet: Sendable {
        /// With `+` and `/`, padded with `=`.
        case standard
        /// With `-` and `_`, without padding (RFC 7515 §2).
        case url
    }

    /// Returns `bytes` in base64.
    package static func encode(_ bytes: some Collection<UInt8>, _ alphabet: Alphabet = .standard) -> String {
        let digits = alphabet == .standard ? standardDigits : urlDigits
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var pending: UInt32 = 0
        var bits = 0
        for byte in bytes {
            pending = (pending << 8 | UInt32(byte)) & 0xFFFF
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(digits[Int(pending >> UInt32(bits) & 0x3F)])
            }
        }
        if bits > 0 { text.append(digits[Int(pending << UInt32(6 - bits) & 0x3F)]) }
        if alphabet == .standard {
            while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of base64 in either alphabet, padded or not; nil if the text is invalid.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var pending: UInt32 = 0
        var bits = 0
        var digits = 0
        var padding = 0
        for sign in text.utf8 {
            if sign == UInt8(ascii: "=") {
                padding += 1
                continue
            }
            guard padding == 0, let digit = value(of: sign) else { return nil }
            pending = (pending << 6 | digit) & 0xFFFF
            digits += 1
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
            }
        }
        // A single remaining digit encodes no byte, and padding only completes a group of four.
        guard digits % 4 != 1, padding == 0 || (digits + padding) % 4 == 0, padding <= 2 else { return nil }
        return bytes
    }

    private static let standardDigits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlDigits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static func value(of sign: UInt8) -> UInt32? {
        switch sign {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(sign - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(sign - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(sign - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
