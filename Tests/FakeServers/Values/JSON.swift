// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A JSON value with the members of an object in the order in which they came.
///
/// The tests' own, so that a mistake in the proxy's JSON cannot hide behind the same mistake here.
package indirect enum JSON: Sendable, Equatable {
    /// An array.
    case array([JSON])
    /// `true` or `false`.
    case bool(Bool)
    /// A number that is not a whole one of 64 bits.
    case double(Double)
    /// A whole number.
    case integer(Int64)
    /// `null`.
    case null
    /// An object.
    case object([JSONMember])
    /// A string.
    case string(String)

    /// The empty object.
    package static var empty: JSON { .object([]) }

    /// The member of that name, where this is an object that has it.
    package subscript(name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The string, where this is one.
    package var string: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    /// The whole number, where this is one.
    package var integer: Int64? {
        guard case .integer(let value) = self else { return nil }
        return value
    }

    /// The members, where this is an object.
    package var members: [JSONMember]? {
        guard case .object(let members) = self else { return nil }
        return members
    }

    /// The value as JSON text.
    package var text: String {
        switch self {
        case .array(let elements): "[\(elements.map(\.text).joined(separator: ","))]"
        case .bool(let value): value ? "true" : "false"
        case .double(let value): value.isFinite ? "\(value)" : "null"
        case .integer(let value): "\(value)"
        case .null: "null"
        case .object(let members):
            "{\(members.map { "\(quoted($0.name)):\($0.value.text)" }.joined(separator: ","))}"
        case .string(let value): quoted(value)
        }
    }

    /// The value as UTF-8.
    package var bytes: [UInt8] { Array(text.utf8) }
}

/// A name and a value in a JSON object.
package struct JSONMember: Sendable, Equatable {
    /// The name.
    package var name: String
    /// The value.
    package var value: JSON

    /// A member of that name and value.
    package init(_ name: String, _ value: JSON) {
        self.name = name
        self.value = value
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByNilLiteral
{
    /// A string.
    package init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    package init(integerLiteral value: Int64) { self = .integer(value) }
    /// `true` or `false`.
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    /// An object, its members in the order written.
    package init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { JSONMember($0.0, $0.1) })
    }
    /// An array.
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// `null`.
    package init(nilLiteral: ()) { self = .null }
}

/// A JSON string literal (RFC 8259 §7).
private func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": result += "\\\""
        case "\\": result += "\\\\"
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        case _ where scalar.value < 0x20:
            let digits = String(scalar.value, radix: 16)
            result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result + "\""
}
