// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Strict serialization of structured fields (RFC 8941 §4.1).
package enum StructuredFieldWriter {
    /// Returns the text of a dictionary (§4.1.2).
    package static func text(of dictionary: [(key: String, member: StructuredMember)]) -> String {
        dictionary.map { key, member in
            guard case .item(let item) = member, item.value == .boolean(true) else {
                return "\(key)=\(text(of: member))"
            }
            return key + text(of: item.parameters)
        }.joined(separator: ", ")
    }

    /// Returns the text of a list (§4.1.1).
    package static func text(of list: [StructuredMember]) -> String {
        list.map(text).joined(separator: ", ")
    }

    /// Returns the text of a member.
    package static func text(of member: StructuredMember) -> String {
        switch member {
        case .innerList(let items, let parameters):
            "(\(items.map(text).joined(separator: " ")))\(text(of: parameters))"
        case .item(let item): text(of: item)
        }
    }

    /// Returns the text of an item (§4.1.3).
    package static func text(of item: StructuredItem) -> String { text(of: item.value) + text(of: item.parameters) }

    /// Returns the text of parameters (§4.1.1.2).
    package static func text(of parameters: StructuredParameters) -> String {
        parameters.all.map { $0.value == .boolean(true) ? ";\($0.key)" : ";\($0.key)=\(text(of: $0.value))" }.joined()
    }

    /// Returns the text of a bare value (§4.1.3.1).
    package static func text(of value: StructuredValue) -> String {
        switch value {
        case .boolean(let flag): flag ? "?1" : "?0"
        case .bytes(let bytes): ":\(Base64.encode(bytes)):"
        case .decimal(let thousandths): decimal(thousandths)
        case .integer(let number): "\(number)"
        case .string(let text): "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
        case .token(let text): text
        }
    }

    private static func decimal(_ thousandths: Int64) -> String {
        let (whole, fraction) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
        var digits = Int64(fraction).padded(to: 3)[...]
        while digits.utf8.count > 1, digits.hasSuffix("0") { digits = digits.dropLast() }
        return "\(thousandths < 0 ? "-" : "")\(whole).\(digits)"
    }

    /// Returns whether a text is a key (§3.1.2).
    package static func isKey(_ text: String) -> Bool {
        guard let first = text.utf8.first, first.isLowercaseLetter || first == UInt8(ascii: "*") else { return false }
        return text.utf8.allSatisfy(isOfKey)
    }

    /// Returns whether a text can be a string: printable ASCII characters (§3.3.3).
    package static func isString(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }

    /// Returns whether a byte belongs to keys after their first byte.
    static func isOfKey(_ byte: UInt8) -> Bool {
        byte.isLowercaseLetter || byte.isDigit
            || [UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "*")].contains(byte)
    }
}
