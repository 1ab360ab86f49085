// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Position in the text of a field of challenges, with the parts of its grammar.
///
/// Each step looks ahead by two words at most, so that a field is read in linear time.
struct ChallengeCursor {
    /// The strongest separator between two elements.
    enum Separator {
        case blank, comma
    }

    private let bytes: [UInt8]
    private(set) var position = 0
    /// True if no single-quoted value can end after this position.
    private var lacksSingleQuote = false

    init(_ text: String) { bytes = Array(text.utf8) }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    // MARK: Separators

    /// True at the end, or at a blank, comma or semicolon.
    var isAtSeparator: Bool { current.map { $0.isBlank || $0 == comma || $0 == semicolon } ?? true }

    /// Skips blanks, commas and semicolons (empty elements, RFC 9110 §5.6.1.2). `nil` at the end.
    mutating func skipSeparators() -> Separator? {
        var separator = Separator.blank
        while let byte = current, byte.isBlank || byte == comma || byte == semicolon {
            if byte == comma { separator = .comma }
            position += 1
        }
        return position < bytes.count ? separator : nil
    }

    mutating func skipBlanks() { skip(\.isBlank) }

    /// Skips `=` with blanks before it; false, without moving, at anything else.
    mutating func skipEquals() -> Bool {
        let start = position
        skipBlanks()
        guard current == equals else {
            position = start
            return false
        }
        position += 1
        return true
    }

    // MARK: Words

    mutating func takeToken() -> String { take(ByteClass.token.contains) }

    /// Takes a token68 without and with its padding, if nothing else follows in the element: 1*( ALPHA / DIGIT / "-" /
    /// "." / "_" / "~" / "+" / "/" ) *"=".
    mutating func takeToken68() -> (text: String, padding: String)? {
        let start = position
        let text = take { $0.isAlphanumeric || "-._~+/".utf8.contains($0) }
        let padding = take { $0 == equals }
        let end = position
        skipBlanks()
        guard !text.isEmpty, current == nil || current == comma else {
            position = start
            return nil
        }
        position = end
        return (text, padding)
    }

    /// Skips the rest of a word, with quoted strings in it. `isSound` becomes false if one is only a part of the word.
    mutating func skipWord(_ isSound: inout Bool) {
        let start = position
        while let byte = current, !byte.isBlank, byte != comma {
            if byte == quote {
                let isFirst = position == start
                skipQuoted()
                if !isFirst || !isAtSeparator { isSound = false }
            } else {
                position += 1
            }
        }
    }

    private mutating func skipQuoted() {
        position += 1
        while let byte = current {
            position += byte == backslash ? 2 : 1
            if byte == quote { break }
        }
        position = min(position, bytes.count)
    }

    // MARK: Values

    /// Takes a value after `=`. `isOpen`: the closing quote is missing, and the value is the rest of the field.
    ///
    /// An unquoted value has all words up to a separator, the next parameter, or a word that `isSchemeAfterWord` and
    /// that begins a challenge. `isSound` becomes false if quotes are not at the value's ends.
    mutating func takeValue(
        _ isSound: inout Bool, isSchemeAfterWord: (String) -> Bool
    ) -> (text: String, isOpen: Bool) {
        let afterEquals = position
        skipBlanks()
        switch current {
        case quote:
            let (text, isOpen) = takeQuoted()
            if !isAtSeparator { isSound = false }
            return (text, isOpen)
        case singleQuote where !lacksSingleQuote:
            if let text = takeSingleQuoted() {
                if text.utf8.contains(quote) { isSound = false }
                return (text, false)
            }
        default: break
        }
        // `realm= charset="UTF-8"`
        if position > afterEquals, isParameter { return ("", false) }
        return (takeUnquoted(&isSound, isSchemeAfterWord), false)
    }

    private mutating func takeQuoted() -> (text: String, isOpen: Bool) {
        var text: [UInt8] = []
        position += 1
        while let byte = current {
            position += 1
            switch byte {
            case quote: return (Self.string(text[...]), false)
            case backslash:
                guard let escaped = current else { break }
                text.append(escaped)
                position += 1
            default: text.append(byte)
            }
        }
        return (Self.string(text[...]), true)
    }

