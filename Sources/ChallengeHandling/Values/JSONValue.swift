// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FoundationEssentials

/// Any JSON value, such as a challenge, an answer, or a token response.
public enum JSONValue: Sendable, Hashable {
    /// An array.
    case array([JSONValue])
    /// `true` or `false`.
    case bool(Bool)
    /// A number with a fraction, or too large for 64 bits.
    case double(Double)
    /// A whole number.
    case integer(Int64)
    /// `null`.
    case null
    /// An object.
    case object([String: JSONValue])
    /// A string.
    case string(String)

    /// Parses one JSON text in UTF-8 (RFC 8259) in linear time. `nil` if it is invalid, has an object with duplicate
    /// names, is longer than 64 KiB, is nested deeper than 32, or holds more than 10,000 values.
    public init?(parsing bytes: [UInt8]) { self.init(parsing: bytes, within: .outside) }

    /// Parses one JSON text within other limits.
    package init?(parsing bytes: [UInt8], within limits: JSONLimits) {
        guard let value = JSONParser.value(of: bytes, within: limits) else { return nil }
        self = value
    }

    /// Returns the value as JSON text in UTF-8, with sorted keys and unescaped slashes.
    public func serialized() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Only a non-finite number cannot be written, and no JSON text yields one.
        guard let data = try? encoder.encode(self) else { return Array("null".utf8) }
        return Array(data)
    }

    /// The member of that name, if this is an object that has it.
    public subscript(member: String) -> JSONValue? { objectValue?[member] }

    /// The members, if this is an object.
    public var objectValue: [String: JSONValue]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The text, if this is a string.
    public var stringValue: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The elements, if this is an array.
    public var arrayValue: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The truth value, if this is `true` or `false`.
    public var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// True if this is `null`.
    public var isNull: Bool { self == .null }

    /// The number, with or without a fraction.
    public var doubleValue: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// The number, if this is whole. A string of digits counts, since servers write either.
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
    /// Encodes the value by its kind.
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
    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates a whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates an object; the last value of a duplicate name counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
    /// Creates `null`.
    public init(nilLiteral: ()) { self = .null }
}

/// A pointer to a value in a JSON text (RFC 6901): `/data/token`, `/tokens/0`.
public struct JSONPointer: Sendable, Hashable {
    /// The pointer as written.
    public let source: String
    private let words: [String]

    /// Parses `source`. `nil` without a leading slash, or with a `~` that is neither `~0` nor `~1` (§3). The empty
    /// pointer, to the whole text, is not supported.
    public init?(_ source: String) {
        guard source.hasPrefix("/") else { return nil }
        var words: [String] = []
        for written in source.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            var bytes: [UInt8] = []
            var rest = written
            while let byte = rest.popFirst() {
                guard byte == UInt8(ascii: "~") else {
                    bytes.append(byte)
                    continue
                }
                switch rest.popFirst() {
                case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
                case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
                default: return nil
                }
            }
            words.append(String(decoding: bytes, as: UTF8.self))
        }
        self.source = source
        self.words = words
    }

    /// Names from the outermost object to the value, as UTF-8.
    var names: [[UInt8]] { words.map { Array($0.utf8) } }

    /// Returns true if both point to one value, or one to a part of the other's.
    func overlaps(_ other: JSONPointer) -> Bool {
        words.starts(with: other.words) || other.words.starts(with: words)
    }

    /// Returns the value at the pointer in `value` (§4); `nil` if missing.
    public func value(in value: JSONValue) -> JSONValue? {
        var value = value
        for word in words {
            switch value {
            case .object(let members):
                guard let member = members[word] else { return nil }
                value = member
            case .array(let elements):
                // Digits without leading zeros; `-` would refer to the element after the last.
                guard let index = Int(word), String(index) == word, elements.indices.contains(index) else { return nil }
                value = elements[index]
            default:
                return nil
            }
        }
        return value
    }
}
