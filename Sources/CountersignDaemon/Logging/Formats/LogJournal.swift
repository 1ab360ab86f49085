// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Logging
internal import Systemd

/// The log for the journal: an entry with a field for each piece of metadata.
enum LogJournal {
    /// The entry. MESSAGE repeats the metadata as text, because `journalctl` shows nothing else unless asked.
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
