// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Limits of one JSON text.
package struct JSONLimits: Sendable {
    /// The size of the text in bytes.
    package var size: Int
    /// The nesting depth of arrays and objects.
    package var depth = 32
    /// The number of values.
    package var elements: Int
    /// The size of a member's name in bytes.
    package var name = 256
    /// The length of a number in characters; a written-out `Double` is shorter.
    package var digits = 1024

    /// Limits for texts from servers, callers, and a session store.
    package static let outside = JSONLimits(size: 65_536, elements: 10_000)
    /// Limits for a browser's recording of requests.
    package static let recording = JSONLimits(size: 32 * 1024 * 1024, elements: 2_000_000)
    /// Limits for texts of this machine: files, helpers, and the daemon itself.
    package static let local = JSONLimits(size: 16 * 1024 * 1024, elements: 1_000_000)
}

/// Parser of one JSON text in UTF-8 (RFC 8259), in linear time and one pass.
///
/// It refuses objects with duplicate names, since readers differ in which value they use (RFC 8259 §4). It also refuses
/// numbers beyond a `Double`, unpaired surrogates, and texts that Swift compares slowly (see `TextRuns`).
struct JSONParser {
    private let bytes: [UInt8]
    private let limits: JSONLimits
    private var index = 0
    private var elements = 0

    /// Parses a text; `nil` if it is invalid or exceeds the limits.
    static func value(of bytes: [UInt8], within limits: JSONLimits) -> JSONValue? {
        guard bytes.count <= limits.size else { return nil }
        var parser = JSONParser(bytes: bytes, limits: limits)
        // A byte order mark may be ignored (RFC 8259 §8.1).
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { parser.index = 3 }
        guard let value = parser.value(depth: 0), parser.next == nil else { return nil }
        return value
    }

    private init(bytes: [UInt8], limits: JSONLimits) {
        self.bytes = bytes
        self.limits = limits
    }

    /// The next byte after white space, which is skipped.
    private var next: UInt8? {
        mutating get {
            while index < bytes.count {
                switch bytes[index] {
                case 0x20, 0x09, 0x0A, 0x0D: index += 1
                case let byte: return byte
                }
            }
            return nil
        }
    }

    private mutating func value(depth: Int) -> JSONValue? {
        elements += 1
        guard elements <= limits.elements, let first = next else { return nil }
        switch first {
        case UInt8(ascii: "{"): return depth < limits.depth ? object(depth: depth + 1) : nil
        case UInt8(ascii: "["): return depth < limits.depth ? array(depth: depth + 1) : nil
        case UInt8(ascii: "\""): return string(atMost: limits.size).map { .string($0) }
        case UInt8(ascii: "t"): return word("true", .bool(true))
        case UInt8(ascii: "f"): return word("false", .bool(false))
        case UInt8(ascii: "n"): return word("null", .null)
        default: return number()
        }
    }

    private mutating func word(_ word: StaticString, _ value: JSONValue) -> JSONValue? {
        let text = word.description.utf8
        guard bytes[index...].starts(with: text) else { return nil }
        index += text.count
        return value
    }

    private mutating func array(depth: Int) -> JSONValue? {
        index += 1
        var values: [JSONValue] = []
        if next == UInt8(ascii: "]") {
            index += 1
            return .array(values)
        }
        while let value = value(depth: depth) {
            values.append(value)
            guard let isLast = separator(or: UInt8(ascii: "]")) else { return nil }
            if isLast { return .array(values) }
        }
        return nil
    }

    private mutating func object(depth: Int) -> JSONValue? {
        index += 1
        var members: [String: JSONValue] = [:]
        if next == UInt8(ascii: "}") {
            index += 1
            return .object(members)
        }
        while next == UInt8(ascii: "\""), let name = string(atMost: limits.name), next == UInt8(ascii: ":") {
            index += 1
            guard let value = value(depth: depth), members.updateValue(value, forKey: name) == nil,
                let isLast = separator(or: UInt8(ascii: "}"))
            else { return nil }
            if isLast { return .object(members) }
        }
        return nil
    }

