// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Credentials
import Glibc
import Logging
import Settings
import Synchronization
import System
import Testing

@testable import CountersignDaemon

@Suite("The log output")
struct LogOutputTests {
    @Test("a log line has the logger's metadata and label, and the event's own value takes precedence")
    func arrives() throws {
        let pipe = try Pipe()
        let output = try LogOutput(writer: LogWriter(destination: .json, descriptor: pipe.writing), level: .info)
        var logger = output.logger(label: "exchange")
        logger[metadataKey: "exchange-id"] = "7"
        logger[metadataKey: "upstream"] = "bank"
        logger.info("challenge met", metadata: ["upstream": "ledger"])
        #expect(output.flush(within: .seconds(180)))
        let text = pipe.read()
        #expect(
            text.hasSuffix(
                #""level":"info","logger":"exchange","message":"challenge met","exchange-id":"7","upstream":"ledger"}"#
                    + "\n"))
    }

    @Test("a new log level applies to existing loggers, but not to one with a level of its own")
    func level() throws {
        let pipe = try Pipe()
        let output = try LogOutput(writer: LogWriter(destination: .prefixed, descriptor: pipe.writing), level: .warning)
        let logger = output.logger(label: "a")
        var own = output.logger(label: "b")
        own.logLevel = .error
        logger.info("unheard")
        output.level = .debug
        logger.debug("heard")
        own.warning("unheard")
        #expect(output.flush(within: .seconds(180)))
        #expect(pipe.read() == "<7>heard\n")
    }

    @Test("dropped log lines are reported")
    func dropped() throws {
        let pipe = try Pipe()
        LogWriter(destination: .prefixed, descriptor: pipe.writing).write([.bytes(Array("<6>x\n".utf8))], dropped: 3)
        #expect(pipe.read() == "<6>x\n<4>log lines dropped: their reader is too slow dropped=3\n")
    }

    @Test("a closed pipe of the log ends neither the process nor the thread")
    func broken() throws {
        let pipe = try Pipe()
        let output = try LogOutput(
            writer: LogWriter(destination: .text(colour: false), descriptor: pipe.writing), level: .info)
        pipe.closeReading()
        output.logger(label: "a").info("into the void")
        #expect(output.flush(within: .seconds(180)))
        output.logger(label: "a").info("and again")
        #expect(output.flush(within: .seconds(180)))
    }
}

/// A pipe of the system.
private final class Pipe {
    let writing: Int32
    private var reading: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe Glibc.pipe(&ends) == 0)
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        closeReading()
        close(writing)
    }

    func closeReading() {
        if reading >= 0 { close(reading) }
        reading = -1
    }

    /// Returns the content of the pipe.
    func read() -> String {
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = unsafe Glibc.read(reading, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}

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
        // The reader has taken the first line and blocks; now the queue fills.
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

/// Output of a queue.
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

@Suite("The destination of the log")
struct LogDestinationTests {
    private typealias StandardError = LogDestination.StandardError

    @Test("log format auto is the journal under systemd, text on a terminal, JSON otherwise")
    func auto() {
        #expect(LogDestination.choose(.auto, StandardError(isJournal: true)) == .journal)
        #expect(LogDestination.choose(.auto, StandardError(isTerminal: true)) == .text(colour: true))
        #expect(LogDestination.choose(.auto, StandardError()) == .json)
    }

    @Test("the journal's native protocol is used only if standard error is the journal's stream")
    func journal() {
        #expect(LogDestination.choose(.journal, StandardError(isJournal: true)) == .journal)
        #expect(LogDestination.choose(.journal, StandardError(isTerminal: true)) == .prefixed)
    }

    @Test("a configured log format applies everywhere, but colour only on a terminal that supports it")
    func explicit() {
        #expect(LogDestination.choose(.json, StandardError(isJournal: true)) == .json)
        #expect(LogDestination.choose(.text, StandardError()) == .text(colour: false))
        #expect(LogDestination.choose(.text, StandardError(isTerminal: true, isPlain: true)) == .text(colour: false))
    }
}
