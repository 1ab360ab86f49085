// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Logging

/// One thing to be logged, in values that no longer change: what every format is rendered from.
struct LogRecord: Equatable, Sendable {
    /// The most fields of a record, and the most bytes of one text in it: a caller can make neither grow.
    static let maximumFields = 32
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
    /// Sorted by key.
    var fields: [Field]
    var file = ""
    var line: UInt = 0
    var function = ""

    /// The record of an event, with the metadata that holds for it.
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

    /// The text, or as much of it as may be kept; the cut is marked.
    private static func cut(_ text: String) -> String {
        guard text.utf8.count > maximumTextBytes else { return text }
        return String(decoding: text.utf8.prefix(maximumTextBytes), as: UTF8.self) + "…"
    }
}
