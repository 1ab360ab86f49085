// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc
import HTTPWire
import Redis

@testable import Proxy

/// A reader, and texts that could make it slow: eight times the length must take eight times as long.
struct Growth: Sendable {
    /// The name of the reader's grammar.
    let name: String
    /// The length of the shorter of two texts.
    var small = 2_000
    /// Nanoseconds for a byte that no text may exceed in a release build, on a machine of today.
    let most: Int
    let read: @Sendable ([UInt8]) -> Void
    let texts: [(what: String, make: @Sendable (Int) -> [UInt8])]

    static let all = messages + texts

    /// Throws if a text of eight times the length takes more than twenty times as long, which quadratic time (64 times)
    /// exceeds by far. With `isTimed` it also throws if a byte takes too long.
    func check(isTimed: Bool) throws(Violation) {
        for (what, make) in texts {
            let (short, long) = (make(small), make(8 * small))
            var told = ""
            // Others on the machine may disturb one measurement, but hardly three.
            for _ in 0..<3 where told.isEmpty || !told.hasPrefix("+") {
                let (few, many) = (time(short), time(long))
                // Some time for work that does not depend on the length, and for the clock.
                let isLinear = many < 20 * few + 300_000
                let isFast = !isTimed || many < most * long.count + 300_000
                told =
                    isLinear && isFast ? "+" : "\(what): \(short.count) bytes \(few) ns, \(long.count) bytes \(many) ns"
            }
            try require(told == "+", told)
        }
    }

    /// Returns the nanoseconds per byte of each longest text, for a table.
    func costs() -> [(what: String, cost: Double)] {
        texts.map { what, make in
            let long = make(8 * small)
            return (what, Double(time(long)) / Double(max(long.count, 1)))
        }
    }

    /// Returns the best time of three.
    private func time(_ text: [UInt8]) -> Int {
        (0..<3).map { _ in
            let before = Self.threadTime
            read(text)
            return Self.threadTime - before
        }.min() ?? 0
    }

