// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Attributes of a tag, as written (WHATWG HTML §13.2.5.32 to §13.2.5.39). The first of repeated ones counts.
struct HTMLAttributes {
    private let bytes: [UInt8]
    /// Names that were asked for, with the range of each value.
    private var values: [(name: String, value: Range<Int>)] = []

    /// Names that a page's forms and links need.
    private static let wanted: Set<String> = [
        "accept-charset", "action", "autocomplete", "charset", "checked", "class", "cols", "content", "dir", "dirname",
        "disabled", "enctype", "form", "formaction", "formenctype", "formmethod", "formnovalidate", "href",
        "http-equiv", "id", "max", "maxlength", "method", "min", "multiple", "name", "novalidate", "readonly",
        "required", "selected", "size", "step", "title", "type", "value", "wrap", "label", "encoding", "aria-label",
    ]
    private static let longestName = 16

    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        Self.read(bytes, from: range.lowerBound, to: range.upperBound) { name, value in
            guard name.count <= Self.longestName else { return }
            let name = String(decoding: bytes[name], as: UTF8.self).lowercased()
            guard Self.wanted.contains(name), !values.contains(where: { $0.name == name }) else { return }
            values.append((name, value))
        }
    }

    /// Returns the value of an attribute with its references decoded, in UTF-8 as far as the page is.
    func bytes(_ name: String) -> [UInt8]? {
        values.first { $0.name == name }.map { HTMLText.decoded(bytes[$0.value]) }
    }

    subscript(name: String) -> String? {
        bytes(name).map { TextRuns.broken(String(decoding: $0, as: UTF8.self)) }
    }

    /// Returns the value in lower case, without blanks around it.
    func word(_ name: String) -> String? {
        self[name].map { HTMLPage.trimmed($0).lowercased() }
    }

    func has(_ name: String) -> Bool { values.contains { $0.name == name } }

    /// Returns the index of the `>` that ends the tag whose name ends at `start`; `nil` if the page ends first. `direction` is the
    /// value of the attribute `dir`, which elements around an input may have.
    static func end(in bytes: [UInt8], from start: Int, direction: inout Range<Int>?) -> Int? {
        read(bytes, from: start, to: bytes.count) { name, value in
            guard name.count == 3, direction == nil, bytes[name.lowerBound] | 0x20 == UInt8(ascii: "d"),
                bytes[name.lowerBound + 1] | 0x20 == UInt8(ascii: "i"),
                bytes[name.lowerBound + 2] | 0x20 == UInt8(ascii: "r")
            else { return }
            direction = value
        }
    }

    @inline(__always) @discardableResult
    private static func read(
        _ bytes: [UInt8], from start: Int, to limit: Int, _ visit: (_ name: Range<Int>, _ value: Range<Int>) -> Void
    ) -> Int? {
        var position = start
        while position < limit {
            let byte = bytes[position]
            if byte == UInt8(ascii: ">") { return position }
            if byte.isASCIIWhitespace || byte == UInt8(ascii: "/") {
                position += 1
                continue
            }
            let name = position
            // A leading `=` belongs to the name (WHATWG HTML §13.2.5.32).
            position += 1
            while position < limit, !bytes[position].isASCIIWhitespace, bytes[position] != UInt8(ascii: "/"),
                bytes[position] != UInt8(ascii: ">"), bytes[position] != UInt8(ascii: "=")
            { position += 1 }
            let nameEnd = position
            while position < limit, bytes[position].isASCIIWhitespace { position += 1 }
            guard position < limit, bytes[position] == UInt8(ascii: "=") else {
                visit(name..<nameEnd, nameEnd..<nameEnd)
                continue
            }
            position += 1
            while position < limit, bytes[position].isASCIIWhitespace { position += 1 }
            guard position < limit else {
                visit(name..<nameEnd, nameEnd..<nameEnd)
                break
            }
            let quote = bytes[position]
            let value: Int
            if quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
                position += 1
                value = position
                while position < limit, bytes[position] != quote { position += 1 }
                guard position < limit else { return nil }
                visit(name..<nameEnd, value..<position)
                position += 1
            } else {
                value = position
                while position < limit, !bytes[position].isASCIIWhitespace, bytes[position] != UInt8(ascii: ">") {
                    position += 1
                }
                visit(name..<nameEnd, value..<position)
            }
        }
        return nil
    }
}
