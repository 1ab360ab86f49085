// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Characters of JIS X 0208 that the C library's ISO-2022-JP names otherwise than the standard (WHATWG Encoding, index jis0208).
enum JISCharacters {
    private static let standard: [Unicode.Scalar: Unicode.Scalar] = [
        "\u{A2}": "\u{FFE0}", "\u{A3}": "\u{FFE1}", "\u{AC}": "\u{FFE2}", "\u{2016}": "\u{2225}",
        "\u{2212}": "\u{FF0D}",
        "\u{301C}": "\u{FF5E}",
    ]
    private static let library = Dictionary(uniqueKeysWithValues: standard.map { ($1, $0) })

    /// Returns UTF-8 that the C library has decoded, with the standard's characters.
    static func decoded(_ text: [UInt8]) -> [UInt8] {
        mapped(text) { String(standard[$0] ?? $0) }
    }

    /// Returns UTF-8 for the C library to encode. What the standard does not have becomes `&#N;`, and `isWhole` false.
    static func prepared(_ text: [UInt8], isWhole: inout Bool) -> [UInt8] {
        mapped(text) { scalar in
            if let known = library[scalar] { return String(known) }
            // The standard's encoder writes the minus sign as the full-width hyphen (§12.2.2).
            guard standard[scalar] != nil, scalar != "\u{2212}" else { return String(scalar) }
            isWhole = false
            return "&#\(scalar.value);"
        }
    }

    private static func mapped(_ text: [UInt8], _ map: (Unicode.Scalar) -> String) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        for piece in TextPieces(text) {
            switch piece {
            case .byte(let byte): bytes.append(byte)
            case .text(let range):
                for scalar in String(decoding: text[range], as: UTF8.self).unicodeScalars { bytes += map(scalar).utf8 }
            }
        }
        return bytes
    }
}
