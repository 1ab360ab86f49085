// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FoundationEssentials

/// Any JSON value: what a security check's challenge, an answer or a token response is made of.
public enum JSONValue: Sendable, Hashable {
    /// An array.
    case array([JSONValue])
    /// `true` or `false`.
    case bool(Bool)
    /// A number with a fraction, or one too large for 64 bits.
    case double(Double)
    /// A whole number.
    case integer(Int64)
    /// `null`.
    case null
    /// An object.
    case object([String: JSONValue])
    /// A string.
    case string(String)

    /// Parses one JSON text in UTF-8 (RFC 8259), in a time that is linear in its length. `nil` where it is none, where an object has
    /// a name twice, and where it is longer than 64 KiB, nested deeper than 32, or holds more than 10,000 values.
    public init?(parsing bytes: [UInt8]) { self.init(parsing: bytes, within: .outside) }

    /// The same within other limits.
    package init?(parsing bytes: [UInt8], within limits: JSONLimits) {
        guard let value = JSONParser.value(of: bytes, within: limits) else { return nil }
        self = value
    }

    /// The value as one JSON text in UTF-8, its keys in order, without escaped slashes.
    public func serialized() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Only a number that is not finite cannot be written, and no JSON text yields one.
        guard let data = try? encoder.encode(self) else { return Array("null".utf8) }
        return Array(data)
    }

    /// The member of that name, where this is an object that has it.
    public subscript(member: String) -> JSONValue? { objectValue?[member] }

    /// The members, where this is an object.
    public var objectValue: [String: JSONValue]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The text, where this is a string.
    public var stringValue: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number, where this is a whole one; a string of digits counts, as servers write either.
    public var integerValue: Int64? {
        switch self {
        case .integer(let number): number
        case .double(let number): Int64(exactly: number)
        case .string(let text): Int64(text)
        default: nil
        }
    }
}

extension JSONValue: Encodable {
    /// Writes the value of its kind.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .array(let values): try container.encode(values)
        case .bool(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .null: try container.encodeNil()
        case .object(let members): try container.encode(members)
        case .string(let text): try container.encode(text)
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// An object; of a name written twice the last value counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
    /// `null`.
    public init(nilLiteral: ()) { self = .null }
}
