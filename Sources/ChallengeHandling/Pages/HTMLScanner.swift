// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Scanner of the tags and texts in HTML, by the rules of WHATWG HTML §13.2.5. It visits each byte a bounded number of times.
struct HTMLScanner {
    /// A start or end tag.
    struct Tag {
        let name: TagName
        let isEnd: Bool
        var isSelfClosing = false
        /// The bytes after the name, without the last `>`.
        fileprivate(set) var attributes: Range<Int>
        /// The value of `dir`, as written.
        fileprivate(set) var direction: Range<Int>?
    }

    enum Token {
        case tag(Tag)
        /// Text; of an element without markup if `isRaw`.
        case text(Range<Int>, isRaw: Bool)
    }

    let bytes: [UInt8]
    /// True inside SVG and MathML, where CDATA sections are text, and every element has markup.
    var isForeign = false
    private var position = 0
    /// The element without markup whose text follows.
    private var rawElement: TagName?

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the next token; `nil` at the end.
    mutating func next() -> Token? {
        if let name = rawElement {
            rawElement = nil
            let start = position
            skipText(of: name)
            if position > start { return .text(start..<position, isRaw: true) }
        }
        let start = position
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "<") else {
                position += 1
                continue
            }
            guard position + 1 < bytes.count else { break }
            let next = bytes[position + 1]
            guard
                next.isLetter || next == UInt8(ascii: "/") || next == UInt8(ascii: "!")
                    || next == UInt8(ascii: "?")
            else {
                position += 1
                continue
            }
            // The text before it comes first.
            if position > start { return .text(start..<position, isRaw: false) }
            return markup(next)
        }
        position = bytes.count
        return start < position ? .text(start..<position, isRaw: false) : nil
    }

    /// Reads what begins with the `<` at the position.
    private mutating func markup(_ next: UInt8) -> Token? {
        let start = position
        position += 2
        if next == UInt8(ascii: "!") || next == UInt8(ascii: "?") {
            return declaration(next).map { .text($0, isRaw: true) } ?? .text(start..<start, isRaw: false)
        }
        let isEnd = next == UInt8(ascii: "/")
        if isEnd {
            guard position < bytes.count, bytes[position].isLetter else {
                if position < bytes.count { skip(past: UInt8(ascii: ">")) }
                return .text(start..<start, isRaw: false)
            }
        } else {
            position -= 1
        }
        let nameStart = position
        while position < bytes.count, !Self.endsName(bytes[position]) { position += 1 }
        let name = TagName(bytes[nameStart..<position])
        var tag = Tag(name: name, isEnd: isEnd, attributes: position..<position)
        // A tag that the end of the page cuts off is none.
        guard let end = HTMLAttributes.end(in: bytes, from: position, direction: &tag.direction) else {
            position = bytes.count
            return nil
        }
        tag.isSelfClosing = end > position && bytes[end - 1] == UInt8(ascii: "/")
        tag.attributes = position..<end
        position = end + 1
        if !isEnd, !isForeign, name.hasNoMarkup { rawElement = name }
        return .tag(tag)
    }

    /// Returns the attributes of a tag.
    func attributes(of tag: Tag) -> HTMLAttributes { HTMLAttributes(bytes, tag.attributes) }

    /// Skips a comment, doctype or processing instruction. Returns the text of a CDATA section.
    private mutating func declaration(_ next: UInt8) -> Range<Int>? {
        if isForeign, bytes[(position - 1)...].starts(with: "![CDATA[".utf8) {
            let start = position + 7
            position = start
            while position < bytes.count, !bytes[position...].starts(with: "]]>".utf8) { position += 1 }
            let end = position
            position = min(bytes.count, position + 3)
            return start..<end
        }
        guard next == UInt8(ascii: "!"), bytes[position...].starts(with: "--".utf8) else {
            skip(past: UInt8(ascii: ">"))
            return nil
        }
        // `<!-->` and `<!--->` are whole comments.
        position += 2
        if bytes[position...].starts(with: ">".utf8) || bytes[position...].starts(with: "->".utf8) {
            skip(past: UInt8(ascii: ">"))
            return nil
        }
        while let dash = bytes[position...].firstIndex(of: UInt8(ascii: "-")) {
            position = dash + 1
            if bytes[position...].starts(with: "->".utf8) {
                position += 2
                return nil
            }
            if bytes[position...].starts(with: "-!>".utf8) {
                position += 3
                return nil
            }
        }
        position = bytes.count
        return nil
    }

    /// Advances to the end tag of an element that contains only text.
    private mutating func skipText(of name: TagName) {
        guard name != .plaintext else {
            position = bytes.count
            return
        }
        var isEscaped = false
        var isDoublyEscaped = false
        while position < bytes.count {
            let byte = bytes[position]
            if name == .script, isEscaped, byte == UInt8(ascii: "-"), bytes[position...].starts(with: "-->".utf8) {
                (isEscaped, isDoublyEscaped) = (false, false)
                position += 3
                continue
            }
            guard byte == UInt8(ascii: "<") else {
                position += 1
                continue
            }
            // WHATWG HTML §13.2.5.20 and on: a script may write a script within a comment.
            if name == .script, !isEscaped, bytes[position...].starts(with: "<!--".utf8) {
                isEscaped = true
                // `<!-->` ends at once.
                position += 2
                continue
            }
            let isEnd = position + 1 < bytes.count && bytes[position + 1] == UInt8(ascii: "/")
            if isEnd, hasName(name, at: position + 2) {
                if !isDoublyEscaped { return }
                isDoublyEscaped = false
            } else if name == .script, isEscaped, !isEnd, hasName(name, at: position + 1) {
                isDoublyEscaped = true
            }
            position += 1
        }
    }

    private func hasName(_ name: TagName, at start: Int) -> Bool {
        var end = start
        while end < bytes.count, end - start <= TagName.longestRaw, !Self.endsName(bytes[end]) { end += 1 }
        return end < bytes.count && Self.endsName(bytes[end]) && TagName(bytes[start..<end]) == name
    }

    private mutating func skip(past byte: UInt8) {
        position = bytes[position...].firstIndex(of: byte).map { $0 + 1 } ?? bytes.count
    }

    private static func endsName(_ byte: UInt8) -> Bool {
        byte.isASCIIWhitespace || byte == UInt8(ascii: "/") || byte == UInt8(ascii: ">")
    }
}
