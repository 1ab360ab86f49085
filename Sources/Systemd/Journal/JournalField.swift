// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The name of a field of a journal entry: a capital letter, then capital letters, digits and underscores, at most 64.
///
/// A type, because one bad name makes `sd_journal_sendv` refuse the whole entry, and a lower-case one is dropped later
/// without a word. A leading underscore, which marks the fields that journald itself vouches for, cannot be written.
package struct JournalField: Hashable, Sendable {
    /// The most characters that journald takes.
    package static let maximumLength = 64

    /// The name.
    package let name: String

    /// The field of exactly that name, or nil where it is none.
    package init?(_ name: String) {
        let bytes = name.utf8
        guard let first = bytes.first, (0x41...0x5A).contains(first), bytes.count <= Self.maximumLength,
            bytes.allSatisfy({ (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F })
        else { return nil }
        self.name = name
    }

    /// The field for a metadata key: `exchange-id` becomes `EXCHANGE_ID`.
    ///
    /// Everything but ASCII letters and digits becomes an underscore, what stands before the first letter goes, and the
    /// rest is cut at 64. A key that names a field with a meaning of its own (`message`, `priority`, …) becomes
    /// `METADATA_MESSAGE`, so that it forges none. Nil where no letter is left.
    package init?(metadataKey key: String) {
        var bytes: [UInt8] = []
        for byte in key.utf8 {
            guard bytes.count < Self.maximumLength else { break }
            switch byte {
            case 0x61...0x7A: bytes.append(byte - 0x20)
            case 0x41...0x5A: bytes.append(byte)
            case 0x30...0x39 where !bytes.isEmpty: bytes.append(byte)
            default: if !bytes.isEmpty { bytes.append(0x5F) }
            }
        }
        guard !bytes.isEmpty else { return nil }
        let name = String(decoding: bytes, as: UTF8.self)
        self.name = Self.reserved.contains(name) ? "METADATA_\(name)" : name
    }

    private init(known name: String) { self.name = name }

    /// The text that `journalctl` shows.
    package static let message = JournalField(known: "MESSAGE")
    /// The severity of syslog(3), 0 to 7.
    package static let priority = JournalField(known: "PRIORITY")
    /// The name of the program.
    package static let syslogIdentifier = JournalField(known: "SYSLOG_IDENTIFIER")
    /// The source file of the log statement.
    package static let codeFile = JournalField(known: "CODE_FILE")
    /// The line of the log statement.
    package static let codeLine = JournalField(known: "CODE_LINE")
    /// The function of the log statement.
    package static let codeFunction = JournalField(known: "CODE_FUNC")
    /// The label of the logger.
    package static let logger = JournalField(known: "LOGGER")

    // The user fields of systemd.journal-fields(7), and our own.
    private static let reserved: Set<String> = [
        "MESSAGE", "MESSAGE_ID", "PRIORITY", "CODE_FILE", "CODE_LINE", "CODE_FUNC", "ERRNO", "INVOCATION_ID",
        "USER_INVOCATION_ID", "SYSLOG_FACILITY", "SYSLOG_IDENTIFIER", "SYSLOG_PID", "SYSLOG_TIMESTAMP", "SYSLOG_RAW",
        "DOCUMENTATION", "TID", "UNIT", "USER_UNIT", "LOGGER",
    ]
}
