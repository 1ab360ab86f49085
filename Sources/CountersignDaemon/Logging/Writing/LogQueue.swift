// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Glibc
internal import Synchronization

/// A bounded queue with a thread that empties it, so that no event loop ever waits for a terminal, a pipe or journald.
///
/// Putting a line in costs a short lock. Where the reader of the log is slower than we are, lines wait up to a number of
/// bytes; beyond it new ones are dropped and counted, because a daemon that stands still, or grows without end, is worse
/// than a log with a gap. The gap is told with the next batch. An idle queue wakes nobody.
final class LogQueue: Sendable {
    private let core: Core

    /// The most bytes that wait by default: some thousands of lines.
    static let defaultCapacity = 1 << 20

    /// A queue with its thread, which calls `write` with what has come since, in order, and the number of lines that were
    /// dropped meanwhile. Throws where there can be no thread: a log that nobody writes would look like silence.
    init(
        capacity: Int = defaultCapacity, onThread: ThreadStart = startThread,
        write: @escaping @Sendable ([LogLine], _ dropped: Int) -> Void
    ) throws(ThreadError) {
        let core = Core(capacity: capacity, write: write)
        try onThread { while core.turn() {} }
        self.core = core
    }

    deinit {
        // What still waits is written; then the thread ends.
        core.append(.stop, cost: 0)
    }

    /// All lines that were dropped so far.
    var dropped: Int { core.state.withLock { $0.droppedEver } }

    /// Puts a line in, or drops it where the queue is full.
    func append(_ line: LogLine) {
        core.append(.line(line), cost: line.count + MemoryLayout<Core.Item>.size)
    }

    /// Waits until all that was put in before is written.
    ///
    /// - Returns: whether it was, within `limit`.
    @discardableResult
    func flush(within limit: Duration) -> Bool {
        let reached = Semaphore()
        core.append(.marker(reached), cost: 0)
        return reached.wait(within: limit)
    }
}

/// What the queue and its thread share.
private final class Core: Sendable {
    enum Item: Sendable {
        case line(LogLine)
        case marker(Semaphore)
        case stop
    }

    struct State {
        var items: [Item] = []
        var bytes = 0
        var dropped = 0
        var droppedEver = 0
    }

    let state = Mutex(State())
    private let capacity: Int
    private let arrived = Semaphore()
    private let write: @Sendable ([LogLine], Int) -> Void

    init(capacity: Int, write: @escaping @Sendable ([LogLine], Int) -> Void) {
        self.capacity = capacity
        self.write = write
    }

    /// Items that cost nothing always find room.
    func append(_ item: Item, cost: Int) {
        let isFirst = state.withLock { state in
            guard cost == 0 || state.bytes + cost <= capacity else {
                state.dropped += 1
                state.droppedEver += 1
                return false
            }
            state.items.append(item)
            state.bytes += cost
            return state.items.count == 1
        }
        if isFirst { arrived.signal() }
    }

    /// Waits for items and writes them; false when there will be no more.
    func turn() -> Bool {
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
        func writeOut() {
            guard !lines.isEmpty || unreported > 0 else { return }
            write(lines, unreported)
            (lines, unreported) = ([], 0)
        }
        for item in items {
            switch item {
            case .line(let line): lines.append(line)
            case .marker(let reached):
                writeOut()
                reached.signal()
            case .stop:
                writeOut()
                return false
            }
        }
        writeOut()
        return true
    }
}
