// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Logging
import Systemd
import Testing

@testable import CountersignDaemon

@Suite("Log formats")
struct LogFormatTests {
    private let record = LogRecord(
        time: LogTime(milliseconds: 1_795_278_219_123), level: .warning, logger: "sessions", message: "login rejected",
        metadata: [
            "challenge": "bank-pin", "detail": "PIN \"1\"\nREADY", "attempts": .stringConvertible(2), "empty": "",
        ])

    @Test("a text log line has time, level, message and fields in the order of their keys")
    func text() {
        #expect(
            string(LogText.line(record, colour: false))
                == "2026-11-21T16:23:39.123Z warning  login rejected attempts=2 challenge=bank-pin "
                + "detail=\"PIN \\\"1\\\"\\nREADY\" empty=\"\"\n")
    }

    @Test("a log line that begins with the severity has no time")
    func prefixed() {
        #expect(string(LogText.prefixedLine(record)).hasPrefix("<4>login rejected attempts=2 "))
    }

    @Test("a JSON log line is one object, with numbers as numbers")
    func json() {
        #expect(
            string(LogJSON.line(record))
                == #"{"time":"2026-11-21T16:23:39.123Z","level":"warning","logger":"sessions","message":"login rejected","#
                + #""attempts":2,"challenge":"bank-pin","detail":"PIN \"1\"\nREADY","empty":""}"# + "\n")
    }

    @Test("a field cannot replace a fixed member of a JSON log line")
    func jsonNames() {
        let record = LogRecord(time: record.time, level: .info, logger: "", message: "m", metadata: ["level": "x"])
        #expect(string(LogJSON.line(record)).contains(#""level":"info""#))
        #expect(string(LogJSON.line(record)).contains(#""level_":"x""#))
    }

    @Test("a journal entry has a field for each piece of metadata, unchanged, and a readable MESSAGE")
    func journal() {
        #expect(
            LogJournal.entry(record).fields == [
                #"MESSAGE=login rejected attempts=2 challenge=bank-pin detail="PIN \"1\"\nREADY" empty="""#,
                "PRIORITY=4",
                "SYSLOG_IDENTIFIER=countersign", "LOGGER=sessions", "ATTEMPTS=2", "CHALLENGE=bank-pin",
                "DETAIL=PIN \"1\"\nREADY", "EMPTY=",
            ])
    }

    @Test(
        "text of a caller adds no log line and sends no command to a terminal",
        arguments: [
            "a\nb", "a\r\nb", "\u{1B}[2J", "\u{7F}", "\u{85}", "\u{2028}", "\u{202E}", "\u{200B}", "\u{FEFF}",
            "\u{E0041}",
            "\0",
        ])
    func hostile(text: String) {
        let record = LogRecord(
            time: record.time, level: .info, logger: text, message: text, metadata: ["k\(text)=\" x": .string(text)])
        for line in [LogText.line(record, colour: false), LogText.prefixedLine(record), LogJSON.line(record)] {
            let scalars = string(line.dropLast()).unicodeScalars
            #expect(scalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F })
            #expect(
                !scalars.contains {
                    text.unicodeScalars.contains($0) && !("a"..."b" ~= $0) && $0 != "[" && $0 != "2" && $0 != "J"
                })
        }
    }

    @Test("a log record has a bounded size")
    func bounded() {
        var metadata: Logger.Metadata = [:]
        for number in 0..<100 { metadata["key\(number)"] = .string(String(repeating: "ä", count: 5000)) }
        let record = LogRecord(
            time: record.time, level: .info, logger: "l", message: String(repeating: "m", count: 5000),
            metadata: metadata)
        #expect(record.fields.count == LogRecord.maximumFields)
        #expect(LogText.line(record, colour: false).count < 33 * (LogRecord.maximumTextBytes + 64))
        #expect(record.message.hasSuffix("m…"))
    }

    @Test(
        "the time of a log record is that of the calendar",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ])
    func time(milliseconds: Int64, text: String) {
        #expect(LogTime(milliseconds: milliseconds).text == text)
    }

    private func string(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: Array(bytes), as: UTF8.self)
    }
}
