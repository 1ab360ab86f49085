// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Logging
internal import System

/// Immutable content of a log entry, from which every format is rendered.
struct LogRecord: Equatable, Sendable {
    /// Maximum number of fields, which no caller can exceed.
    static let maximumFields = 32
    /// Maximum size of a text.
    static let maximumTextBytes = 4096

    enum Value: Equatable, Sendable {
        case text(String)
        case number(Int64)
    }

    struct Field: Equatable, Sendable {
        var key: String
        var value: Value
    }

    var time: LogTime
    var level: Logger.Level
    var logger: String
    var message: String
    /// The metadata, sorted by key.
    var fields: [Field]
    var file = ""
    var line: UInt = 0
    var function = ""

    /// The record of an event, with all its metadata.
    init(_ event: LogEvent, metadata: Logger.Metadata, logger: String, time: LogTime) {
        self.init(
            time: time, level: event.level, logger: logger, message: event.message.description, metadata: metadata)
        file = event.file
        line = event.line
        function = event.function
        if let error = event.error, metadata["error"] == nil, fields.count < Self.maximumFields {
            fields.append(Field(key: "error", value: .text(Self.cut("\(error)"))))
        }
    }

    init(time: LogTime, level: Logger.Level, logger: String, message: String, metadata: Logger.Metadata = [:]) {
        self.time = time
        self.level = level
        self.logger = logger
        self.message = Self.cut(message)
        fields = metadata.sorted { $0.key < $1.key }.prefix(Self.maximumFields).map { key, value in
            Field(key: key, value: Self.value(of: value))
        }
    }

    private static func value(of value: Logger.MetadataValue) -> Value {
        if case .stringConvertible(let convertible) = value, let integer = convertible as? any BinaryInteger,
            let number = Int64(exactly: integer)
        {
            return .number(number)
        }
        return .text(cut(value.description))
    }

    /// Returns the text, truncated to the maximum size with an ellipsis.
    private static func cut(_ text: String) -> String {
        guard text.utf8.count > maximumTextBytes else { return text }
        return String(decoding: text.utf8.prefix(maximumTextBytes), as: UTF8.self) + "…"
    }
}

/// Time in UTC, in milliseconds.
struct LogTime: Equatable, Sendable {
    /// Milliseconds since 1970.
    var milliseconds: Int64

    /// The present time by the clock of this machine.
    static var now: LogTime { LogTime(milliseconds: SystemClock.wallClock()) }

    /// The time in the format of RFC 3339: `2026-11-21T16:23:39.123Z`.
    var text: String {
        let time = CivilTime(millisecondsSince1970: milliseconds)
        let date = [time.date.year.padded(to: 4), time.date.month.padded(to: 2), time.date.day.padded(to: 2)]
        return "\(date.joined(separator: "-"))T\(Self.clock(time)).\(time.millisecond.padded(to: 3))Z"
    }

    /// The time in seconds in the format of access logs: `21/Nov/2026:16:23:39 +0000`.
    var commonText: String {
        let time = CivilTime(millisecondsSince1970: milliseconds)
        let (day, month) = (time.date.day.padded(to: 2), CivilDate.monthNames[Int(time.date.month - 1)])
        return "\(day)/\(month)/\(time.date.year.padded(to: 4)):\(Self.clock(time)) +0000"
    }

    private static func clock(_ time: CivilTime) -> String {
        "\(time.hour.padded(to: 2)):\(time.minute.padded(to: 2)):\(time.second.padded(to: 2))"
    }
}
