// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Glibc
internal import Logging
internal import Synchronization
internal import Systemd

/// The log of the process: where it goes, from which level on, and the queue before it.
final class LogOutput: Sendable {
    /// Where the log goes, once the format is resolved.
    let destination: LogDestination
    private let queue: LogQueue
    private let threshold: Atomic<UInt8>

    /// The log on standard error. Throws where there can be no thread for it.
    ///
    /// - Parameter environment: of the process; `JOURNAL_STREAM`, `NO_COLOR` and `TERM` are read from it.
    convenience init(format: LogFormat, level: Logger.Level, environment: [String: String]) throws(ThreadError) {
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

    /// From which level on there is a log. A reload may change it; every logger that has no level of its own follows.
    var level: Logger.Level {
        get { Logger.Level(rank: threshold.load(ordering: .relaxed)) }
        set { threshold.store(newValue.rank, ordering: .relaxed) }
    }

    /// The number of lines lost because their reader was too slow.
    var dropped: Int { queue.dropped }

    /// Makes every `Logger` of the process write here. To be called once, before the first logger.
    func bootstrap() {
        LoggingSystem.bootstrap { label in LogOutputHandler(output: self, label: label) }
    }

    /// A logger that writes here, also without ``bootstrap()``.
    func logger(label: String) -> Logger {
        Logger(label: label) { label in LogOutputHandler(output: self, label: label) }
    }

    /// Renders a record, on the thread that logs, and queues it.
    func append(_ record: LogRecord) {
        queue.append(LogLine(record, for: destination))
    }

    /// Waits until all that was logged is written, or `limit` is over: for the end of the process.
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
