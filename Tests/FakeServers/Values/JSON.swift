// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A JSON value with the members of an object in the order in which they came.
///
/// The tests have a type of their own, so that a mistake in the proxy's JSON is not hidden by one here.
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

    /// The member of that name, if this is an object that has it.
    package subscript(name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The string, if this is one.
    package var string: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    /// The whole number, if this is one.
    package var integer: Int64? {
        guard case .integer(let value) = self else { return nil }
        return value
    }

    /// The members, if this is an object.
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

    /// Creates a member of that name and value.
    package init(_ name: String, _ value: JSON) {
        self.name = name
        self.value = value
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByNilLiteral
{
    /// Creates a string.
    package init(stringLiteral value: String) { self = .string(value) }
    /// Creates a whole number.
    package init(integerLiteral value: Int64) { self = .integer(value) }
    /// `true` or `false`.
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates an object, its members in the order written.
    package init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { JSONMember($0.0, $0.1) })
    }
    /// Creates an array.
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// `null`.
    package init(nilLiteral: ()) { self = .null }
}

/// Returns a JSON string literal (RFC 8259 §7).
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

extension JSON {
    /// Parses one JSON text (RFC 8259) and nothing after it.
    ///
    /// Strict: no name twice in an object, no lone surrogate, no nesting deeper than 64. `nil` if the bytes are not
    /// valid JSON.
    package init?(parsing bytes: [UInt8]) {
        var parser = JSONParser(bytes: bytes)
        guard let value = parser.value(depth: 0) else { return nil }
        parser.skipSpace()
        guard parser.isAtEnd else { return nil }
        self = value
    }
}

/// Reads JSON from front to back.
private struct JSONParser {
    let bytes: [UInt8]
    var position = 0

    var isAtEnd: Bool { position >= bytes.count }
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d { position += 1 }
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    mutating func take(word: StaticString) -> Bool {
        let word = Array("\(word)".utf8)
        guard bytes.count - position >= word.count, Array(bytes[position..<position + word.count]) == word else {
            return false
        }
        position += word.count
        return true
    }

    mutating func value(depth: Int) -> JSON? {
        guard depth < 64 else { return nil }
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return object(depth: depth)
        case UInt8(ascii: "["): return array(depth: depth)
        case UInt8(ascii: "\""): return string().map(JSON.string)
        case UInt8(ascii: "t"): return take(word: "true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return take(word: "false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return take(word: "null") ? .null : nil
        default: return number()
        }
    }

    mutating func object(depth: Int) -> JSON? {
        guard take(UInt8(ascii: "{")) else { return nil }
        var members: [JSONMember] = []
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            skipSpace()
            guard let name = string(), !members.contains(where: { $0.name == name }) else { return nil }
            skipSpace()
            guard take(UInt8(ascii: ":")), let value = value(depth: depth + 1) else { return nil }
            members.append(JSONMember(name, value))
            skipSpace()
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) ? .object(members) : nil
    }

    mutating func array(depth: Int) -> JSON? {
        guard take(UInt8(ascii: "[")) else { return nil }
        var elements: [JSON] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array(elements) }
        repeat {
            guard let element = value(depth: depth + 1) else { return nil }
            elements.append(element)
            skipSpace()
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]")) ? .array(elements) : nil
    }

    mutating func string() -> String? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        var text: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escape() else { return nil }
                text.append(contentsOf: Array(String(scalar).utf8))
            case 0..<0x20: return nil
            default: text.append(byte)
            }
        }
        return nil
    }

    mutating func escape() -> Unicode.Scalar? {
        guard let byte = next else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            guard let high = hexadecimal() else { return nil }
            guard (0xd800..<0xdc00).contains(high) else { return Unicode.Scalar(high) }
            guard take(word: "\\u"), let low = hexadecimal(), (0xdc00..<0xe000).contains(low) else { return nil }
            return Unicode.Scalar(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
        default: return nil
        }
    }

    mutating func hexadecimal() -> UInt32? {
        guard bytes.count - position >= 4 else { return nil }
        let digits = bytes[position..<position + 4]
        guard digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        position += 4
        return UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    /// RFC 8259 §6: no leading zero, no lone minus or point.
    mutating func number() -> JSON? {
        let start = position
        _ = take(UInt8(ascii: "-"))
        let isZero = next == UInt8(ascii: "0")
        let whole = digits()
        guard whole > 0, !isZero || whole == 1 else { return nil }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            guard digits() > 0 else { return nil }
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isWhole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard digits() > 0 else { return nil }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole, let integer = Int64(text) { return .integer(integer) }
        return Double(text).map(JSON.double)
    }

    mutating func digits() -> Int {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        return position - start
    }
}
