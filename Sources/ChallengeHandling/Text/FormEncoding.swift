// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import Secrets

/// Coding of `application/x-www-form-urlencoded` bodies and queries.
package enum FormEncoding {
    /// Media type of a form's body.
    package static let mediaType = "application/x-www-form-urlencoded"

    /// Returns a form's body (WHATWG URL §5.2).
    ///
    /// A space is `+`, and every byte but letters, digits and `*-._` is `%XX`.
    package static func body(_ fields: [(name: String, value: Secret)]) -> Secret {
        body(fields.map { (Array($0.name.utf8), $0.value) })
    }

    /// Returns a form's body, with names in the form's own encoding.
    package static func body(_ fields: [(name: [UInt8], value: Secret)]) -> Secret {
        var bytes: [UInt8] = []
        for (index, field) in fields.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: "&")) }
            append(field.name, to: &bytes, keeping: formSigns, space: "+")
            bytes.append(UInt8(ascii: "="))
            append(field.value.revealBytes(), to: &bytes, keeping: formSigns, space: "+")
        }
        return Secret(bytes)
    }

    /// Returns `value` as encoded in a form's body.
    package static func encoded(_ value: Secret) -> [UInt8] {
        var bytes: [UInt8] = []
        append(value.revealBytes(), to: &bytes, keeping: formSigns, space: "+")
        return bytes
    }

    /// Returns a query with every byte except the unreserved ones of RFC 3986 §2.3 as `%XX`.
    package static func query(_ fields: [(name: String, value: String)]) -> String {
        fields.map { "\(percentEncoded($0.name))=\(percentEncoded($0.value))" }.joined(separator: "&")
    }

    /// Returns `text` with every byte but RFC 3986 §2.3's unreserved ones as `%XX`, for a path or query.
    package static func percentEncoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        append(Array(text.utf8), to: &bytes, keeping: unreservedSigns, space: nil)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the first value of `name` in a query or form; nil if absent or not UTF-8.
    package static func value(of name: String, in query: some StringProtocol) -> String? {
        // Split as bytes: as a `Character`, a separator with a combining accent is not a separator.
        for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first, decoded(first)?.utf8.elementsEqual(name.utf8) == true else { continue }
            return parts.count == 2 ? decoded(parts[1]) : ""
        }
        return nil
    }

    /// Returns `text` with each `%XX` decoded to its byte; other characters are unchanged, including `+`.
    package static func percentDecoded(_ text: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let decoded = Hex.byte(rest.first, rest.dropFirst().first) {
                bytes.append(decoded)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    /// Returns the bytes of one part of a form or query (WHATWG URL §5.1): as `percentDecoded`, with each `+` as a blank.
    package static func decodedBytes(_ text: some Collection<UInt8>) -> [UInt8] {
        percentDecoded(text.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
    }

    private static let formSigns = Set("*-._".utf8)
    private static let unreservedSigns = Set("-._~".utf8)

    private static func append(
        _ text: [UInt8], to bytes: inout [UInt8], keeping signs: Set<UInt8>, space: Unicode.Scalar?
    ) {
        for byte in text {
            switch byte {
            case _ where byte.isAlphanumeric || signs.contains(byte):
                bytes.append(byte)
            case UInt8(ascii: " ") where space == "+":
                bytes.append(UInt8(ascii: "+"))
            default:
                bytes += Hex.percentEncoded(byte)
            }
        }
    }

    private static func decoded(_ text: some Collection<UInt8>) -> String? {
        String(validating: decodedBytes(text), as: UTF8.self).map(TextRuns.broken)
    }
}
