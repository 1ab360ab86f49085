// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Synchronization
import System
import Testing

@testable import CountersignDaemon

@Suite("The log queue")
struct LogQueueTests {
    @Test("log lines are written in order, and a flush waits for all of them")
    func order() throws {
        let written = Written()
        let queue = try LogQueue { lines, _ in written.take(lines, 0) }
        let lines = (0..<1000).map { LogLine.bytes(Array("\($0)".utf8)) }
        for line in lines { queue.append(line) }
        #expect(queue.flush(within: .seconds(180)))
        #expect(written.lines == lines)
    }

    @Test("a log queue fails if its thread cannot be started")
    func noThread() {
        let failing: ThreadStart = { (_: @escaping @Sendable () -> Void) throws(ThreadError) in
            throw ThreadError(code: 11)
        }
        #expect(throws: ThreadError(code: 11)) { try LogQueue(onThread: failing) { _, _ in } }
    }

    @Test("a slow reader of the log blocks no thread: lines without room are dropped, counted, and reported once")
    func bound() throws {
        let written = Written()
        let reading = ThreadSemaphore()
        let go = ThreadSemaphore()
        let queue = try LogQueue(capacity: 1000) { lines, dropped in
            reading.signal()
            go.wait()
            written.take(lines, dropped)
        }
        let line = LogLine.bytes([UInt8](repeating: 0x61, count: 100))
        queue.append(line)
        // The reader has taken the first line and stands still; now the queue fills.
        #expect(reading.wait(within: .seconds(180)))
        for _ in 0..<100 { queue.append(line) }
        let dropped = queue.dropped
        #expect((90..<100).contains(dropped))
        #expect(!queue.flush(within: .zero))
        for _ in 0..<4 { go.signal() }
        #expect(queue.flush(within: .seconds(180)))
        #expect(written.lines.count == 101 - dropped)
        #expect(written.dropped == dropped)
        // There is room again.
        queue.append(line)
        #expect(queue.dropped == dropped)
    }

    @Test("a log queue writes its lines before it is deallocated")
    func end() throws {
        let ended = ThreadSemaphore()
        do {
            let queue = try LogQueue { lines, _ in if lines.count == 1 { ended.signal() } }
            queue.append(.bytes([0x61]))
        }
        #expect(ended.wait(within: .seconds(180)))
    }
}

/// What came out of a queue.
private final class Written: Sendable {
    private let state = Mutex<([LogLine], Int)>(([], 0))

    var lines: [LogLine] { state.withLock { $0.0 } }
    var dropped: Int { state.withLock { $0.1 } }

    func take(_ lines: [LogLine], _ dropped: Int) {
        state.withLock { state in
            state.0 += lines
            state.1 += dropped
        }
    }
}
