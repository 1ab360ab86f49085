// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Scanner of the tags in HTML, by the rules of WHATWG HTML §13.2.5. It skips comments and the text of elements without
/// markup, and visits each byte a bounded number of times.
struct HTMLScanner {
    /// A start or end tag.
    struct Tag: Equatable {
        /// The name in lower case.
        var name: String
        var isEnd = false
        /// The attributes, names in lower case. The first of repeated attributes counts.
        var attributes: [(name: String, value: String)] = []

        subscript(attribute: String) -> String? { attributes.first { $0.name == attribute }?.value }

        static func == (left: Tag, right: Tag) -> Bool {
            left.name == right.name && left.isEnd == right.isEnd
                && left.attributes.elementsEqual(right.attributes, by: ==)
        }
    }

    private static let attributeLimit = 64
    private static let nameLimit = 64
    /// Elements whose text is never markup (WHATWG HTML §13.2.6.2).
    private static let rawElements: Set<String> = [
        "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "template",
    ]

    private let bytes: [UInt8]
    /// Limit of an attribute's value in bytes.
    private let valueLimit: Int
    private var position = 0

    init(_ bytes: [UInt8], valueLimit: Int = 16 * 1024) {
        self.bytes = bytes
        self.valueLimit = valueLimit
    }

    /// Returns the next tag; `nil` at the end.
    mutating func next() -> Tag? {
        while let open = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = open + 1
            if skipDeclaration() { continue }
            let isEnd = take(UInt8(ascii: "/"))
            guard position < bytes.count, Self.isLetter(bytes[position]) else {
                if isEnd { skip(past: UInt8(ascii: ">")) }
                continue
            }
            var tag = Tag(name: name(), isEnd: isEnd)
            // A tag cut off by the end of the page does not count.
            guard readAttributes(of: &tag) else { return nil }
            if !isEnd, Self.rawElements.contains(tag.name) { skipText(of: tag.name) }
            return tag
        }
        position = bytes.count
        return nil
    }

    /// Skips a comment, doctype or processing instruction after its `<`.
    private mutating func skipDeclaration() -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "!") || bytes[position] == UInt8(ascii: "?")
        else {
            return false
        }
        guard bytes[position...].starts(with: "!--".utf8) else {
            skip(past: UInt8(ascii: ">"))
            return true
        }
        // `<!-->` and `<!--->` are whole comments.
        position += 3
        var end = position
        if bytes[end...].starts(with: ">".utf8) || bytes[end...].starts(with: "->".utf8) {
            skip(past: UInt8(ascii: ">"))
            return true
        }
        while let dash = bytes[end...].firstIndex(of: UInt8(ascii: "-")) {
            if bytes[dash...].starts(with: "-->".utf8) {
                position = dash + 3
                return true
            }
            if bytes[dash...].starts(with: "--!>".utf8) {
                position = dash + 4
                return true
            }
            end = dash + 1
        }
        position = bytes.count
        return true
    }

    private mutating func readAttributes(of tag: inout Tag) -> Bool {
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: ">") {
                position += 1
                return true
            }
            if Self.isSpace(byte) || byte == UInt8(ascii: "/") {
                position += 1
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
        let start = position
        while position < bytes.count, !Self.isSpace(bytes[position]), bytes[position] != UInt8(ascii: "/"),
            bytes[position] != UInt8(ascii: ">")
        { position += 1 }
        return text(start..<min(position, start + Self.nameLimit)).lowercased()
    }

    private mutating func attributeName(isWanted: Bool) -> String? {
        let start = position
        // A leading `=` belongs to the name (WHATWG HTML §13.2.5.32), so at least one byte is consumed.
        position += 1
        while position < bytes.count, !Self.isSpace(bytes[position]), bytes[position] != UInt8(ascii: "/"),
            bytes[position] != UInt8(ascii: ">"), bytes[position] != UInt8(ascii: "=")
        { position += 1 }
        return isWanted ? text(start..<min(position, start + Self.nameLimit)).lowercased() : nil
    }

    private mutating func attributeValue() -> String? {
        guard position < bytes.count else { return nil }
        let quote = bytes[position]
        let start: Int
        if quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
            start = position + 1
            guard let end = bytes[start...].firstIndex(of: quote) else { return nil }
            position = end + 1
            return value(start..<end)
        }
        start = position
        while position < bytes.count, !Self.isSpace(bytes[position]), bytes[position] != UInt8(ascii: ">") {
            position += 1
        }
        return value(start..<position)
    }

    /// Returns the decoded value. A value that is too long is dropped, since half of a token is useless.
    private func value(_ range: Range<Int>) -> String {
        range.count > valueLimit ? "" : TextRuns.broken(HTMLText.decoded(text(range)))
    }

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    /// Advances to the end tag of an element that contains only text.
    private mutating func skipText(of name: String) {
        let end = Array("</\(name)".utf8)
        while let open = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = open + 1
            let after = open + end.count
            guard after < bytes.count else { continue }
            let isEnd = zip(bytes[open..<after], end).allSatisfy { $0 == $1 || (Self.isLetter($0) && $0 | 0x20 == $1) }
            let next = bytes[after]
            if isEnd, Self.isSpace(next) || next == UInt8(ascii: "/") || next == UInt8(ascii: ">") {
                position = open
                return
            }
        }
        position = bytes.count
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private mutating func skip(past byte: UInt8) {
        position = bytes[position...].firstIndex(of: byte).map { $0 + 1 } ?? bytes.count
    }

    private mutating func skipSpaces() {
        while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
    }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) && byte != 0x0B }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
}

/// Decoder of HTML character references (WHATWG HTML §13.2.5.72): numbers, and names that escaping functions write.
enum HTMLText {
    private static let names: [String: Unicode.Scalar] = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": "\u{A0}", "sol": "/", "colon": ":",
        "equals": "=", "plus": "+", "num": "#", "lowbar": "_", "period": ".", "comma": ",", "semi": ";", "quest": "?",
        "percnt": "%", "lpar": "(", "rpar": ")", "excl": "!", "ast": "*", "commat": "@", "dollar": "$", "Tab": "\t",
        "NewLine": "\n", "grave": "`", "lbrace": "{", "rbrace": "}", "lsqb": "[", "rsqb": "]", "bsol": "\\",
    ]

    /// Returns `text` with its references decoded. Anything else is unchanged.
    static func decoded(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var decoded: [UInt8] = []
        // As bytes: a character with a combining accent is one `Character`.
        var rest = Array(text.utf8)[...]
        while let sign = rest.firstIndex(of: UInt8(ascii: "&")) {
            decoded += rest[..<sign]
            rest = rest[(sign + 1)...]
            let reference = rest.prefix(12).prefix { $0 != UInt8(ascii: ";") }
            let end = reference.endIndex
            guard end < rest.endIndex, rest[end] == UInt8(ascii: ";"),
                let scalar = scalar(String(decoding: reference, as: UTF8.self))
            else {
                decoded.append(UInt8(ascii: "&"))
                continue
            }
            decoded += String(scalar).utf8
            rest = rest[(end + 1)...]
        }
        return String(decoding: decoded + rest, as: UTF8.self)
    }

    private static func scalar(_ reference: String) -> Unicode.Scalar? {
        guard reference.hasPrefix("#") else { return names[reference] }
        let number = reference.dropFirst()
        let isHexadecimal = number.first == "x" || number.first == "X"
        let digits = isHexadecimal ? number.dropFirst() : number
        guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }),
            let value = UInt32(digits, radix: isHexadecimal ? 16 : 10), value != 0
        else { return nil }
        return Unicode.Scalar(value)
    }
}
