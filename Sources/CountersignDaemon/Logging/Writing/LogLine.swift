// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Systemd

/// A record in the form in which it leaves.
enum LogLine: Equatable, Sendable {
    /// Bytes for standard error, with their line end.
    case bytes([UInt8])
    /// An entry for the journal.
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

    /// The bytes it keeps while it waits.
    var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .entry(let entry): entry.arena.count
        }
    }
}
