// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Logging

/// Text format of the log: `TIME LEVEL message key=value key="a value"`.
enum LogText {
    /// Returns a record as a line with its newline.
    static func line(_ record: LogRecord, colour: Bool) -> [UInt8] {
        var text = colour ? "\u{1B}[2m\(record.time.text)\u{1B}[0m " : "\(record.time.text) "
        let level = record.level.rawValue
        let padding = String(repeating: " ", count: max(0, 9 - level.utf8.count))
        if colour, let code = colourCode(record.level) {
            text += "\u{1B}[\(code)m\(level)\u{1B}[0m\(padding)"
        } else {
            text += level + padding
        }
        text += sentence(record)
        text += "\n"
        return Array(text.utf8)
    }

    /// Returns a line for the journal's stream: the severity in angle brackets, and no time because the journal adds one.
    static func prefixedLine(_ record: LogRecord) -> [UInt8] {
        Array("<\(record.level.severity)>\(sentence(record))\n".utf8)
    }

    /// Returns the message and the fields on one line, escaped.
    static func sentence(_ record: LogRecord) -> String {
        var text = ""
        LogEscape.append(record.message, to: &text)
        for field in record.fields {
            text += " "
            text += key(field.key)
            text += "="
            switch field.value {
            case .number(let number): text += String(number)
            case .text(let value): append(value, to: &text)
            }
        }
        return text
    }

    private static func append(_ value: String, to text: inout String) {
        if !value.isEmpty, value.utf8.allSatisfy(isPlain) {
            text += value
        } else {
            text += "\""
            LogEscape.append(value, to: &text)
            text += "\""
        }
    }

    /// True for printable ASCII other than quotes, equals signs and backslashes.
    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && byte != 0x22 && byte != 0x3D && byte != 0x5C
    }

    /// Returns a key in which every other character is replaced by an underscore.
    private static func key(_ key: String) -> String {
        guard !key.utf8.allSatisfy(isPlain) else { return key }
        return String(decoding: key.utf8.map { isPlain($0) ? $0 : 0x5F }, as: UTF8.self)
    }

    private static func colourCode(_ level: Logger.Level) -> String? {
        switch level {
        case .trace, .debug: "2"
        case .info: nil
        case .notice: "36"
        case .warning: "33"
        case .error: "31"
        case .critical: "1;31"
        }
    }
}

extension Logger.Level {
    /// The severity of syslog(3), which the journal also uses.
    var severity: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}

/// Escaping of callers' and upstreams' text in logs.
///
/// No line break, terminal sequence, or invisible or reordering character is written unescaped.
enum LogEscape {
    /// Appends `value` with escapes such as `\n`, `\"`, `\\` and `\u{202E}` for harmful characters.
    static func append(_ value: String, to text: inout String) {
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where isHarmful(scalar): text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }

    /// Appends `value` as a JSON string with its quotes (RFC 8259 §7). Characters that are harmful on a terminal are escaped as well.
    static func appendJSON(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where isHarmful(scalar):
                for unit in String(scalar).utf16 { text += "\\u\(Hex.encode(unit))" }
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }

    /// True for control characters (C0, DEL, C1), separators of lines and paragraphs, and formatting characters.
    ///
    /// Formatting characters are bidirectional overrides, zero-width characters and tags.
    static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return true
        default: return false
        }
    }
}
