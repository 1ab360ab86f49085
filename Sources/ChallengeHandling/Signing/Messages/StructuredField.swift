// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Bare value of a structured field (RFC 8941 §3.3).
package enum StructuredValue: Sendable, Hashable {
    /// Boolean.
    case boolean(Bool)
    /// Byte sequence.
    case bytes([UInt8])
    /// Decimal, in thousandths.
    case decimal(Int64)
    /// Integer of at most 15 digits.
    case integer(Int64)
    /// String of printable ASCII characters.
    case string(String)
    /// Token.
    case token(String)
}

/// Parameters in order, each key once (RFC 8941 §3.1.2).
package struct StructuredParameters: Sendable, Hashable {
    /// Keys and values, in order.
    package private(set) var all: [(key: String, value: StructuredValue)] = []

    /// Creates an empty list.
    package init() {}

    /// Value of a key; nil if the key is absent.
    package subscript(key: String) -> StructuredValue? {
        get { all.first { $0.key == key }?.value }
        set {
            guard let newValue else { return all.removeAll { $0.key == key } }
            if let index = all.firstIndex(where: { $0.key == key }) {
                all[index].value = newValue
            } else {
                all.append((key, newValue))
            }
        }
    }

    /// Creates the list of a parser, whose keys are unique.
    init(unique: [(key: String, value: StructuredValue)]) { all = unique }

    /// Returns whether keys, values and order are equal.
    package static func == (left: StructuredParameters, right: StructuredParameters) -> Bool {
        left.all.elementsEqual(right.all) { $0.key == $1.key && $0.value == $1.value }
    }

    /// Adds keys and values to a hash.
    package func hash(into hasher: inout Hasher) {
        for parameter in all {
            hasher.combine(parameter.key)
            hasher.combine(parameter.value)
        }
    }
}

/// Value with parameters (RFC 8941 §3.3).
package struct StructuredItem: Sendable, Hashable {
    /// Value.
    package var value: StructuredValue
    /// Parameters.
    package var parameters = StructuredParameters()

    /// Creates an item.
    package init(_ value: StructuredValue, _ parameters: StructuredParameters = StructuredParameters()) {
        self.value = value
        self.parameters = parameters
    }
}

/// Member of a list or dictionary (RFC 8941 §3.1, §3.2).
package enum StructuredMember: Sendable, Hashable {
    /// Inner list with parameters (§3.1.1).
    case innerList([StructuredItem], StructuredParameters)
    /// Item.
    case item(StructuredItem)
}

/// Kind of a structured field.
package enum StructuredKind: Sendable {
    /// Dictionary (RFC 8941 §3.2).
    case dictionary
    /// Item (RFC 8941 §3.3).
    case item
    /// List (RFC 8941 §3.1).
    case list
}

/// Structured fields whose kind is known, for their strict serialization.
package enum StructuredFields {
    /// Returns the kind of the field of that name in lower case; nil if the field is not known to be structured.
    package static func kind(of name: String) -> StructuredKind? { kinds[name] }

    /// Fields of the IANA's registry of HTTP field names, and those that RFC 9110 and 9111 define in a compatible way.
    private static let kinds: [String: StructuredKind] = {
        var kinds: [String: StructuredKind] = [:]
        for name in [
            "accept-signature", "cache-control", "cdn-cache-control", "client-cert-meta", "content-digest",
            "permissions-policy", "priority", "repr-digest", "signature", "signature-input", "want-content-digest",
            "want-repr-digest",
        ] { kinds[name] = .dictionary }
        for name in [
            "accept", "accept-ch", "accept-encoding", "accept-language", "accept-patch", "accept-post",
            "accept-ranges", "allow", "cache-status", "client-cert-chain", "content-encoding", "content-language",
            "example-list", "proxy-status", "te", "trailer", "vary",
        ] { kinds[name] = .list }
        for name in [
            "age", "client-cert", "content-type", "dnt", "expect", "idempotency-key", "max-forwards", "origin",
            "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user", "sec-gpc", "signature-agent",
            "upgrade-insecure-requests",
        ] { kinds[name] = .item }
        return kinds
    }()
}

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
