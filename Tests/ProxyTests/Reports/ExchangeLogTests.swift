// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Logging
import Proxy
import Synchronization
import Testing

@Suite("What is logged of exchanges")
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
        // The same failure a moment later is no line of its own.
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
        // It may fail every other time.
        #expect(log.matching("answers again").isEmpty)
        proxy.clock.advance(by: 6)
        for _ in 0..<2 { try exchange(failing: false) }
        let lines = log.matching("answers again")
        #expect(lines.count == 1 && lines.first?.contains("failed=2 seconds=6") == true, "\(lines)")
        try exchange(failing: true)
        #expect(log.matching("exchange failed").count == 2)
    }
}

/// Lines as they are logged, each with its metadata.
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
