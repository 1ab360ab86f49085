// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Logging
internal import SettingsReading

/// Settings of the log.
package struct LogSettings: Sendable, Equatable {
    /// Format of the log.
    package enum Format: String, Sendable, CaseIterable {
        /// The journal under systemd, text on a terminal, JSON otherwise.
        case auto
        /// Journal entries with fields.
        case journal
        /// One JSON object per line.
        case json
        /// One readable line per message.
        case text
    }

    /// Lowest severity that is logged.
    package var level = Logger.Level.info
    /// Format of the log.
    package var format = Format.auto
}

extension LogSettings {
    private enum Keys {
        static let level = Key<Logger.Level>(
            "level", .choice, default: LogSettings().level, "Lowest severity that is logged.")
        static let format = Key<Format>("format", .choice, default: LogSettings().format, "Format of the log.")
    }

    /// Table of `log`.
    static let section = KeySection("log", [Keys.level, Keys.format])

    /// Reads `log`.
    static func read(_ fields: Fields) -> LogSettings {
        LogSettings(level: fields[Keys.level], format: fields[Keys.format])
    }
}

/// Settings of the access log.
package struct AccessLogSettings: Sendable, Equatable {
    /// Format of a line.
    package enum Format: String, Sendable, CaseIterable {
        /// Common Log Format.
        case common
        /// One JSON object per line.
        case json
        /// No access log.
        case none
    }

    /// Format of the lines.
    package var format = Format.none
    /// File of the log; nil: standard output.
    package var path: String?
    /// True if lines contain the queries of requests.
    package var query = false
}

extension AccessLogSettings {
    private enum Keys {
        static let format = Key(required: "format", ValueForm<Format>.choice, "Format of the lines.")
        static let destination = Key<String?>(
            "to", .standardOutputOrFile, default: nil, "File of the access log, or standard output.")
        static let query = Key(
            "query", .flag, default: AccessLogSettings().query,
            "Includes the queries of requests, which may contain secrets.")
    }

    /// Table of `access-log`.
    static let section = KeySection("access-log", [Keys.format, Keys.destination, Keys.query])

    fileprivate static func read(_ value: Value) -> AccessLogSettings? {
        // A format alone is the short form of a mapping with only `format`; `none` has no other keys.
        let isNone = value.isKeyword(Format.none.rawValue)
        if !value.isMapping, isNone || value.choice(Format.self) == nil { return isNone ? AccessLogSettings() : nil }
        let mapping = value.isMapping ? value : value.longhand(Keys.format.name)
        guard let fields = mapping.fields(of: section) else { return nil }
        let (format, path, query) = (fields[Keys.format], fields[Keys.destination], fields[Keys.query])
        return format.map { AccessLogSettings(format: $0, path: path, query: query) }
    }
}

extension ValueForm where Content == AccessLogSettings {
    /// A format, or a mapping.
    static let accessLog = ValueForm(
        "a format, or a mapping", section: AccessLogSettings.section, write: { .scalar($0.format.rawValue) },
        read: { AccessLogSettings.read($0) })
}

extension ValueForm where Content == String? {
    /// `stdout`, or a file.
    fileprivate static let standardOutputOrFile = ValueForm(
        "`stdout` or a file", choices: ["stdout"], write: { .scalar($0 ?? "stdout") },
        read: { value in
            guard let text = value.word() else { return nil }
            if text == "stdout" { return .some(nil) }
            guard text.hasPrefix("/") else {
                value.report("\"\(text)\" is neither stdout nor the absolute path of a file")
                return nil
            }
            return text
        })
}

/// Destination of the audit record.
package enum AuditDestination: String, Sendable, CaseIterable {
    /// The journal: the caller, the challenge, the credential's name, the outcome.
    case journal
    /// No record.
    case none
}