    /// Reads a separator and returns whether it is the end. `nil` if it is neither the end nor a comma.
    private mutating func separator(or end: UInt8) -> Bool? {
        guard let found = next, found == end || found == UInt8(ascii: ",") else { return nil }
        index += 1
        return found == end
    }

    // MARK: Strings (RFC 8259 §7)

    private mutating func string(atMost limit: Int) -> String? {
        index += 1
        var start = index
        // The text before the last escape; empty for most strings.
        var text: [UInt8] = []
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                let rest = bytes[start..<index]
                index += 1
                guard text.count + rest.count <= limit else { return nil }
                let read = String(validating: text.isEmpty ? rest : text + rest, as: UTF8.self)
                return read.flatMap { TextRuns.areShort(in: $0) ? $0 : nil }
            case UInt8(ascii: "\\"):
                text += bytes[start..<index]
                index += 1
                guard appendEscaped(to: &text) else { return nil }
                start = index
            case ..<0x20: return nil
            default: index += 1
            }
        }
        return nil
    }

    private mutating func appendEscaped(to text: inout [UInt8]) -> Bool {
        guard index < bytes.count else { return false }
        defer { index += 1 }
        switch bytes[index] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(bytes[index])
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            guard let scalar = escapedScalar() else { return false }
            text += Array(String(Character(scalar)).utf8)
        default: return false
        }
        return true
    }

    /// Reads the scalar whose `u` is at `index`, and leaves `index` at its last digit.
    private mutating func escapedScalar() -> Unicode.Scalar? {
        guard let unit = codeUnit() else { return nil }
        guard (0xD800...0xDBFF).contains(unit) else { return Unicode.Scalar(unit) }
        guard index + 2 < bytes.count, bytes[index + 1] == UInt8(ascii: "\\"), bytes[index + 2] == UInt8(ascii: "u")
        else { return nil }
        index += 2
        guard let low = codeUnit(), (0xDC00...0xDFFF).contains(low) else { return nil }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
    }

    private mutating func codeUnit() -> UInt32? {
        guard bytes.count - index > 4 else { return nil }
        var unit: UInt32 = 0
        for _ in 0..<4 {
            index += 1
            switch bytes[index] {
            case let digit where digit &- 0x30 < 10: unit = unit << 4 | UInt32(digit - 0x30)
            case let digit where digit | 0x20 >= 0x61 && digit | 0x20 <= 0x66:
                unit = unit << 4 | UInt32((digit | 0x20) - 0x57)
            default: return nil
            }
        }
        return unit
    }

    // MARK: Numbers (RFC 8259 §6)

    private mutating func number() -> JSONValue? {
        let start = index
        if at(UInt8(ascii: "-")) { index += 1 }
        if at(UInt8(ascii: "0")) { index += 1 } else if !skipDigits() { return nil }
        var isWhole = true
        if at(UInt8(ascii: ".")) {
            index += 1
            isWhole = false
            guard skipDigits() else { return nil }
        }
        if at(UInt8(ascii: "e")) || at(UInt8(ascii: "E")) {
            index += 1
            isWhole = false
            if at(UInt8(ascii: "+")) || at(UInt8(ascii: "-")) { index += 1 }
            guard skipDigits() else { return nil }
        }
        guard index - start <= limits.digits else { return nil }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        if isWhole, let whole = Int64(text) { return .integer(whole) }
        guard let number = Double(text), number.isFinite else { return nil }
        // A number whose fraction is too fine for 64 bits is whole, and would be read as whole if written.
        return Int64(exactly: number).map { .integer($0) } ?? .double(number)
    }

    private func at(_ byte: UInt8) -> Bool { index < bytes.count && bytes[index] == byte }

    /// Skips digits and returns whether there were any.
    private mutating func skipDigits() -> Bool {
        let start = index
        while index < bytes.count, bytes[index] &- 0x30 < 10 { index += 1 }
        return index > start
    }
}
