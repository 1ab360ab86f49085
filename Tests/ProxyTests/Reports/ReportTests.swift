// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Logging
import Synchronization
import Testing

@testable import Proxy

@Suite("Log lines of exchanges")
struct ExchangeLogTests {
    private func id(in text: String) -> String? {
        text.firstMatch(of: #/exchange_id["=:]+([0-9a-f]{8}-\d+-\d+)/#).map { String($0.1) }
    }

    @Test("each local reply has the exchange id in its document and in Proxy-Status, as the log does")
    func names() throws {
        let log = Lines()
        let proxy = try TestProxy(.bank(port: 1), logger: log.logger)
        let refused = try proxy.fetch("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        let failed = try proxy.fetch(get())
        let caller = try proxy.connect()
        try caller.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let head = try caller.head()
        let ids = [refused.head, failed.head, head].compactMap(id)
        #expect(Set(ids).count == 3)
        #expect([refused.body, failed.body].compactMap(id) == Array(ids.prefix(2)))
        #expect(log.matching("request refused").compactMap(id) == [ids[0]])
        // The same failure soon after does not get its own line.
        #expect(log.matching("exchange failed").compactMap(id) == [ids[1]])
        #expect(log.matching("local reply").compactMap(id) == ids)
    }

    @Test("a flood of refused requests is logged as one line and a count")
    func flood() throws {
        let log = Lines()
        let proxy = try TestProxy(.bank(port: 1), logger: log.logger)
        let caller = try proxy.connect()
        for _ in 0..<500 {
            try caller.send("GET /?secret HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            _ = try caller.message()
        }
        #expect(log.matching("request refused").count == 1)
        proxy.server.logRepetitions()
        #expect(log.matching("request refused").count == 1)
        proxy.clock.advance(by: 31)
        proxy.server.logRepetitions()
        let lines = log.matching("request refused again")
        #expect(lines.count == 1 && lines.first?.contains("count=499") == true, "\(lines)")
        #expect(log.matching("secret").isEmpty)
    }

    @Test("the recovery of an upstream is logged with the number of its failures")
    func worksAgain() throws {
        let log = Lines()
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port), logger: log.logger)
        let caller = try proxy.connect()
        func exchange(failing: Bool) throws {
            try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let server = try upstream.accept()
            _ = try server.head()
            if !failing { try server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") }
            server.close()
            _ = try caller.message()
        }
        for failing in [true, true, false] { try exchange(failing: failing) }
        #expect(log.matching("exchange failed").count == 1)
        // One success is not enough: the upstream may fail every other time.
        #expect(log.matching("answers again").isEmpty)
        proxy.clock.advance(by: 6)
        for _ in 0..<2 { try exchange(failing: false) }
        let lines = log.matching("answers again")
        #expect(lines.count == 1 && lines.first?.contains("failed=2 seconds=6") == true, "\(lines)")
        try exchange(failing: true)
        #expect(log.matching("exchange failed").count == 2)
    }
}

/// Logged lines, each with its metadata.
final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    var logger: Logger {
        Logger(label: "test") { _ in Handler(lines: self) }
    }

    func matching(_ text: String) -> [String] { lines.withLock { $0.filter { $0.contains(text) } } }

    private struct Handler: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let fields = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            let line = "\(event.message) \(fields.joined(separator: " "))"
            lines.lines.withLock { $0.append(line) }
        }
    }
}

@Suite("Repeated log messages")
struct RepetitionsTests {
    @Test("a repeated message is logged at once, then once per interval with its count")
    func flood() {
        var repetitions = Repetitions<String>(interval: 1_000)
        #expect(repetitions.happened("a", now: 0) == true)
        #expect((1...999).count { repetitions.happened("a", now: $0) } == 0)
        #expect(repetitions.due(now: 999).isEmpty)
        #expect(repetitions.due(now: 1_000) == [.init(kind: "a", count: 999, seconds: 1)])
        #expect(repetitions.due(now: 5_000).isEmpty)
        // Once more within the interval of that line, and then after it.
        #expect(repetitions.happened("a", now: 1_500) == false)
        #expect(repetitions.due(now: 2_000) == [.init(kind: "a", count: 1, seconds: 1)])
        #expect(repetitions.happened("a", now: 3_001) == true)
    }

    @Test("the counts of repeated messages lose no occurrence")
    func conservation() {
        var generator = SystemRandomNumberGenerator()
        var repetitions = Repetitions<Int>(interval: 100)
        var (now, happened, told) = (Int64(0), 0, 0)
        for _ in 0..<10_000 {
            now += Int64.random(in: 0...20, using: &generator)
            happened += 1
            if repetitions.happened(Int.random(in: 0..<5, using: &generator), now: now) { told += 1 }
            if Int.random(in: 0..<10, using: &generator) == 0 {
                told += repetitions.due(now: now).reduce(0) { $0 + $1.count }
            }
        }
        told += repetitions.due(now: now, all: true).reduce(0) { $0 + $1.count }
        #expect(told == happened)
    }

    @Test("repeated messages are counted by kind, and a removed kind is logged at once")
    func kinds() {
        var repetitions = Repetitions<String>()
        #expect(repetitions.happened("a", now: 0) && repetitions.happened("b", now: 0))
        #expect(repetitions.happened("a", now: 1) == false)
        #expect(repetitions.forget { $0 == "a" } == 1)
        #expect(repetitions.happened("a", now: 2) && !repetitions.happened("b", now: 2))
    }

    @Test("the number of kinds of repeated messages is limited, and old ones are replaced")
    func bound() {
        var repetitions = Repetitions<Int>(interval: 1_000)
        let most = Repetitions<Int>.mostKinds
        #expect((0..<2 * most).count { repetitions.happened($0, now: 0) } == most)
        #expect((0..<2 * most).count { repetitions.happened($0, now: 2_000) } == most)
    }

    @Test("a clock that is set back starts a new interval of repetitions")
    func setBack() {
        var repetitions = Repetitions<String>(interval: 1_000)
        #expect(repetitions.happened("a", now: 1_000_000) == true)
        #expect(repetitions.happened("a", now: 5) == true)
        #expect(repetitions.happened("a", now: 6) == false)
        #expect(repetitions.due(now: 0) == [.init(kind: "a", count: 1, seconds: 0)])
    }
}

@Suite("An upstream that fails")
struct UpstreamOutageTests {
    @Test("an outage is total after three failures without an answer in between, for a minute")
    func total() {
        var outage = UpstreamOutage(at: 1_000, reason: "refused")
        outage.failed(at: 2_000, reason: "refused")
        #expect(!outage.isTotal(at: 2_000))
        outage.failed(at: 3_000, reason: "timed out")
        #expect(outage.isTotal(at: 3_000) && outage.isTotal(at: 63_000) && !outage.isTotal(at: 63_001))
        #expect(outage.since == 1_000 && outage.last == 3_000 && outage.failures == 3 && outage.reason == "timed out")
        // The clock was set back.
        #expect(!outage.isTotal(at: 2_999))
        // A request from before the outage is answered, and then all fail.
        outage.answered()
        #expect(!outage.isTotal(at: 3_000) && outage.isPartial)
        for time in [Int64(4_000), 5_000] { outage.failed(at: time, reason: "refused") }
        #expect(!outage.isTotal(at: 5_000) && outage.isPartial)
        outage.failed(at: 6_000, reason: "refused")
        #expect(outage.isTotal(at: 6_000) && !outage.isPartial)
    }
}
