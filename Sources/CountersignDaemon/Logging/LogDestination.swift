// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The form of the log that the configuration asks for: `log.format`.
enum LogFormat: String, Sendable, CaseIterable {
    /// The journal under systemd, text on a terminal, JSON otherwise.
    case auto
    /// One line for a reader.
    case text
    /// One object a line.
    case json
    /// Entries with fields.
    case journal
}

/// Where and in which form the log is written.
enum LogDestination: Equatable, Sendable {
    /// Lines for a reader on standard error.
    case text(colour: Bool)
    /// JSON lines on standard error.
    case json
    /// Entries over the journal's native protocol.
    case journal
    /// Lines on standard error with the severity in front (`<4>`), which the journal reads as well (sd-daemon(3)).
    case prefixed

    /// What is known of standard error.
    struct StandardError: Equatable, Sendable {
        /// It is the stream that systemd opened to the journal (`JOURNAL_STREAM`).
        var isJournal = false
        /// Somebody sits before it.
        var isTerminal = false
        /// `NO_COLOR` is set, or the terminal is a dumb one.
        var isPlain = false
    }

    /// The destination for a format.
    ///
    /// The native protocol is used only where standard error is the journal's: elsewhere its entries could go to nobody,
    /// and the library would report success.
    static func choose(_ format: LogFormat, _ standardError: StandardError) -> LogDestination {
        let text = LogDestination.text(colour: standardError.isTerminal && !standardError.isPlain)
        switch format {
        case .text: return text
        case .json: return .json
        case .journal: return standardError.isJournal ? .journal : .prefixed
        case .auto:
            if standardError.isJournal { return .journal }
            return standardError.isTerminal ? text : .json
        }
    }
}
