// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Glibc
internal import Logging
internal import Settings
internal import Synchronization
internal import System
internal import Systemd

/// Log of the process: its destination, its level, and its queue.
final class LogOutput: Sendable {
    /// The destination for the configured format.
    let destination: LogDestination
    private let queue: LogQueue
    private let threshold: Atomic<UInt8>

    /// The log on standard error. Throws if its thread cannot be started.
    ///
    /// - Parameter environment: of the process; `JOURNAL_STREAM`, `NO_COLOR` and `TERM` are read from it.
    convenience init(format: LogSettings.Format, level: Logger.Level, environment: [String: String]) throws(ThreadError)
    {
        let standardError = LogDestination.StandardError(
            isJournal: Journal.isStream(descriptor: STDERR_FILENO, environment: environment),
            isTerminal: isatty(STDERR_FILENO) == 1,
            isPlain: environment["NO_COLOR"].map { !$0.isEmpty } ?? (environment["TERM"] == "dumb"))
        try self.init(writer: LogWriter(destination: .choose(format, standardError)), level: level)
    }

    init(
        writer: LogWriter, level: Logger.Level, capacity: Int = LogQueue.defaultCapacity
    ) throws(ThreadError) {
        destination = writer.destination
        threshold = Atomic(level.rank)
        queue = try LogQueue(capacity: capacity) { lines, dropped in writer.write(lines, dropped: dropped) }
    }

    /// The lowest level that is logged. A change, as by a reload, applies to every logger without a separate level.
    var level: Logger.Level {
        get { Logger.Level(rank: threshold.load(ordering: .relaxed)) }
        set { threshold.store(newValue.rank, ordering: .relaxed) }
    }

    /// The number of lines that were dropped because the reader was too slow.
    var dropped: Int { queue.dropped }

    /// Makes every `Logger` of the process write to this log. Must be called once, before the first logger is made.
    func bootstrap() {
        LoggingSystem.bootstrap { label in LogOutputHandler(output: self, label: label) }
    }

    /// Returns a logger that writes to this log even without ``bootstrap()``.
    func logger(label: String) -> Logger {
        Logger(label: label) { label in LogOutputHandler(output: self, label: label) }
    }

    /// Renders a record on the calling thread, and enqueues the line.
    func append(_ record: LogRecord) {
        queue.append(LogLine(record, for: destination))
    }

    /// Waits until all lines are written, at most for `limit`. Returns true if they are. For the end of the process.
    @discardableResult
    func flush(within limit: Duration = .seconds(1)) -> Bool {
        queue.flush(within: limit)
    }
}

extension Logger.Level {
    fileprivate var rank: UInt8 {
        switch self {
        case .trace: 0
        case .debug: 1
        case .info: 2
        case .notice: 3
        case .warning: 4
        case .error: 5
        case .critical: 6
        }
    }

    fileprivate init(rank: UInt8) {
        switch rank {
        case 0: self = .trace
        case 1: self = .debug
        case 2: self = .info
        case 3: self = .notice
        case 4: self = .warning
        case 5: self = .error
        default: self = .critical
        }
    }
}

/// Log handler for swift-log that merges the metadata and passes records to the ``LogOutput``.
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

    /// The logger's own level, or else the level of the output. A reload can change the latter.
    var logLevel: Logger.Level {
        get { ownLevel ?? output.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Logs an event. Of several values for one key, the event's takes precedence, then the provider's.
    func log(event: LogEvent) {
        var joined = metadata
        if let provided = metadataProvider?.get() { joined.merge(provided) { _, new in new } }
        if let own = event.metadata { joined.merge(own) { _, new in new } }
        output.append(LogRecord(event, metadata: joined, logger: label, time: .now))
    }
}

/// Destination and format of the log.
enum LogDestination: Equatable, Sendable {
    /// Text lines on standard error.
    case text(colour: Bool)
    /// JSON lines on standard error.
    case json
    /// Entries by the journal's native protocol.
    case journal
    /// Text lines that begin with the severity (`<4>`). The journal also reads this form (sd-daemon(3)).
    case prefixed

    /// Properties of standard error.
    struct StandardError: Equatable, Sendable {
        /// True if systemd connected it to the journal (`JOURNAL_STREAM`).
        var isJournal = false
        /// True if it is a terminal.
        var isTerminal = false
        /// True if `NO_COLOR` is set, or the terminal is a dumb one.
        var isPlain = false
    }

    /// Returns the destination for a format.
    ///
    /// The native protocol is used only if standard error is the journal's stream. Otherwise no journal may receive the entries, although the
    /// library reports success.
    static func choose(_ format: LogSettings.Format, _ standardError: StandardError) -> LogDestination {
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
