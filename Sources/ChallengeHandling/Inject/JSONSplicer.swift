// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Inserts values into a JSON text and leaves every other byte unchanged (RFC 8259), in one pass and linear time.
///
/// The text has to be one value without faults, nested 32 deep at most. Each value becomes the last member of its object,
/// in place of all members of that name. Objects on the way are made if they are missing; if there are two of one name,
/// or anything else than an object, no value is put anywhere.
struct JSONSplicer: ~Copyable {
    /// Member to be set: the rest of its names, and its value.
    private struct Edit {
        let names: ArraySlice<[UInt8]>
        let json: Secret

        var isLast: Bool { names.count == 1 }
        var inner: Edit { Edit(names: names.dropFirst(), json: json) }
    }

    private static let deepest = 32

    private let bytes: [UInt8]
    private var index = 0
    /// Start of the text that is not in `output` yet.
    private var copied = 0
    private var output: SecretBuilder

    /// Returns `text` with the members set.
    static func spliced(_ text: [UInt8], _ members: [BodyMember]) throws(InjectionFault) -> Secret {
        guard String(validating: text, as: UTF8.self) != nil else { throw malformed }
        var splicer = JSONSplicer(text)
        return try splicer.splice(members.map { Edit(names: $0.names[...], json: $0.json) })
    }

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
        output = SecretBuilder(capacity: bytes.count + 256)
    }

    private static let malformed = InjectionFault(
        """
        A value of the credential belongs in the JSON body of this request, but the body is not valid JSON, or is nested \
        deeper than 32.
        """)

    private static let noObject = InjectionFault(
        """
        A value of the credential belongs in an object of the JSON body of this request, but there is something else in \
        its place, or two members have its name.
        """)

    private mutating func splice(_ edits: [Edit]) throws(InjectionFault) -> Secret {
        // A byte order mark may be ignored (RFC 8259 §8.1).
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
        try value(edits, depth: 0)
        guard next == nil else { throw Self.malformed }
        flush(to: bytes.count)
        return output.withBytes { bytes in
            var text = SecretBuilder(capacity: bytes.count)
            text.append(bytes)
            return text.finish()
        }
    }

    /// Appends the text up to `end` to the output.
    private mutating func flush(to end: Int) {
        guard copied < end else { return }
        // A span of the property would lend all of the value.
        let bytes = bytes
        output.append(bytes.span.extracting(copied..<end))
        copied = end
    }

    /// Next byte after white space, which is skipped; nil at the end.
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

    // MARK: Values

    private mutating func value(_ edits: [Edit], depth: Int) throws(InjectionFault) {
        guard let first = next else { throw Self.malformed }
        guard edits.isEmpty || first == UInt8(ascii: "{") else {
            // Scan the value first, so that malformed JSON is reported as malformed.
            try value([], depth: depth)
            throw Self.noObject
        }
        switch first {
        case UInt8(ascii: "{"):
            guard depth < Self.deepest else { throw Self.malformed }
            index += 1
            if edits.isEmpty { try object(depth: depth + 1) } else { try object(edits, depth: depth + 1) }
        case UInt8(ascii: "["):
            guard depth < Self.deepest else { throw Self.malformed }
            index += 1
            try array(depth: depth + 1)
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"): try word("null")
        default: try number()
        }
    }

    private mutating func word(_ word: StaticString) throws(InjectionFault) {
        let text = word.description.utf8
        guard bytes[index...].starts(with: text) else { throw Self.malformed }
        index += text.count
    }

    private mutating func array(depth: Int) throws(InjectionFault) {
        if next == UInt8(ascii: "]") {
            index += 1
            return
        }
        repeat { try value([], depth: depth) } while try !isEnd(UInt8(ascii: "]"))
    }

    /// Reads a separator. Returns true at the end of the array or object.
    private mutating func isEnd(_ end: UInt8) throws(InjectionFault) -> Bool {
        guard let found = next, found == end || found == UInt8(ascii: ",") else { throw Self.malformed }
        index += 1
        return found == end
    }

    /// Reads an object in which nothing is set.
    private mutating func object(depth: Int) throws(InjectionFault) {
        if next == UInt8(ascii: "}") {
            index += 1
            return
        }
        repeat {
            _ = try nameBounds()
            try value([], depth: depth)
        } while try !isEnd(UInt8(ascii: "}"))
    }

    /// Reads an object, after its brace, and sets members in it.
    private mutating func object(_ edits: [Edit], depth: Int) throws(InjectionFault) {
        flush(to: index)
        var isFirst = true
        var found: Set<[UInt8]> = []
        if next == UInt8(ascii: "}") {
            flush(to: index)
            index += 1
        } else {
            var isLast = false
            while !isLast {
                let start = copied
                let name = Self.decoded(bytes[try nameBounds()])
                let own = edits.filter { $0.names.first == name }
                if own.contains(where: \.isLast) {
                    try value([], depth: depth)
                    isLast = try isEnd(UInt8(ascii: "}"))
                    copied = index - 1
                } else {
                    // Readers differ in which of two objects of one name they use.
                    guard own.isEmpty || found.insert(name).inserted else { throw Self.noObject }
                    if !isFirst { output.append(UInt8(ascii: ",")) }
                    isFirst = false
                    copied = start
                    try value(own.map(\.inner), depth: depth)
                    isLast = try isEnd(UInt8(ascii: "}"))
                    flush(to: index - 1)
                }
                // After the comma, which is written with the next member. The brace is still to be copied.
                if !isLast { copied = index }
            }
        }
        appendMembers(edits.filter { $0.isLast || !found.contains($0.names.first ?? []) }, isFirst: isFirst)
    }

    /// Appends members to an object, with the objects around them.
    private mutating func appendMembers(_ edits: [Edit], isFirst: Bool) {
        var isFirst = isFirst
        var written: Set<[UInt8]> = []
        for edit in edits {
            guard let name = edit.names.first, written.insert(name).inserted else { continue }
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            output.append(BodyMember.quoted(Secret(name)))
            output.append(UInt8(ascii: ":"))
            if edit.isLast {
                output.append(edit.json)
            } else {
                output.append(UInt8(ascii: "{"))
                appendMembers(edits.filter { $0.names.first == name }.map(\.inner), isFirst: true)
                output.append(UInt8(ascii: "}"))
            }
        }
    }

    // MARK: Strings and numbers

    /// Reads a member's name and its colon. Returns the bounds of the text between the quotes.
    private mutating func nameBounds() throws(InjectionFault) -> Range<Int> {
        guard next == UInt8(ascii: "\"") else { throw Self.malformed }
        let start = index + 1
        try string()
        let end = index - 1
        guard next == UInt8(ascii: ":") else { throw Self.malformed }
        index += 1
        return start..<end
    }

    /// Reads a string (RFC 8259 §7).
    private mutating func string() throws(InjectionFault) {
        let bytes = bytes
        var index = index + 1
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                self.index = index + 1
                return
            case UInt8(ascii: "\\"):
                guard let length = Self.escape(bytes[index...])?.length else { throw Self.malformed }
                index += length
            case ..<0x20: throw Self.malformed
            default: index += 1
            }
        }
        throw Self.malformed
    }

    private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        guard text.contains(UInt8(ascii: "\\")) else { return Array(text) }
        var decoded: [UInt8] = []
        var rest = text
        while let byte = rest.first {
            if byte == UInt8(ascii: "\\"), let (scalar, length) = escape(rest) {
                decoded += Array(String(Character(scalar)).utf8)
                rest = rest.dropFirst(length)
            } else {
                decoded.append(byte)
                rest = rest.dropFirst()
            }
        }
        return decoded
    }

    /// Returns the character of the escape that `text` begins with, and its length; nil if invalid or half a pair.
    private static func escape(_ text: ArraySlice<UInt8>) -> (scalar: Unicode.Scalar, length: Int)? {
        guard text.count > 1, case let kind = text[text.startIndex + 1] else { return nil }
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return (Unicode.Scalar(kind), 2)
        case UInt8(ascii: "b"): return ("\u{8}", 2)
        case UInt8(ascii: "f"): return ("\u{C}", 2)
        case UInt8(ascii: "n"): return ("\n", 2)
        case UInt8(ascii: "r"): return ("\r", 2)
        case UInt8(ascii: "t"): return ("\t", 2)
        case UInt8(ascii: "u"): break
        default: return nil
        }
        guard let unit = codeUnit(text, at: text.startIndex) else { return nil }
        guard (0xD800...0xDBFF).contains(unit) else { return Unicode.Scalar(unit).map { ($0, 6) } }
        guard let low = codeUnit(text, at: text.startIndex + 6), (0xDC00...0xDFFF).contains(low) else { return nil }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)).map { ($0, 12) }
    }

    /// Returns the number of `\uXXXX` at `start`; nil for anything else.
    private static func codeUnit(_ text: ArraySlice<UInt8>, at start: Int) -> UInt32? {
        guard text.endIndex - start >= 6, text[start] == UInt8(ascii: "\\"), text[start + 1] == UInt8(ascii: "u") else {
            return nil
        }
        var unit: UInt32 = 0
        for index in start + 2..<start + 6 {
            guard let digit = text[index].hexadecimalValue else { return nil }
            unit = unit << 4 | UInt32(truncatingIfNeeded: digit)
        }
        return unit
    }

    /// Reads a number (RFC 8259 §6).
    private mutating func number() throws(InjectionFault) {
        if at(UInt8(ascii: "-")) { index += 1 }
        if at(UInt8(ascii: "0")) { index += 1 } else { try digits() }
        if at(UInt8(ascii: ".")) {
            index += 1
            try digits()
        }
        guard at(UInt8(ascii: "e")) || at(UInt8(ascii: "E")) else { return }
        index += 1
        if at(UInt8(ascii: "+")) || at(UInt8(ascii: "-")) { index += 1 }
        try digits()
    }

    private func at(_ byte: UInt8) -> Bool { index < bytes.count && bytes[index] == byte }

    private mutating func digits() throws(InjectionFault) {
        let start = index
        while index < bytes.count, bytes[index].isDigit { index += 1 }
        guard index > start else { throw Self.malformed }
    }
}
