// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Parser of structured fields (RFC 8941 §4.2), in time proportional to the text.
package struct StructuredFieldParser {
    private let text: [UInt8]
    private var index = 0

    private struct Malformed: Error {}

    private init(_ text: [UInt8]) { self.text = text }

    /// Returns the members of a dictionary in order, each key once; nil for any other text (§4.2.2).
    package static func dictionary(_ text: [UInt8]) -> [(key: String, member: StructuredMember)]? {
        whole(text) { (parser) throws(Malformed) in try parser.dictionary() }
    }

    /// Returns the members of a list; nil for any other text (§4.2.1).
    package static func list(_ text: [UInt8]) -> [StructuredMember]? {
        whole(text) { (parser) throws(Malformed) in try parser.list() }
    }

    /// Returns an item; nil for any other text (§4.2.3).
    package static func item(_ text: [UInt8]) -> StructuredItem? {
        whole(text) { (parser) throws(Malformed) in try parser.item() }
    }

    private static func whole<Result>(
        _ text: [UInt8], _ parse: (inout StructuredFieldParser) throws(Malformed) -> Result
    ) -> Result? {
        var parser = StructuredFieldParser(text)
        do throws(Malformed) {
            parser.skipSpaces()
            let result = try parse(&parser)
            parser.skipSpaces()
            return parser.next == nil ? result : nil
        } catch {
            return nil
        }
    }

    // MARK: Containers

    private mutating func dictionary() throws(Malformed) -> [(key: String, member: StructuredMember)] {
        var members: [(key: String, member: StructuredMember)] = []
        var places: [String: Int] = [:]
        while next != nil {
            let key = try key()
            let member: StructuredMember
            if take(UInt8(ascii: "=")) {
                member = try self.member()
            } else {
                member = .item(StructuredItem(.boolean(true), try parameters()))
            }
            if let place = places[key] {
                members[place].member = member
            } else {
                places[key] = members.count
                members.append((key, member))
            }
            guard try takeComma() else { break }
        }
        return members
    }

    private mutating func list() throws(Malformed) -> [StructuredMember] {
        var members: [StructuredMember] = []
        while next != nil {
            members.append(try member())
            guard try takeComma() else { break }
        }
        return members
    }

    /// Consumes a comma with blanks around it. Returns false at the end of the text; throws for anything else.
    private mutating func takeComma() throws(Malformed) -> Bool {
        skipBlanks()
        guard next != nil else { return false }
        guard take(UInt8(ascii: ",")) else { throw Malformed() }
        skipBlanks()
        // No comma at the end.
        if next == nil { throw Malformed() }
        return true
    }

    private mutating func member() throws(Malformed) -> StructuredMember {
        guard take(UInt8(ascii: "(")) else { return .item(try item()) }
        var items: [StructuredItem] = []
        while true {
            skipSpaces()
            if take(UInt8(ascii: ")")) { return .innerList(items, try parameters()) }
            items.append(try item())
            guard next == .space || next == UInt8(ascii: ")") else { throw Malformed() }
        }
    }

    private mutating func item() throws(Malformed) -> StructuredItem {
        let value = try value()
        return StructuredItem(value, try parameters())
    }

    private mutating func parameters() throws(Malformed) -> StructuredParameters {
        var found: [(key: String, value: StructuredValue)] = []
        var places: [String: Int] = [:]
        while take(UInt8(ascii: ";")) {
            skipSpaces()
            let key = try key()
            let value = take(UInt8(ascii: "=")) ? try value() : .boolean(true)
            if let place = places[key] {
                found[place].value = value
            } else {
                places[key] = found.count
                found.append((key, value))
            }
        }
        return StructuredParameters(unique: found)
    }

    // MARK: Values

    private mutating func key() throws(Malformed) -> String {
        let start = index
        guard let first = next, first.isLowercaseLetter || first == UInt8(ascii: "*") else { throw Malformed() }
        while let byte = next, StructuredFieldWriter.isOfKey(byte) { index += 1 }
        return string(from: start)
    }

    private mutating func value() throws(Malformed) -> StructuredValue {
        guard let first = next else { throw Malformed() }
        switch first {
        case UInt8(ascii: "\""): return .string(try quoted())
        case UInt8(ascii: ":"): return .bytes(try bytes())
        case UInt8(ascii: "?"): return .boolean(try boolean())
        case UInt8(ascii: "-"): return try number()
        case let byte where byte.isDigit: return try number()
        case let byte where byte == UInt8(ascii: "*") || byte.isAlphanumeric: return .token(token())
        default: throw Malformed()
        }
    }

    private mutating func quoted() throws(Malformed) -> String {
        index += 1
        var bytes: [UInt8] = []
        while let byte = next {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: bytes, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next, escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else {
                    throw Malformed()
                }
                index += 1
                bytes.append(escaped)
            case 0x20...0x7E: bytes.append(byte)
            default: throw Malformed()
            }
        }
        throw Malformed()
    }

    private mutating func bytes() throws(Malformed) -> [UInt8] {
        index += 1
        let start = index
        while let byte = next, byte != UInt8(ascii: ":") {
            let isDigit = byte.isAlphanumeric || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
            guard isDigit || byte == UInt8(ascii: "=") else { throw Malformed() }
            index += 1
        }
        guard next != nil, let bytes = Base64.decode(string(from: start)) else { throw Malformed() }
        index += 1
        return bytes
    }

    private mutating func boolean() throws(Malformed) -> Bool {
        index += 1
        guard let byte = next, byte == UInt8(ascii: "0") || byte == UInt8(ascii: "1") else { throw Malformed() }
        index += 1
        return byte == UInt8(ascii: "1")
    }

    private mutating func token() -> String {
        let start = index
        while let byte = next,
            ByteClass.token.contains(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "/")
        { index += 1 }
        return string(from: start)
    }

    /// Returns an integer of at most 15 digits, or a decimal of at most 12 and 3 (§4.2.4).
    private mutating func number() throws(Malformed) -> StructuredValue {
        let isNegative = take(UInt8(ascii: "-"))
        let whole = try digits(upTo: 15)
        guard take(UInt8(ascii: ".")) else { return .integer(isNegative ? -whole.value : whole.value) }
        let fraction = try digits(upTo: 3)
        guard whole.count <= 12 else { throw Malformed() }
        let scale: Int64 = fraction.count == 1 ? 100 : fraction.count == 2 ? 10 : 1
        let thousandths = whole.value * 1000 + fraction.value * scale
        return .decimal(isNegative ? -thousandths : thousandths)
    }

    private mutating func digits(upTo limit: Int) throws(Malformed) -> (value: Int64, count: Int) {
        var (value, count) = (Int64(0), 0)
        while let byte = next, byte.isDigit {
            count += 1
            guard count <= limit else { throw Malformed() }
            value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            index += 1
        }
        guard count > 0 else { throw Malformed() }
        return (value, count)
    }

    // MARK: Bytes

    private var next: UInt8? { index < text.count ? text[index] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func skipSpaces() { while next == .space { index += 1 } }

    private mutating func skipBlanks() { while next?.isBlank == true { index += 1 } }

    private func string(from start: Int) -> String { String(decoding: text[start..<index], as: UTF8.self) }
}

extension UInt8 {
    /// True for `a` to `z`.
    var isLowercaseLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }
}
