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

    /// Parses one JSON text in UTF-8 (RFC 8259); `nil` where it is none, or nested deeper than 512.
    public init?(parsing bytes: [UInt8]) {
        guard let value = try? JSONDecoder().decode(JSONValue.self, from: Data(bytes)) else { return nil }
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

extension JSONValue: Codable {
    /// Tries each kind in turn.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            // One whose fraction is too fine for 64 bits is whole, and written it would be read as such.
            self = Int64(exactly: value).map { .integer($0) } ?? .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

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
