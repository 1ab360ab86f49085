// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Takes the tags out of HTML, by the rules of WHATWG HTML section 13.2.5 as far as tags go: comments are skipped, and so is
/// the text of elements that hold no markup. Passes over each byte a bounded number of times.
struct HTMLScanner {
    /// A start or end tag.
    struct Tag: Equatable {
        /// In lower case.
        var name: String
        var isEnd = false
        /// Names in lower case; of one written twice the first counts.
        var attributes: [(name: String, value: String)] = []

        subscript(attribute: String) -> String? { attributes.first { $0.name == attribute }?.value }

        static func == (left: Tag, right: Tag) -> Bool {
            left.name == right.name && left.isEnd == right.isEnd
                && left.attributes.elementsEqual(right.attributes, by: ==)
        }
    }

    private static let attributeLimit = 64
    private static let nameLimit = 64
    private static let valueLimit = 16 * 1024
    /// Their text is no markup, whatever stands in it (section 13.2.6.2).
    private static let rawElements: Set<String> = [
        "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "template",
    ]

    private let bytes: [UInt8]
    private var place = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The next tag; `nil` at the end.
    mutating func next() -> Tag? {
        while let open = bytes[place...].firstIndex(of: UInt8(ascii: "<")) {
            place = open + 1
            if skipDeclaration() { continue }
            let isEnd = take(UInt8(ascii: "/"))
            guard place < bytes.count, Self.isLetter(bytes[place]) else {
                if isEnd { skip(past: UInt8(ascii: ">")) }
                continue
            }
            var tag = Tag(name: name(), isEnd: isEnd)
            // A tag that the page breaks off in is none.
            guard readAttributes(of: &tag) else { return nil }
            if !isEnd, Self.rawElements.contains(tag.name) { skipText(of: tag.name) }
            return tag
        }
        place = bytes.count
        return nil
    }

    /// Comments, doctypes and processing instructions; the `<` is taken already.
    private mutating func skipDeclaration() -> Bool {
        guard place < bytes.count, bytes[place] == UInt8(ascii: "!") || bytes[place] == UInt8(ascii: "?") else {
            return false
        }
        guard bytes[place...].starts(with: "!--".utf8) else {
            skip(past: UInt8(ascii: ">"))
            return true
        }
        // `<!-->` and `<!--->` are whole comments.
        place += 3
        var end = place
        if bytes[end...].starts(with: ">".utf8) || bytes[end...].starts(with: "->".utf8) {
            skip(past: UInt8(ascii: ">"))
            return true
        }
        while let dash = bytes[end...].firstIndex(of: UInt8(ascii: "-")) {
            if bytes[dash...].starts(with: "-->".utf8) {
                place = dash + 3
                return true
            }
            if bytes[dash...].starts(with: "--!>".utf8) {
                place = dash + 4
                return true
            }
            end = dash + 1
        }
        place = bytes.count
        return true
    }

    private mutating func readAttributes(of tag: inout Tag) -> Bool {
        while place < bytes.count {
            let byte = bytes[place]
            if byte == UInt8(ascii: ">") {
                place += 1
                return true
            }
            if Self.isSpace(byte) || byte == UInt8(ascii: "/") {
                place += 1
                continue
            }
            let name = attributeName(isWanted: tag.attributes.count < Self.attributeLimit)
            skipSpaces()
            var value = ""
            if take(UInt8(ascii: "=")) {
                skipSpaces()
                guard let found = attributeValue() else { return false }
                value = found
            }
            guard tag.attributes.count < Self.attributeLimit, let name, tag[name] == nil else { continue }
            tag.attributes.append((name, value))
        }
        return false
    }

    private mutating func name() -> String {
        let start = place
        while place < bytes.count, !Self.isSpace(bytes[place]), bytes[place] != UInt8(ascii: "/"),
            bytes[place] != UInt8(ascii: ">")
        { place += 1 }
        return text(start..<min(place, start + Self.nameLimit)).lowercased()
    }

    private mutating func attributeName(isWanted: Bool) -> String? {
        let start = place
        // A `=` at the start belongs to the name (section 13.2.5.32), so something is always taken.
        place += 1
        while place < bytes.count, !Self.isSpace(bytes[place]), bytes[place] != UInt8(ascii: "/"),
            bytes[place] != UInt8(ascii: ">"), bytes[place] != UInt8(ascii: "=")
        { place += 1 }
        return isWanted ? text(start..<min(place, start + Self.nameLimit)).lowercased() : nil
    }

    private mutating func attributeValue() -> String? {
        guard place < bytes.count else { return nil }
        let quote = bytes[place]
        let start: Int
        if quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
            start = place + 1
            guard let end = bytes[start...].firstIndex(of: quote) else { return nil }
            place = end + 1
            return value(start..<end)
        }
        start = place
        while place < bytes.count, !Self.isSpace(bytes[place]), bytes[place] != UInt8(ascii: ">") { place += 1 }
        return value(start..<place)
    }

    /// One that is too long is not seen at all: half of a token is none.
    private func value(_ range: Range<Int>) -> String {
        range.count > Self.valueLimit ? "" : TextRuns.broken(HTMLText.decoded(text(range)))
    }

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    /// Goes to the end tag of an element that holds text only.
    private mutating func skipText(of name: String) {
        let end = Array("</\(name)".utf8)
        while let open = bytes[place...].firstIndex(of: UInt8(ascii: "<")) {
            place = open + 1
            let after = open + end.count
            guard after < bytes.count else { continue }
            let isEnd = zip(bytes[open..<after], end).allSatisfy { $0 == $1 || (Self.isLetter($0) && $0 | 0x20 == $1) }
            let next = bytes[after]
            if isEnd, Self.isSpace(next) || next == UInt8(ascii: "/") || next == UInt8(ascii: ">") {
                place = open
                return
            }
        }
        place = bytes.count
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard place < bytes.count, bytes[place] == byte else { return false }
        place += 1
        return true
    }

    private mutating func skip(past byte: UInt8) {
        place = bytes[place...].firstIndex(of: byte).map { $0 + 1 } ?? bytes.count
    }

    private mutating func skipSpaces() {
        while place < bytes.count, Self.isSpace(bytes[place]) { place += 1 }
    }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) && byte != 0x0B }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
}
