// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A request that two servers could read differently")
struct SmugglingTests {
    private static let post = "POST /open/x HTTP/1.1\r\nHost: localhost\r\n"
    private static let requests = [
        "\(post)Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /open/smuggled HTTP/1.1\r\n\r\n",
        "\(post)Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "\(post)Content-Length: 5, 6\r\n\r\nhello!",
        "\(post)Content-Length: +5\r\n\r\nhello",
        "\(post)Content-Length: 0x5\r\n\r\nhello",
        "\(post)Content-Length: 99999999999999999999\r\n\r\nhello",
        "\(post)Content-Length : 5\r\n\r\nhello",
        "\(post) Content-Length: 5\r\n\r\nhello",
        "\(post)X: y\r\n folded\r\n\r\n",
        "\(post)Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "\(post)Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "\(post)Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "\(post)Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n",
        "\(post)Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        "\(post)Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
        "GET /open/x HTTP/1.1\nHost: localhost\n\n",
        "GET /open/x HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
        "GET /open/x HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
        "GET /open/x HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        "GET /open/x HTTP/1.1\r\n\r\n",
        "GET  /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /open/x\u{7f} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /open/x HTTP/1.1\r\nHost: localhost\r\n: nameless\r\n\r\n",
        "GET /open/x HTTP/1.10\r\nHost: localhost\r\n\r\n",
    ]

    @Test("is refused with 400, and nothing after it is read")
    func refused() async throws {
        try await withBank { bank in
            for request in Self.requests {
                let (bytes, end) = try await offPool {
                    let connection = try bank.connect()
                    connection.send(request + "GET /open/next HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    return connection.rest()
                }
                let text = String(decoding: bytes, as: UTF8.self)
                #expect(text.hasPrefix("HTTP/1.1 400 "), "\(request.debugDescription): \(text)")
                #expect(text.components("Proxy-Status:") == 1, "\(request.debugDescription): \(text)")
                #expect(text.components("HTTP/1.1 2") == 0, "\(request.debugDescription): \(text)")
                #expect(text.contains(#""code":"bad-request""#), "\(request.debugDescription)")
                #expect(end == .closed, "\(request.debugDescription)")
            }
            // A body that turned out wrong may have been under way; what followed it must never arrive.
            #expect(!bank.record.transcript.contains { $0.path.hasSuffix("next") || $0.path.hasSuffix("smuggled") })
            #expect(bank.record.hits.isEmpty)
        }
    }

    @Test("has limits: a head that is too long, too many fields, a method that tunnels")
    func limits() async throws {
        try await withBank { bank in
            let long = String(repeating: "x", count: 100_000)
            let many = (0..<2_000).map { "X-\($0): y\r\n" }.joined()
            let statuses = try await offPool {
                try [
                    "GET /\(long) HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: localhost\r\nX: \(long)\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: localhost\r\n\(many)\r\n",
                    "TRACE /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n",
                    "GET /open/x HTTP/2.0\r\nHost: localhost\r\n\r\n",
                    "GET /open/x HTTP/1.1\r\nHost: localhost\r\nExpect: wonders\r\n\r\n",
                ].map { request in
                    let connection = try bank.connect()
                    connection.send(request)
                    return connection.response()?.status
                }
            }
            #expect(statuses == [414, 431, 431, 405, 405, 505, 417])
            #expect(bank.record.transcript.isEmpty)
        }
    }
}
