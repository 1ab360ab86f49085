// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Glibc
internal import Logging
internal import Synchronization
internal import System
internal import Systemd

/// Bounded queue of log lines, with a thread that writes them.
///
/// No event loop waits for a terminal, a pipe or journald. Appending a line takes a short lock. If the reader of the log is too slow, lines wait up to a number of bytes, and further lines are
/// dropped and counted: a daemon that blocks or grows without bound is worse than a log with a gap. The next batch reports the number of
/// dropped lines. The thread of an idle queue does not wake up.
final class LogQueue: Sendable {
    private let core: Core

    /// The default capacity in bytes: some thousands of lines.
    static let defaultCapacity = 1 << 20

    /// A queue with its thread. Throws if the thread cannot be started, because log lines would be lost silently.
    ///
    /// The thread calls `write` with the new lines, in order, and the number of lines that were dropped in between.
    init(
        capacity: Int = defaultCapacity, onThread: ThreadStart = startThread,
        write: @escaping @Sendable ([LogLine], _ dropped: Int) -> Void
    ) throws(ThreadError) {
        let core = Core(capacity: capacity, write: write)
        try onThread { while core.writeNext() {} }
        self.core = core
    }

    deinit {
        // The thread writes the lines that still wait, and then ends.
        core.append(.stop, cost: 0)
    }

    /// The number of all lines that were dropped.
    var dropped: Int { core.state.withLock { $0.totalDropped } }

    /// Appends a line, or drops the line if the queue is full.
    func append(_ line: LogLine) {
        core.append(.line(line), cost: line.count + MemoryLayout<Core.Item>.size)
    }

    /// Waits until all earlier lines are written.
    ///
    /// - Returns: True if they were written within `limit`.
    @discardableResult
    func flush(within limit: Duration) -> Bool {
        let reached = ThreadSemaphore()
        core.append(.marker(reached), cost: 0)
        return reached.wait(within: limit)
    }
}

/// State that the queue and its thread share.
private final class Core: Sendable {
    enum Item: Sendable {
        case line(LogLine)
        case marker(ThreadSemaphore)
        case stop
    }

    struct State {
        var items: [Item] = []
        var bytes = 0
        var dropped = 0
        var totalDropped = 0
    }

    let state = Mutex(State())
    private let capacity: Int
    private let arrived = ThreadSemaphore()
    private let write: @Sendable ([LogLine], Int) -> Void

    init(capacity: Int, write: @escaping @Sendable ([LogLine], Int) -> Void) {
        self.capacity = capacity
        self.write = write
    }

    /// Appends an item. An item without cost is never dropped.
    func append(_ item: Item, cost: Int) {
        let isFirst = state.withLock { state in
            guard cost == 0 || state.bytes + cost <= capacity else {
                state.dropped += 1
                state.totalDropped += 1
                return false
            }
            state.items.append(item)
            state.bytes += cost
            return state.items.count == 1
        }
        if isFirst { arrived.signal() }
    }

    /// Waits for items and writes them. Returns false after the last item.
    func writeNext() -> Bool {
        arrived.wait()
        let (items, dropped) = state.withLock { state in
            defer {
                state.items = []
                state.bytes = 0
                state.dropped = 0
            }
            return (state.items, state.dropped)
        }
        var lines: [LogLine] = []
        var unreported = dropped
        func writeBatch() {
            guard !lines.isEmpty || unreported > 0 else { return }
            write(lines, unreported)
            (lines, unreported) = ([], 0)
        }
        for item in items {
            switch item {
            case .line(let line): lines.append(line)
            case .marker(let reached):
                writeBatch()
                reached.signal()
            case .stop:
                writeBatch()
                return false
            }
        }
        writeBatch()
        return true
    }
}

/// Writer of batches of lines, which runs on the thread of a ``LogQueue``.
struct LogWriter: Sendable {
    let destination: LogDestination
    /// The descriptor for bytes; standard error by default.
    var descriptor: Int32 = STDERR_FILENO
    /// The timeout for a descriptor that is not writable; `nil` for no limit.
    var timeout: Duration?

    /// Writes a batch, followed by a line about dropped lines.
    func write(_ lines: [LogLine], dropped: Int) {
        var all = lines
        if dropped > 0 {
            // Lines were dropped while this batch waited, so the gap is after the batch.
            let record = LogRecord(
                time: .now, level: .warning, logger: "log", message: "log lines dropped: their reader is too slow",
                metadata: ["dropped": .stringConvertible(dropped)])
            all.append(LogLine(record, for: destination))
        }
        var bytes: [UInt8] = []
        for line in all {
            switch line {
            case .bytes(let line): bytes += line
            case .entry(let entry): send(entry)
            }
        }
        writeAll(bytes)
    }

    private func send(_ entry: JournalEntry) {
        do {
            try Journal.send(entry)
        } catch {
            // Standard error is the journal's stream, so at least the text is logged.
            guard let end = entry.ends.first else { return }
            writeAll(entry.arena[..<end].dropFirst("MESSAGE=".utf8.count) + [0x0A])
        }
    }

    /// Writes all bytes. If the descriptor fails or times out, the rest is lost.
    private func writeAll(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        var start = 0
        while start < bytes.count {
            do throws(SystemError) {
                let written = try DescriptorIO.write(bytes.span.extracting(start...), to: descriptor)
                guard written > 0 else { return }
                start += written
            } catch {
                // Another process with this terminal or pipe may have set it to non-blocking.
                guard error.code == EAGAIN,
                    (try? DescriptorIO.waitUntilWritable(descriptor, within: timeout)) == true
                else { return }
            }
        }
    }
}