    /// Takes text in single quotes, which must end at a separator.
    private mutating func takeSingleQuoted() -> String? {
        var end = position + 1
        while end < bytes.count {
            let next = end + 1 < bytes.count ? bytes[end + 1] : comma
            if bytes[end] == singleQuote, next.isBlank || next == comma || next == semicolon {
                let text = Self.string(bytes[(position + 1)..<end])
                position = end + 1
                return text
            }
            end += 1
        }
        lacksSingleQuote = true
        return nil
    }

    private mutating func takeUnquoted(_ isSound: inout Bool, _ isScheme: (String) -> Bool) -> String {
        let start = position
        var end = position
        while true {
            while let byte = current, !byte.isBlank, byte != comma, !isEndBySemicolon {
                if byte == quote {
                    isSound = false
                    skipQuoted()
                } else {
                    position += 1
                }
            }
            end = position
            skipBlanks()
            if isAtSeparator || current == quote || isParameter || isSchemeWord(isScheme) { break }
        }
        position = end
        return Self.string(bytes[start..<end])
    }

    /// True at a semicolon that separates: addresses have some, too.
    private var isEndBySemicolon: Bool {
        guard current == semicolon else { return false }
        return position + 1 >= bytes.count || bytes[position + 1].isBlank || bytes[position + 1] == comma
    }

    // MARK: Looking ahead

    /// True at the name of a parameter with `=` and a value.
    var isParameter: Bool {
        var ahead = self
        guard !ahead.takeToken().isEmpty, ahead.skipEquals() else { return false }
        ahead.skipBlanks()
        // The padding of a base64 text is no parameter.
        return !(ahead.current.map { $0 == equals || $0 == comma } ?? true)
    }

    /// True if blanks and then a parameter follow.
    var isParameterAfterBlanks: Bool {
        var ahead = self
        ahead.skipBlanks()
        return ahead.position > position && ahead.isParameter
    }

    /// True after a scheme's name, if the following can be the rest of a challenge: nothing, a token68, a parameter.
    var isBodyOfScheme: Bool {
        var ahead = self
        ahead.skipBlanks()
        guard let next = ahead.current, next != comma, next != semicolon else { return true }
        return ahead.isParameter || ahead.takeToken68() != nil
    }

    private func isSchemeWord(_ isScheme: (String) -> Bool) -> Bool {
        var ahead = self
        // The longest scheme that is meant has nine letters.
        guard bytes.count - position < 10 || !bytes[position..<(position + 10)].allSatisfy(\.isAlphanumeric) else {
            return false
        }
        return isScheme(ahead.takeToken().lowercased()) && ahead.isAtSeparator && ahead.isBodyOfScheme
    }

    /// Returns those of `schemes` with which a challenge could begin anywhere in the field, within quotes too.
    func beginnings(of schemes: Set<String>) -> Set<String> {
        var found: Set<String> = []
        var ahead = self
        ahead.position = 0
        while ahead.position < bytes.count {
            let name = ahead.takeToken().lowercased()
            if schemes.contains(name), ahead.isAtSeparator, ahead.isBodyOfScheme { found.insert(name) }
            if name.isEmpty { ahead.position += 1 }
        }
        return found
    }

    // MARK: Text

    /// Returns the text from `start` up to the position, without any values.
    func name(from start: Int) -> String {
        var name = bytes[start..<position].prefix { $0 != equals && $0 != quote && $0 != singleQuote }
        while let last = name.last, last.isBlank { name.removeLast() }
        return ServerText.name(String(decoding: name.prefix(64), as: UTF8.self))
    }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
        while let byte = current, isSkipped(byte) { position += 1 }
    }

    private mutating func take(_ isTaken: (UInt8) -> Bool) -> String {
        let start = position
        skip(isTaken)
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private static func string(_ bytes: ArraySlice<UInt8>) -> String {
        TextRuns.broken(String(decoding: bytes, as: UTF8.self))
    }
}

private let backslash = UInt8(ascii: "\\")
private let comma = UInt8(ascii: ",")
private let equals = UInt8(ascii: "=")
private let quote = UInt8(ascii: "\"")
private let semicolon = UInt8(ascii: ";")
private let singleQuote = UInt8(ascii: "'")
