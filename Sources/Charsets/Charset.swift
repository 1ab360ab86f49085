// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// A character encoding that pages and forms name (WHATWG Encoding §4).
package struct Charset: Sendable, Hashable {
    /// Name in the standard's spelling, such as `windows-1251`.
    package let name: String
    /// Name for the C library's converter; `nil` if the library has no such encoding.
    private let converter: String?
    private let isSingleByte: Bool

    /// The encoding of nearly all pages.
    package static let utf8 = Charset(name: "UTF-8", converter: "UTF-8", isSingleByte: false)
    /// The encoding that browsers assume for a page that names none.
    package static let western = Charset(name: "windows-1252", converter: "CP1252", isSingleByte: true)
    /// The encodings of a byte order mark.
    package static let utf16LittleEndian = Charset(name: "UTF-16LE", converter: "UTF-16LE", isSingleByte: false)
    /// The encodings of a byte order mark.
    package static let utf16BigEndian = Charset(name: "UTF-16BE", converter: "UTF-16BE", isSingleByte: false)

    private init(name: String, converter: String?, isSingleByte: Bool) {
        self.name = name
        self.converter = converter
        self.isSingleByte = isSingleByte
    }

    /// Finds the encoding of a label, such as `latin1` (WHATWG Encoding §4.2). Blanks around the label are ignored.
    package init?(label: some Sequence<UInt8>) {
        let label = label.prefix(64).map(\.lowercased).trimmed(\.isASCIIWhitespace)
        guard let row = CharsetLabels.row(of: String(decoding: label, as: UTF8.self)) else { return nil }
        self.init(name: row.name, converter: row.converter, isSingleByte: row.isSingleByte)
    }

    private var isJIS: Bool { name == "ISO-2022-JP" }

    /// True if the bytes of ASCII mean ASCII.
    package var extendsASCII: Bool { !name.hasPrefix("UTF-16") && name != "ISO-2022-JP" && name != "replacement" }

    /// The encoding of forms on a page of this encoding (WHATWG Encoding §4.3).
    package var ofForms: Charset { name.hasPrefix("UTF-16") || name == "replacement" ? .utf8 : self }

    /// Returns `bytes` in UTF-8; `nil` if the C library has no such encoding.
    ///
    /// A byte that means nothing stays in the text as it is, so that `encoded` returns the same byte.
    package func decoded(_ bytes: [UInt8]) -> [UInt8]? {
        if self == .utf8 || extendsASCII && bytes.allSatisfy({ $0 < 0x80 }) { return bytes }
        if name == "x-user-defined" {
            return bytes.flatMap { $0 < 0x80 ? [$0] : Array(String(Self.userDefined($0)).utf8) }
        }
        if isSingleByte {
            guard let table = SingleByteTable(converter ?? "", of: name) else { return nil }
            return table.decoded(bytes)
        }
        guard let converter = converter.flatMap({ Converter(from: $0, to: "UTF-8") }) else { return nil }
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count + bytes.count / 2)
        var position = 0
        while let stop = converter.convert(bytes, from: position, into: &text) {
            if extendsASCII { text.append(bytes[stop]) } else { text += "\u{FFFD}".utf8 }
            position = min(bytes.count, stop + (name.hasPrefix("UTF-16") ? 2 : 1))
        }
        return isJIS ? JISCharacters.decoded(text) : text
    }

    /// Returns text, which is UTF-8, as a form sends it: a character that the encoding lacks becomes `&#N;`.
    ///
    /// A byte that is no UTF-8 stays as it is. `isWhole` becomes false if a character was missing. Returns `nil` if the C library has
    /// no such encoding.
    package func encoded(_ text: [UInt8], isWhole: inout Bool) -> [UInt8]? {
        if self == .utf8 || extendsASCII && text.allSatisfy({ $0 < 0x80 }) { return text }
        if name == "x-user-defined" {
            return encoded(text, isWhole: &isWhole) { scalar in
                (0xF780...0xF7FF).contains(scalar.value) ? [UInt8(truncatingIfNeeded: scalar.value)] : nil
            }
        }
        if isSingleByte {
            guard let table = SingleByteTable(converter ?? "", of: name) else { return nil }
            return encoded(text, isWhole: &isWhole) { table.byte(of: $0).map { [$0] } }
        }
        guard let converter = converter.flatMap({ Converter(from: "UTF-8", to: $0) }) else { return nil }
        if extendsASCII {
            guard let reader = self.converter.flatMap({ Converter(from: $0, to: "UTF-8") }) else { return nil }
            return encoded(text, isWhole: &isWhole) { scalar in
                let character = Array(String(scalar).utf8)
                var (bytes, readBack): ([UInt8], [UInt8]) = ([], [])
                guard converter.convert(character, from: 0, into: &bytes) == nil, isWritten(bytes) else { return nil }
                // The C library writes a similar character for some that the encoding lacks.
                let isSame = reader.convert(bytes, from: 0, into: &readBack) == nil && readBack == character
                return isSame || isReplaced(scalar) ? bytes : nil
            }
        }
        let text = isJIS ? JISCharacters.prepared(text, isWhole: &isWhole) : text
        var bytes: [UInt8] = []
        for piece in TextPieces(text) {
            switch piece {
            case .byte(let byte): bytes.append(byte)
            case .text(let range):
                let text = Array(text[range])
                var position = 0
                while let stop = converter.convert(text, from: position, into: &bytes) {
                    isWhole = false
                    var end = stop + 1
                    while end < text.count, text[end] & 0xC0 == 0x80 { end += 1 }
                    let scalar = String(decoding: text[stop..<end], as: UTF8.self).unicodeScalars.first?.value ?? 0xFFFD
                    // Through the converter, which may have to change its state first.
                    _ = converter.convert(Array("&#\(scalar);".utf8), from: 0, into: &bytes)
                    position = end
                }
                converter.reset(into: &bytes)
            }
        }
        return bytes
    }

    /// Returns false for bytes that the standard reads and does not write.
    private func isWritten(_ bytes: [UInt8]) -> Bool {
        switch name {
        // JIS X 0212, and the extensions of Hong Kong.
        case "EUC-JP": bytes.first != 0x8F
        case "Big5": bytes.first.map { $0 >= 0xA1 } ?? false
        default: true
        }
    }

    /// Returns true for a character for which the standard, too, writes a similar one (WHATWG Encoding §12.2.2, §12.3.2).
    private func isReplaced(_ scalar: Unicode.Scalar) -> Bool {
        (name == "Shift_JIS" || name == "EUC-JP") && [0xA5, 0x203E, 0x2212].contains(scalar.value)
    }

    private func encoded(
        _ text: [UInt8], isWhole: inout Bool, _ bytesOf: (Unicode.Scalar) -> [UInt8]?
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        for piece in TextPieces(text) {
            switch piece {
            case .byte(let byte): bytes.append(byte)
            case .text(let range):
                for scalar in String(decoding: text[range], as: UTF8.self).unicodeScalars {
                    if scalar.value < 0x80 {
                        bytes.append(UInt8(truncatingIfNeeded: scalar.value))
                    } else if let found = bytesOf(scalar) {
                        bytes += found
                    } else {
                        isWhole = false
                        bytes += "&#\(scalar.value);".utf8
                    }
                }
            }
        }
        return bytes
    }

    private static func userDefined(_ byte: UInt8) -> Character {
        Character(Unicode.Scalar(0xF700 + UInt32(truncatingIfNeeded: byte)) ?? "\u{FFFD}")
    }
}
