// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd
internal import Glibc
internal import System

/// systemd's journal, over its native protocol.
package enum Journal {
    /// Sends an entry; ignores an empty one.
    ///
    /// May wait as long as journald's queue is full. A return does not mean that journald is running: the library
    /// reports success without a journal too, so check ``isStream(descriptor:environment:)`` first.
    package static func send(_ entry: JournalEntry) throws(JournalError) {
        guard !entry.ends.isEmpty else { return }
        let result = unsafe entry.arena.withUnsafeBytes { arena -> Int32 in
            var vectors: [iovec] = unsafe []
            var start = 0
            for end in entry.ends {
                // sendv only reads, although its parameter is not const.
                let base = unsafe UnsafeMutableRawPointer(mutating: arena.baseAddress?.advanced(by: start))
                unsafe vectors.append(iovec(iov_base: base, iov_len: end - start))
                start = end
            }
            return unsafe sd_journal_sendv(vectors, Int32(vectors.count))
        }
        guard result == 0 else { throw JournalError(errno: 0 &- result) }
    }

    /// Returns true if `descriptor` is the journal stream that the service manager opened.
    ///
    /// The descriptor is usually standard error. `JOURNAL_STREAM` holds the device and inode of that stream
    /// (systemd.exec(5)). They differ if standard error was redirected, or if the variable was inherited from another
    /// service: the log must then be sent elsewhere.
    package static func isStream(descriptor: Int32, environment: [String: String]) -> Bool {
        guard let text = environment["JOURNAL_STREAM"], let stream = JournalStream(text) else { return false }
        guard let status = try? FileSystem.status(of: descriptor) else { return false }
        return stream == JournalStream(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }
}

/// Failure of the journal to accept an entry.
package struct JournalError: Error, Equatable, Sendable, CustomStringConvertible {
    /// `errno` of `sd_journal_sendv`.
    package let errno: Int32

    /// Description in one sentence.
    package var description: String { "the journal did not accept the entry: \(SystemError.numberedMessage(errno))" }
}

/// Identity of a file: `DEVICE:INODE`, both decimal.
struct JournalStream: Equatable {
    let device: UInt64
    let inode: UInt64

    init(device: UInt64, inode: UInt64) {
        self.device = device
        self.inode = inode
    }

    /// Parses `JOURNAL_STREAM`; nil if the value is malformed.
    init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let device = UInt64(parts[0]), let inode = UInt64(parts[1]) else { return nil }
        self.init(device: device, inode: inode)
    }
}

/// Journal entry: its fields, concatenated in one array of bytes.
package struct JournalEntry: Equatable, Sendable {
    /// Maximum number of fields; more are dropped. (journald's own limit is 1024.)
    package static let maximumFields = 64
    /// Maximum bytes of a field's value; a longer value is truncated.
    package static let maximumValueBytes = 16 * 1024

    /// `NAME=value` of each field, without separators.
    package private(set) var arena: [UInt8] = []
    /// End of each field in ``arena``.
    package private(set) var ends: [Int] = []

    /// Creates an entry without fields.
    package init() {}

    /// Appends a field. The value may be any bytes; a repeated name has several values.
    package mutating func append(_ field: JournalField, _ value: some Sequence<UInt8>) {
        guard ends.count < Self.maximumFields else { return }
        arena.append(contentsOf: field.name.utf8)
        arena.append(0x3D)
        arena.append(contentsOf: value.lazy.prefix(Self.maximumValueBytes))
        ends.append(arena.count)
    }

    /// Appends a field with the UTF-8 of `text`.
    package mutating func append(_ field: JournalField, _ text: String) {
        append(field, text.utf8)
    }

    /// Fields as text, `NAME=value` each, for tests and traces.
    package var fields: [String] {
        var start = 0
        return ends.map { end in
            defer { start = end }
            return String(decoding: arena[start..<end], as: UTF8.self)
        }
    }
}

/// Name of a journal field: a capital letter, then capitals, digits and underscores, at most 64.
///
/// A separate type, because one invalid name makes `sd_journal_sendv` refuse the whole entry, and a lower-case name is
/// dropped silently later. A leading underscore, which marks journald's trusted fields, cannot be written.
package struct JournalField: Hashable, Sendable {
    /// Maximum length that journald accepts.
    package static let maximumLength = 64

    /// The name.
    package let name: String

    /// Creates the field with exactly that name; nil if the name is invalid.
    package init?(_ name: String) {
        let bytes = name.utf8
        guard let first = bytes.first, (0x41...0x5A).contains(first), bytes.count <= Self.maximumLength,
            bytes.allSatisfy({ (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F })
        else { return nil }
        self.name = name
    }

    /// Creates the field for a metadata key: `exchange-id` becomes `EXCHANGE_ID`.
    ///
    /// Everything but ASCII letters and digits becomes an underscore, characters before the first letter are removed,
    /// and the rest is truncated to 64. A key with the name of a predefined field (`message`, `priority`, …) becomes
    /// `METADATA_MESSAGE`, so that it cannot forge one. Nil if no letter is left.
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

    /// Text that `journalctl` shows.
    package static let message = JournalField(known: "MESSAGE")
    /// Severity of syslog(3), 0 to 7.
    package static let priority = JournalField(known: "PRIORITY")
    /// Name of the program.
    package static let syslogIdentifier = JournalField(known: "SYSLOG_IDENTIFIER")
    /// Source file of the log statement.
    package static let codeFile = JournalField(known: "CODE_FILE")
    /// Line of the log statement.
    package static let codeLine = JournalField(known: "CODE_LINE")
    /// Function of the log statement.
    package static let codeFunction = JournalField(known: "CODE_FUNC")
    /// Label of the logger.
    package static let logger = JournalField(known: "LOGGER")

    // The user fields of systemd.journal-fields(7), and this program's own.
    private static let reserved: Set<String> = [
        "MESSAGE", "MESSAGE_ID", "PRIORITY", "CODE_FILE", "CODE_LINE", "CODE_FUNC", "ERRNO", "INVOCATION_ID",
        "USER_INVOCATION_ID", "SYSLOG_FACILITY", "SYSLOG_IDENTIFIER", "SYSLOG_PID", "SYSLOG_TIMESTAMP", "SYSLOG_RAW",
        "DOCUMENTATION", "TID", "UNIT", "USER_UNIT", "LOGGER",
    ]
}