    /// Processor time of this thread, in nanoseconds.
    private static var threadTime: Int {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    /// `start`, as much of `text` as fits, `end`.
    static func repeated(_ text: String, from start: String = "", to end: String = "") -> @Sendable (Int) -> [UInt8] {
        { count in
            Array(
                (start + String(repeating: text, count: max(1, (count - start.utf8.count) / text.utf8.count)) + end)
                    .utf8)
        }
    }

    /// Pieces that differ by their numbers.
    static func numbered(
        from start: String = "", to end: String = "", _ piece: @escaping @Sendable (Int) -> String
    ) -> @Sendable (Int) -> [UInt8] {
        { count in
            var text = start
            var number = 0
            while text.utf8.count < count {
                text += piece(number)
                number += 1
            }
            return Array((text + end).utf8)
        }
    }
}

/// Messages of callers, upstreams, HAProxy and session stores that may have no end.
extension Growth {
    private static let request = "GET / HTTP/1.1\r\nHost: a\r\n"
    private static let heads: [(what: String, make: @Sendable (Int) -> [UInt8])] = [
        ("many fields", repeated("A: b\r\n", from: request, to: "\r\n")),
        ("fields that differ", numbered(from: request, to: "\r\n") { "X-\($0): b\r\n" }),
        ("a long value", repeated("a", from: request + "A: ", to: "\r\n\r\n")),
        ("a long name", repeated("a", from: request, to: ": b\r\n\r\n")),
        ("blanks", repeated(" \t", from: request + "A: ", to: "\r\n\r\n")),
        ("blanks behind a value", repeated(" ", from: request + "A: b", to: "\r\n\r\n")),
        ("a long target", repeated("/a", from: "GET ", to: " HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("percent signs", repeated("%2f", from: "GET /", to: " HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("a long host", repeated("a.", from: "GET / HTTP/1.1\r\nHost: ", to: "\r\n\r\n")),
        ("a host of colons", repeated(":", from: "GET / HTTP/1.1\r\nHost: [", to: "]\r\n\r\n")),
        (
            "options of a connection, and fields",
            numbered(
                from: request + "Connection: " + (0..<60).map { "o\($0)" }.joined(separator: ",") + "\r\n", to: "\r\n"
            ) {
                "X\($0): b\r\n"
            }
        ),
        ("commas", repeated(",", from: request + "Connection: ", to: "\r\n\r\n")),
        ("codings", repeated("gzip,", from: request + "Transfer-Encoding: ", to: "chunked\r\n\r\n")),
        ("codings of trailers", repeated("trailers,", from: request + "TE: ", to: "a\r\n\r\n")),
        ("protocols", repeated("a/b,", from: request + "Connection: upgrade\r\nUpgrade: ", to: "c\r\n\r\n")),
        ("cookies", repeated("countersign-__Host-a=b; ", from: request + "Cookie: ", to: "c=d\r\n\r\n")),
        ("lines of cookies", repeated("Cookie: a=b\r\n", from: request, to: "\r\n")),
    ]
    private static let limits = HeadLimits(line: 1 << 20, head: 1 << 20, fieldCount: 65_536)

    static let messages: [Growth] = [
        Growth(
            name: "requests", most: 200,
            read: { bytes in
                var parser = RequestHeadParser(limits: limits)
                guard case .complete(let length) = parser.parse(bytes.span) else { return }
                let sink = FieldSink()
                var target = ByteQueue()
                target.append("/")
                sink.begin("GET".utf8.span, target)
                ForwardedRequest.write(parser.head, in: bytes.span, authority: [0x61], overriddenBy: .none, to: sink)
                _ = UpgradeOffer(parser.head, in: bytes.span.extracting(0..<length))
            }, texts: heads),
        Growth(
            name: "requests in pieces", most: 100,
            read: { bytes in
                var parser = RequestHeadParser(limits: limits)
                for end in stride(from: 0, through: bytes.count, by: 8) {
                    guard case .incomplete = parser.parse(bytes.span.extracting(0..<end)) else { return }
                }
            }, texts: heads),
        Growth(
            name: "responses", most: 2_000,
            read: { bytes in
                var scanner = ResponseHeadScanner(limits: limits)
                guard (try? scanner.scan(bytes.span)) != nil else { return }
                var response = ForwardedResponse()
                response.reset(isHead: false, version: .http11)
                var queue = ByteQueue()
                _ = response.writeHead(
                    scanner.head, in: bytes.span, keepsAlive: true, to: &queue, date: { "" },
                    addresses: { Site.all[1].addresses })
            },
            texts: [
                ("many fields", repeated("A: b\r\n", from: "HTTP/1.1 200 OK\r\n", to: "\r\n")),
                ("cookies", repeated("Set-Cookie: a=b; Path=/a; Secure\r\n", from: "HTTP/1.1 200 OK\r\n", to: "\r\n")),
                (
                    "attributes",
                    repeated(
                        ";Secure;Domain=bank.example;Path=/a/b", from: "HTTP/1.1 200 OK\r\nSet-Cookie: a=b",
                        to: "\r\n\r\n")
                ),
                ("lengths", repeated("5,", from: "HTTP/1.1 200 OK\r\nContent-Length: ", to: "5\r\n\r\n")),
                ("a long phrase", repeated("a", from: "HTTP/1.1 200 ", to: "\r\n\r\n")),
                (
                    "a long address",
                    repeated("/a", from: "HTTP/1.1 200 OK\r\nLocation: https://bank.example", to: "\r\n\r\n")
                ),
                (
                    "dots in an address",
                    repeated("/..", from: "HTTP/1.1 200 OK\r\nLocation: https://bank.example/a", to: "\r\n\r\n")
                ),
                ("a refresh of blanks", repeated(" ", from: "HTTP/1.1 200 OK\r\nRefresh: 0;", to: "url=/a\r\n\r\n")),
            ]),
        Growth(
            name: "chunks", most: 100,
            read: { bytes in
                var reading = BodyReading()
                try? reading.read(.chunked, bytes, from: 0, arrivals: [bytes.count])
                try? reading.read(
                    .chunked, bytes, from: 0, arrivals: Array(stride(from: 16, through: bytes.count, by: 16)))
            },
            texts: [
                ("chunks of a byte", repeated("1\r\na\r\n", to: "0\r\n\r\n")), ("zeros", repeated("0")),
                ("extensions", repeated(";a", from: "1", to: "\r\na\r\n")),
                ("a quoted one", repeated("\\a", from: "1;a=\"")),
                ("blanks", repeated(" ", from: "1;a")), ("trailers", repeated("A: b\r\n", from: "0\r\n", to: "\r\n")),
                ("a long trailer", repeated("a", from: "0\r\nA: ")),
                ("a large chunk", repeated("a", from: "ffffff\r\n")),
            ]),
        Growth(
            name: "frames", most: 200,
            read: { bytes in
                let count = UInt32(bytes.count)
                let whole = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + bytes
                guard let frame = try? SPOPFrame.read(whole.span, limit: 1 << 20) else { return }
                _ = try? SPOPNotification.read(frame.payload, in: whole.span)
                _ = try? SPOPHello(frame.payload, in: whole.span)
            },
            texts: [
                ("messages", repeated("\u{9}authorize\0", from: "\u{3}\0\0\0\u{1}\0\0")),
                ("empty arguments", repeated("\0\0", from: "\u{3}\0\0\0\u{1}\0\0\0\u{7F}")),
                ("zeros", repeated("\0", from: "\u{3}\0\0\0\u{1}\0\0")),
                ("versions", repeated("\u{12}supported-versions\u{8}\u{4}1.0,", from: "\u{1}\0\0\0\u{1}\0\0")),
            ]),
        Growth(
            name: "replies", most: 500,
            read: { bytes in
                var reader = ReplyReader(limits: .init())
                var start = 0
                while start < bytes.count {
                    let end = min(start + 16, bytes.count)
                    reader.feed(bytes.span.extracting(start..<end))
                    start = end
                    do { while try reader.next() != nil {} } catch { return }
                }
            },
            texts: [
                ("words", repeated("+OK\r\n")), ("nothing", repeated("$-1\r\n")),
                ("a long string", repeated("a", from: "$10000000\r\n")),
                ("lists", repeated("*1\r\n")), ("empty lists", repeated("*0\r\n", from: "*10000\r\n")),
                ("lists of one", repeated("*1\r\n:1\r\n", from: "*4000\r\n")), ("a number", repeated("1", from: ":")),
            ]),
        Growth(
            name: "targets", small: 250, most: 20_000,
            read: { bytes in
                let router = Router(
                    routes: [.init(path: "/accounts/", users: [7], upstream: "guarded")], fallback: "rest")
                _ = router.decide(host: "a", path: String(decoding: bytes, as: UTF8.self), method: "GET", user: 8)
            },
            texts: [
                ("segments", repeated("/a")), ("slashes", repeated("/")), ("dots", repeated("/..")),
                ("coded slashes", repeated("%2f", from: "/")),
                ("coded percent signs", repeated("%25", from: "/")), ("parameters", repeated(";a/", from: "/")),
                ("backslashes", repeated("\\", from: "/")),
                ("coded dots", repeated("/%2e%2e")), ("all of them", repeated("/..;a/%2e%252e/%5c\\//A")),
                ("capitals", repeated("/A")),
            ]),
    ]
}
