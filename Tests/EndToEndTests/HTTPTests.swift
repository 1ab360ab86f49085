// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("HTTP as callers speak it")
struct HTTPTests {
    @Test("one connection serves many requests, three of them sent at once and answered in order")
    func pipelining() async throws {
        try await withBank { bank in
            let texts = try await offPool {
                let connection = try bank.connect()
                connection.send("GET /open/first HTTP/1.1\r\nHost: localhost\r\n\r\n")
                var texts = [connection.response()?.text]
                connection.send(
                    ["one", "two", "three"].map { "GET /open/\($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined())
                for _ in 0..<3 { texts.append(connection.response()?.text) }
                return texts
            }
            let paths = texts.map { $0.flatMap { JSON(parsing: Array($0.utf8)) }?["path"]?.string }
            #expect(paths == ["/open/first", "/open/one", "/open/two", "/open/three"])
        }
    }

    @Test("a pipeline whose first request meets the login is answered in order as well")
    func pipelinedLogin() async throws {
        try await withBank { bank in
            let answers = try await offPool {
                let connection = try bank.connect()
                let post = "POST /transfer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
                connection.send("GET /balance HTTP/1.1\r\nHost: localhost\r\n\r\n\(post)GET /open/x HTTP/1.0\r\n\r\n")
                return (0..<3).map { _ in connection.response()?.status }
            }
            #expect(answers == [200, 201, 200])
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("HTTP/1.0 gets its answer and a closed connection, or a kept one where it asks")
    func oldVersion() async throws {
        try await withBank { bank in
            let (closed, kept) = try await offPool {
                let first = try bank.connect()
                first.send("GET /open/bytes?count=1000 HTTP/1.0\r\n\r\n")
                let second = try bank.connect()
                second.send("GET /open/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                let response = second.response()
                second.send("GET /open/y HTTP/1.0\r\n\r\n")
                return (first.rest(), [response?.status, second.response()?.status])
            }
            #expect(closed.end == .closed)
            #expect(String(decoding: closed.bytes, as: UTF8.self).components("abcdefghijklm") > 30)
            #expect(kept == [200, 200])
        }
    }

    @Test("a chunked answer reaches HTTP/1.0 without its chunks")
    func chunksForOldVersion() async throws {
        try await withBank { bank in
            let (bytes, end) = try await offPool {
                let connection = try bank.connect()
                connection.send("GET /open/stream?lines=3&pause=1 HTTP/1.0\r\n\r\n")
                return connection.rest()
            }
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(end == .closed)
            #expect(text.hasSuffix("\r\n\r\ndata: tick 1\n\ndata: tick 2\n\ndata: tick 3\n\n"))
            #expect(!text.lowercased().contains("transfer-encoding"))
        }
    }

    @Test("HEAD, 204 and 304 have no body, and the connection goes on")
    func withoutBody() async throws {
        try await withBank { bank in
            let answers = try await offPool {
                let connection = try bank.connect()
                connection.send("HEAD /balance HTTP/1.1\r\nHost: localhost\r\n\r\n")
                var answers = [connection.response(toHead: true)]
                for status in [204, 304, 200] {
                    connection.send("GET /open/status/\(status) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    answers.append(connection.response())
                }
                return answers
            }
            #expect(answers.map { $0?.status } == [200, 204, 304, 200])
            #expect(Int(answers[0]?.field("content-length") ?? "") ?? 0 > 20)
            #expect(answers[1]?.field("content-length") == nil)
            #expect(answers[3]?.text == "status 200\n")
        }
    }

    @Test("server-sent events arrive when they are sent")
    func events() async throws {
        try await withBank { bank in
            let (first, rest) = try await offPool {
                let connection = try bank.connect()
                connection.send("GET /stream?lines=2&pause=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return (connection.receive(until: "tick 1"), connection.receive(until: "0\r\n\r\n"))
            }
            #expect(first.contains("data: tick 1"))
            #expect(!first.contains("data: tick 2"))
            #expect(rest.contains("data: tick 2"))
        }
    }

    @Test("what belongs to one hop goes no further, nor does what Connection names")
    func hopByHop() async throws {
        try await withBank { bank in
            let answer = try await bank.expect(
                "/open/echo", "-H", "Connection: close, X-Hop", "-H", "X-Hop: 1", "-H", "Keep-Alive: timeout=5", "-H",
                "Proxy-Connection: keep-alive", "-H", "Proxy-Authorization: Basic eDp5", "-H", "TE: trailers", "-H",
                "X-End: 2", status: 200)
            let arrived = answer.json?["fields"].map(fields) ?? [:]
            #expect(arrived["x-end"] == "2")
            // Written anew: what it says of trailers holds for us as well.
            #expect(arrived["te"] == "trailers")
            for name in ["x-hop", "keep-alive", "proxy-connection", "proxy-authorization"] {
                #expect(arrived[name] == nil, "\(name)")
            }
            #expect(arrived["connection"].map { !$0.lowercased().contains("hop") } ?? true)
            // A caller cannot have a session's field removed by naming it.
            try await bank.expect("/balance", "-H", "Connection: Authorization", status: 200)
        }
    }

    @Test("a query, an encoded path and an empty one go on as they came")
    func targets() async throws {
        try await withBank { bank in
            for path in ["/open/a%2Fb%20c?x=1&y=%C3%A4?z", "/open/a//b/./c?", "/open/*;v=1,2"] {
                let answer = try await bank.expect(path, "--path-as-is", status: 200)
                let query = answer.json?["query"]?.string.map { "?\($0)" } ?? ""
                #expect((answer.json?["path"]?.string ?? "") + query == path)
            }
        }
    }
}

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
            // An invalid body may have been under way; the bytes after it must never arrive.
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
