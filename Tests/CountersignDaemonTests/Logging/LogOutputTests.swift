// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Logging
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

    /// What stands in the pipe.
    func read() -> String {
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = unsafe Glibc.read(reading, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
