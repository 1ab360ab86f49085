// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

extension YAMLNode {
    /// Lines of the value in YAML, without line ends.
    package var lines: [String] {
        if let text = inlineText { return [text] }
        switch content {
        case .scalar: return []
        case .sequence(let elements):
            return elements.flatMap { element in
                element.lines.enumerated().map { $0 == 0 ? "- \($1)" : "  \($1)" }
            }
        case .mapping(let entries, _):
            return entries.flatMap { entry in
                let key = ScalarText.key(entry.key)
                // YAML accepts a longer key only with a question mark (YAML 1.1 §9.3.2).
                let start = key.utf8.count <= 512 ? "\(key):" : "? \(key)\n:"
                if let text = entry.value.inlineText { return ["\(start) \(text)"] }
                return [start] + entry.value.lines.map { "  \($0)" }
            }
        }
    }

    /// Lines of the value in JSON, which is also YAML, without line ends.
    package var jsonLines: [String] {
        switch content {
        case .scalar(let text, let isPlain):
            return [isNull ? "null" : isPlain && ScalarText.isJSON(text) ? text : ScalarText.quoted(text)]
        case .sequence(let elements):
            return Self.braced("[", elements.map(\.jsonLines), "]")
        case .mapping(let entries, _):
            let members = entries.map { entry in
                let lines = entry.value.jsonLines
                return ["\(ScalarText.quoted(entry.key)): \(lines.first ?? "")"] + lines.dropFirst()
            }
            return Self.braced("{", members, "}")
        }
    }

    /// Value in YAML on one line, quoted only if necessary.
    package var flowText: String {
        switch content {
        case .scalar(let text, _):
            isNull ? "null" : ScalarText.isPlain(text, inFlow: true) ? text : ScalarText.quoted(text)
        case .sequence(let elements): "[\(elements.map(\.flowText).joined(separator: ", "))]"
        case .mapping(let entries, _):
            "{ \(entries.map { "\(ScalarText.key($0.key)): \($0.value.flowText)" }.joined(separator: ", ")) }"
        }
    }

    /// Text of a value that does not need separate lines.
    ///
    /// Quotes stay as they were written: in `answer` they make a string of a number.
    private var inlineText: String? {
        switch content {
        case .scalar(let text, let isPlain):
            return isNull ? "null" : isPlain && ScalarText.isPlain(text, inFlow: false) ? text : ScalarText.quoted(text)
        case .mapping(let entries, _): return entries.isEmpty ? "{}" : nil
        case .sequence(let elements):
            var texts: [String] = []
            for element in elements {
                guard case .scalar(let text, let isPlain) = element.content, let inline = element.inlineText,
                    !isPlain || element.isNull || ScalarText.isPlain(text, inFlow: true)
                        || !ScalarText.isPlain(text, inFlow: false)
                else { return nil }
                texts.append(inline)
            }
            return "[\(texts.joined(separator: ", "))]"
        }
    }

    private static func braced(_ open: String, _ parts: [[String]], _ close: String) -> [String] {
        if parts.isEmpty { return [open + close] }
        var lines = [open]
        for (index, part) in parts.enumerated() {
            lines += part.enumerated().map { number, line in
                "  \(line)\(number == part.count - 1 && index < parts.count - 1 ? "," : "")"
            }
        }
        return lines + [close]
    }
}

/// YAML and JSON texts of single values and keys.
private enum ScalarText {
    /// Returns whether the text needs no quotes.
    static func isPlain(_ text: String, inFlow: Bool) -> Bool {
        guard let first = text.utf8.first, first.isAlphanumeric || "/_.$+-".utf8.contains(first) else { return false }
        guard text.utf8.contains(where: \.isAlphanumeric) else { return false }
        if first == UInt8(ascii: "-"), let second = text.utf8.dropFirst().first, !second.isAlphanumeric { return false }
        if text.utf8.last == UInt8(ascii: ":") || text.utf8.contains(UInt8(ascii: " ")) { return false }
        let others = inFlow ? "/_.$+-:@%=;*" : "/_.$+-:@%=;*{}~()?&!<>|^,"
        return text.utf8.allSatisfy { $0.isAlphanumeric || others.utf8.contains($0) }
    }

    /// Returns whether the text is a JSON number or Boolean (RFC 8259 §3, §6).
    static func isJSON(_ text: String) -> Bool {
        if text == "true" || text == "false" { return true }
        var rest = text.utf8[...]
        if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        let whole = rest.prefix(while: \.isDigit)
        guard let first = whole.first, first != UInt8(ascii: "0") || whole.count == 1 else { return false }
        rest = rest.dropFirst(whole.count)
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix(while: \.isDigit)
            if fraction.isEmpty { return false }
            rest = rest.dropFirst(1 + fraction.count)
        }
        guard let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") else { return rest.isEmpty }
        rest = rest.dropFirst()
        if let sign = rest.first, "+-".utf8.contains(sign) { rest = rest.dropFirst() }
        return !rest.isEmpty && rest.allSatisfy(\.isDigit)
    }

    /// Returns a key, quoted if necessary.
    static func key(_ text: String) -> String {
        // Only this program reads a null key as text.
        let isSafe = isPlain(text, inFlow: true) && !text.utf8.contains(UInt8(ascii: ":"))
        return isSafe ? text : quoted(text)
    }

    /// Returns the text in double quotes, with escapes that YAML and JSON share.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            default:
                if needsEscape(scalar.value) {
                    let digits = String(scalar.value, radix: 16)
                    result += "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
                } else {
                    result.unicodeScalars.append(scalar)
                }
            }
        }
        return result + "\""
    }

    /// Returns whether YAML treats the character as a line end, forbids it (YAML 1.1 §5.1), or it is invisible.
    private static func needsEscape(_ value: UInt32) -> Bool {
        value < 0x20 || (0x7F...0xA0).contains(value) || (0x2028...0x2029).contains(value) || value == 0xFEFF
            || (0xFFFE...0xFFFF).contains(value)
            || value <= 0xFFFF && Unicode.Scalar(value)?.properties.generalCategory == .format
    }
}
