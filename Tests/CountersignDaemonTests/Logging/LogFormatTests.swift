// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Logging
import Secrets
import Systemd
import TestSupport
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

@Suite("Logins in the log")
struct LoginLogTests {
    private struct Handler: LogHandler {
        let lines: Notes
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let outcome = event.metadata?["outcome"].map { "\($0)" } ?? ""
            lines.add("\(event.level): \(event.message) (\(outcome))")
        }
    }

    private let lines = Notes()
    private let key = SessionKey(origin: Origin(scheme: .https, host: "a"), challenge: "corp", credential: "ann")
    private let field = InjectedField(name: .authorization, value: Secret("x"))

    private func log(isAuditing: Bool) -> LoginLog {
        let lines = lines
        let logger = Logger(label: "x") { _ in Handler(lines: lines) }
        return LoginLog(logger: logger, auditor: logger, isAuditing: isAuditing)
    }

    private func run(_ log: LoginLog, _ result: Result<Session, LoginFailure>, steps: Int) {
        log.loginBegan(key, LoginCause(.request))
        for _ in 0..<steps { log.loginStepped(key, ConversationStep(challenge: "corp", text: "step")) }
        log.loginEnded(key, result, LoginCause(.request), after: .zero)
    }

    private func failure(_ code: LoginFailure.Code) -> Result<Session, LoginFailure> {
        .failure(LoginFailure(code, challenge: "corp", detail: ""))
    }

    @Test("a login that failed is a warning, audited or not", arguments: [true, false])
    func warnings(isAuditing: Bool) {
        for code in [.rejected, .latched, .noCredential, .failed, .accountLocked] as [LoginFailure.Code] {
            run(log(isAuditing: isAuditing), failure(code), steps: 1)
            #expect(lines.all.last == "warning: login failed (\(code.rawValue))")
        }
    }

    @Test("of requests that meet a closed latch the first is logged, the others are counted")
    func repetitions() {
        let log = log(isAuditing: true)
        for _ in 0..<20 { run(log, failure(.latched), steps: 0) }
        #expect(lines.all == ["warning: login failed (login-latched)"])
    }

    @Test("a login is logged as succeeded once, when the server has accepted something")
    func succeeded() {
        let log = log(isAuditing: true)
        let latch = LatchKey(origin: key.origin, challenge: "corp", credential: "ann")
        let use = CredentialUse(key: latch, credential: Credential(name: "ann", fields: [:]))
        run(log, .success(Session(unverified: use, fields: [field])), steps: 0)
        #expect(lines.all.isEmpty)
        log.sessionAccepted(key)
        log.sessionAccepted(key)
        #expect(lines.all == ["notice: login succeeded (succeeded)"])
        run(log, .success(Session(unverified: use, fields: [field])), steps: 0)
        log.loginEnded(
            key, failure(.rejected), LoginCause(.request), after: .zero)
        log.sessionAccepted(key)
        #expect(lines.all.dropFirst() == ["warning: login failed (login-rejected)"])
    }

    @Test("a challenge that was not understood is logged once for each upstream and text, and a flood of texts ends")
    func unread() {
        let log = log(isAuditing: true)
        for _ in 0..<3 {
            for upstream in ["a", "b"] { log.challengeUnread("\"x\" at byte 4", by: upstream) }
        }
        #expect(lines.all == Array(repeating: "warning: WWW-Authenticate not understood ()", count: 2))
        for number in 0..<1000 { log.challengeUnread("\(number)", by: "a") }
        #expect(lines.all.count == 256)
    }

    @Test("a login without a challenge to answer is logged once")
    func nothingAsked() {
        let log = log(isAuditing: false)
        run(log, .success(Session()), steps: 1)
        run(log, .success(Session()), steps: 1)
        #expect(lines.all == ["info: login without a challenge to answer (not-asked)"])
    }
}
