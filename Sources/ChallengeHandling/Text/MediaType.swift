// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// A media type with its parameter `charset`, read as browsers do (WHATWG MIME Sniffing §4.4).
package struct MediaType: Sendable, Equatable {
    /// Number of bytes that are read. No media type is that long (RFC 6838 §4.2).
    private static let limit = 1024

    /// Type and subtype in lower case.
    package let essence: String
    /// The parameter `charset` as written; `nil` without one.
    package let charset: String?

    /// Reads the value of `Content-Type`.
    package init(_ text: String) {
        let bytes = Array(text.utf8.prefix(Self.limit))
        let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        essence = String(decoding: bytes[..<end].trimmed(\.isASCIIWhitespace), as: UTF8.self).lowercased()
        charset = Self.charset(in: bytes[end...])
    }

    /// True for a page in XML.
    package var isXML: Bool { essence.hasSuffix("+xml") || essence.hasSuffix("/xml") }

    /// Returns the charset that the `content` of a `meta` names (WHATWG HTML §2.5.3).
    static func charset(_ content: String) -> String? {
        let bytes = Array(content.utf8.prefix(limit))
        let word = Array("charset".utf8)
        var start = 0
        while start + word.count <= bytes.count {
            defer { start += 1 }
            guard bytes[start..<(start + word.count)].elementsEqual(word, by: { $0 | 0x20 == $1 }) else { continue }
            var rest = bytes[(start + word.count)...].drop(while: \.isASCIIWhitespace)
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest = rest.dropFirst().drop(while: \.isASCIIWhitespace)
            guard let first = rest.first else { return nil }
            if first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") {
                let value = rest.dropFirst().prefix { $0 != first }
                return value.endIndex < rest.endIndex ? String(decoding: value, as: UTF8.self) : nil
            }
            return String(decoding: rest.prefix { !$0.isASCIIWhitespace && $0 != UInt8(ascii: ";") }, as: UTF8.self)
        }
        return nil
    }

    private static func charset(in parameters: ArraySlice<UInt8>) -> String? {
        var rest = parameters
        while let semicolon = rest.firstIndex(of: UInt8(ascii: ";")) {
            rest = rest[(semicolon + 1)...].drop(while: \.isASCIIWhitespace)
            let name = rest.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "=") }
            rest = rest[name.endIndex...]
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest = rest.dropFirst()
            var value: [UInt8] = []
            if rest.first == UInt8(ascii: "\"") {
                rest = rest.dropFirst()
                while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
                    value.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte)
                }
            } else {
                let written = rest.prefix { $0 != UInt8(ascii: ";") }
                rest = rest[written.endIndex...]
                value = Array(written.trimmed(\.isASCIIWhitespace))
            }
            if String(decoding: name, as: UTF8.self).lowercased() == "charset", !value.isEmpty {
                return String(decoding: value, as: UTF8.self)
            }
        }
        return nil
    }
}
