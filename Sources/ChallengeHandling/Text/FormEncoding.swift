// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Secrets

/// `application/x-www-form-urlencoded` bodies, and queries.
package enum FormEncoding {
    /// The media type of a form's body.
    package static let mediaType = "application/x-www-form-urlencoded"

    /// A form's body (WHATWG URL §5.2): a space is `+`, every byte but letters, digits and `*-._` is `%XX`.
    package static func body(_ fields: [(name: String, value: Secret)]) -> Secret {
        var bytes: [UInt8] = []
        for field in fields {
            if !bytes.isEmpty { bytes.append(UInt8(ascii: "&")) }
            append(Array(field.name.utf8), to: &bytes, keeping: formSigns, space: "+")
            bytes.append(UInt8(ascii: "="))
            append(field.value.revealBytes(), to: &bytes, keeping: formSigns, space: "+")
        }
        return Secret(bytes)
    }

    /// `value` as it stands in a form's body.
    package static func encoded(_ value: Secret) -> [UInt8] {
        var bytes: [UInt8] = []
        append(value.revealBytes(), to: &bytes, keeping: formSigns, space: "+")
        return bytes
    }

    /// A query: every byte but the unreserved ones of RFC 3986 §2.3 is `%XX`.
    package static func query(_ fields: [(name: String, value: String)]) -> String {
        fields.map { "\(percentEncoded($0.name))=\(percentEncoded($0.value))" }.joined(separator: "&")
    }

    /// `text` with every byte but the unreserved ones of RFC 3986 §2.3 as `%XX`: a segment of a path, a part of a query.
    package static func percentEncoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        append(Array(text.utf8), to: &bytes, keeping: unreservedSigns, space: nil)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The first value of `name` in a query or a form's body; `nil` where there is none, or it is no UTF-8.
    package static func value(of name: String, in query: some StringProtocol) -> String? {
        // By bytes: for a `Character` a separator with an accent on it is none.
        for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first, decoded(first)?.utf8.elementsEqual(name.utf8) == true else { continue }
            return parts.count == 2 ? decoded(parts[1]) : ""
        }
        return nil
    }

    private static let formSigns = Set("*-._".utf8)
    private static let unreservedSigns = Set("-._~".utf8)
    private static let hexDigits = Array("0123456789ABCDEF".utf8)

    private static func append(
        _ text: [UInt8], to bytes: inout [UInt8], keeping signs: Set<UInt8>, space: Unicode.Scalar?
    ) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                bytes.append(byte)
            case _ where signs.contains(byte):
                bytes.append(byte)
            case UInt8(ascii: " ") where space == "+":
                bytes.append(UInt8(ascii: "+"))
            default:
                bytes += [UInt8(ascii: "%"), hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 0x0F)]]
            }
        }
    }

    private static func decoded(_ text: some Collection<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "+") {
                bytes.append(UInt8(ascii: " "))
            } else if byte == UInt8(ascii: "%"), let high = rest.first.flatMap(hexValue),
                let low = rest.dropFirst().first.flatMap(hexValue)
            {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self).map(TextRuns.broken)
    }

    private static func hexValue(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
