// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
