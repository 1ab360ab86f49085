// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Logging

/// The log for a machine: one JSON object a line.
enum LogJSON {
    // Members of every line; a field of the same name gets an underscore behind it.
    private static let own: Set<String> = ["time", "level", "logger", "message"]

    /// One line with its end.
    static func line(_ record: LogRecord) -> [UInt8] {
        var text = "{\"time\":\"\(record.time.text)\",\"level\":\"\(record.level.rawValue)\",\"logger\":"
        LogEscape.appendJSON(record.logger, to: &text)
        text += ",\"message\":"
        LogEscape.appendJSON(record.message, to: &text)
        for field in record.fields {
            text += ","
            LogEscape.appendJSON(own.contains(field.key) ? field.key + "_" : field.key, to: &text)
            text += ":"
            switch field.value {
            case .number(let number): text += String(number)
            case .text(let value): LogEscape.appendJSON(value, to: &text)
            }
        }
        text += "}\n"
        return Array(text.utf8)
    }
}
