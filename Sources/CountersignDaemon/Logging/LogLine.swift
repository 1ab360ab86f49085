// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Logging
internal import Systemd

/// Rendered log record.
enum LogLine: Equatable, Sendable {
    /// Bytes for standard error, with a newline.
    case bytes([UInt8])
    case entry(JournalEntry)

    /// Renders a record for a destination.
    init(_ record: LogRecord, for destination: LogDestination) {
        switch destination {
        case .text(let colour): self = .bytes(LogText.line(record, colour: colour))
        case .json: self = .bytes(LogJSON.line(record))
        case .prefixed: self = .bytes(LogText.prefixedLine(record))
        case .journal: self = .entry(LogJournal.entry(record))
        }
    }

    /// The number of bytes in the queue.
    var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .entry(let entry): entry.arena.count
        }
    }
}

/// JSON format of the log: one object per line.
enum LogJSON {
    // Members of every line. An underscore is appended to a field of the same name.
    private static let own: Set<String> = ["time", "level", "logger", "message"]

    /// Returns a record as a line with its newline.
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

/// Journal format of the log: an entry with a field for each piece of metadata.
enum LogJournal {
    /// Returns a record as an entry. MESSAGE repeats the metadata as text, because `journalctl` shows only MESSAGE by default.
    static func entry(_ record: LogRecord) -> JournalEntry {
        var entry = JournalEntry()
        entry.append(.message, LogText.sentence(record))
        entry.append(.priority, String(record.level.severity))
        entry.append(.syslogIdentifier, "countersign")
        entry.append(.logger, record.logger)
        if !record.file.isEmpty {
            entry.append(.codeFile, record.file)
            entry.append(.codeLine, String(record.line))
            entry.append(.codeFunction, record.function)
        }
        for field in record.fields {
            guard let name = JournalField(metadataKey: field.key) else { continue }
            switch field.value {
            case .number(let number): entry.append(name, String(number))
            case .text(let text): entry.append(name, text)
            }
        }
        return entry
    }
}
