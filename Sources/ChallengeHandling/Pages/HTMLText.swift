// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Decoder of HTML character references (WHATWG HTML §13.2.5.72 to §13.2.5.80).
enum HTMLText {
    /// Returns text with its references decoded and its line ends as one line feed each. Anything else is unchanged.
    ///
    /// In the value of an attribute, a name without a semicolon is none if a letter, a digit or `=` follows.
    static func decoded(_ text: ArraySlice<UInt8>, isAttribute: Bool = true) -> [UInt8] {
        guard text.contains(where: { $0 == UInt8(ascii: "&") || $0 == 0x0D || $0 == 0 }) else { return Array(text) }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            index += 1
            switch byte {
            case UInt8(ascii: "&"):
                if let (reference, end) = reference(text[index...], isAttribute) {
                    decoded += reference
                    index = end
                } else {
                    decoded.append(byte)
                }
            case 0x0D:
                decoded.append(0x0A)
                if index < text.endIndex, text[index] == 0x0A { index += 1 }
            case 0: decoded += "\u{FFFD}".utf8
            default: decoded.append(byte)
            }
        }
        return decoded
    }

    private static func reference(_ text: ArraySlice<UInt8>, _ isAttribute: Bool) -> (text: [UInt8], end: Int)? {
        guard let first = text.first else { return nil }
        if first == UInt8(ascii: "#") { return number(text.dropFirst()) }
        let name = text.prefix(NamedReferences.longest).prefix { $0.isAlphanumeric }
        if name.endIndex < text.endIndex, text[name.endIndex] == UInt8(ascii: ";"),
            let found = NamedReferences.text(of: name)
        {
            return (Array(found.utf8), name.endIndex + 1)
        }
        var prefix = name.prefix(NamedReferences.longestLegacy)
        while prefix.count > 1 {
            if let found = NamedReferences.legacyText(of: prefix) {
                let next = prefix.endIndex < text.endIndex ? text[prefix.endIndex] : 0
                if isAttribute, next.isAlphanumeric || next == UInt8(ascii: "=") { return nil }
                return (Array(found.utf8), prefix.endIndex)
            }
            prefix = prefix.dropLast()
        }
        return nil
    }

    private static func number(_ text: ArraySlice<UInt8>) -> (text: [UInt8], end: Int)? {
        let isHexadecimal = text.first.map { $0 | 0x20 == UInt8(ascii: "x") } ?? false
        let digits = (isHexadecimal ? text.dropFirst() : text).prefix {
            isHexadecimal ? $0.hexadecimalValue != nil : $0.isDigit
        }
        guard !digits.isEmpty else { return nil }
        var value: UInt32 = 0
        for byte in digits {
            let digit = UInt32(truncatingIfNeeded: byte.hexadecimalValue ?? 0)
            // More than the largest code point stays so.
            value = min(0x110000, value &* (isHexadecimal ? 16 : 10) &+ digit)
        }
        let hasEnd = digits.endIndex < text.endIndex && text[digits.endIndex] == UInt8(ascii: ";")
        return (Array(String(Character(scalar(value))).utf8), digits.endIndex + (hasEnd ? 1 : 0))
    }

    private static func scalar(_ value: UInt32) -> Unicode.Scalar {
        if (0x80...0x9F).contains(value), let replaced = controls[value] { return replaced }
        guard value != 0, let scalar = Unicode.Scalar(value) else { return "\u{FFFD}" }
        return scalar
    }

    /// Characters that numbers of windows-1252 mean.
    private static let controls: [UInt32: Unicode.Scalar] = [
        0x80: "\u{20AC}", 0x82: "\u{201A}", 0x83: "\u{192}", 0x84: "\u{201E}", 0x85: "\u{2026}", 0x86: "\u{2020}",
        0x87: "\u{2021}", 0x88: "\u{2C6}", 0x89: "\u{2030}", 0x8A: "\u{160}", 0x8B: "\u{2039}", 0x8C: "\u{152}",
        0x8E: "\u{17D}", 0x91: "\u{2018}", 0x92: "\u{2019}", 0x93: "\u{201C}", 0x94: "\u{201D}", 0x95: "\u{2022}",
        0x96: "\u{2013}", 0x97: "\u{2014}", 0x98: "\u{2DC}", 0x99: "\u{2122}", 0x9A: "\u{161}", 0x9B: "\u{203A}",
        0x9C: "\u{153}", 0x9E: "\u{17E}", 0x9F: "\u{178}",
    ]
}
