// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Logging

/// What swift-log calls for a logger: joins the metadata and hands the record to the ``LogOutput``.
struct LogOutputHandler: LogHandler {
    private let output: LogOutput
    private let label: String
    private var ownLevel: Logger.Level?

    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(output: LogOutput, label: String) {
        self.output = output
        self.label = label
    }

    /// The level of the output, so that a reload reaches every logger, unless this logger was given one.
    var logLevel: Logger.Level {
        get { ownLevel ?? output.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Of two values under one key the event's holds, then the provider's.
    func log(event: LogEvent) {
        var joined = metadata
        if let provided = metadataProvider?.get() { joined.merge(provided) { _, new in new } }
        if let own = event.metadata { joined.merge(own) { _, new in new } }
        output.append(LogRecord(event, metadata: joined, logger: label, time: .now))
    }
}
