// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Logging

/// The log for a reader: `TIME LEVEL message key=value key="a value"`.
enum LogText {
    /// One line with its end.
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

    /// One line as the journal's stream reads it: the severity in angle brackets, no time (the journal has its own).
    static func prefixedLine(_ record: LogRecord) -> [UInt8] {
        Array("<\(record.level.severity)>\(sentence(record))\n".utf8)
    }

    /// The message and the fields, on one line whatever they hold.
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

    /// Printable ASCII that begins or ends nothing.
    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && byte != 0x22 && byte != 0x3D && byte != 0x5C
    }

    /// A key in which nothing can pass for a space or an equals sign.
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
    /// The severity of syslog(3), which the journal uses too.
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
