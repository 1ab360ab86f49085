// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Requests that two readers would take for different ones: nothing behind them is read (RFC 9112 §11.2).
enum UnreadableRequests {
    static let all: [Trespass] = heads + lengths + chunks

    private static let host = Trespass.host

    private static func one(_ name: String, _ request: String, _ statuses: Set<Int> = [400]) -> Trespass {
        Trespass(name, request, statuses, endsConnection: true)
    }

    private static func post(_ name: String, _ rest: String, version: String = "1.1", _ statuses: Set<Int> = [400])
        -> Trespass
    { one(name, "POST /r/0 HTTP/\(version)\r\n\(host)\(rest)", statuses) }

    private static let heads = [
        one("no host", "GET /r/0 HTTP/1.1\r\n\r\n"),
        one("two hosts", "GET /r/0 HTTP/1.1\r\n\(host)Host: s1.localhost:8080\r\n\r\n"),
        one("CONNECT", "CONNECT s0.localhost:80 HTTP/1.1\r\n\(host)\r\n", [400, 405]),
        one("a folded line", "GET /r/0 HTTP/1.1\r\n\(host)X-A: 1\r\n 2\r\n\r\n"),
        one("a bare line feed", "GET /r/0 HTTP/1.1\n\(host)\r\n"),
        one("a bare line feed behind a field", "GET /r/0 HTTP/1.1\r\n\(host)X-A: 1\nX-B: 2\r\n\r\n"),
        one("a bare line feed at the end", "GET /r/0 HTTP/1.1\r\n\(host)X-A: 1\r\n\n"),
        one("a bare carriage return", "GET /r/0 HTTP/1.1\r\n\(host)X-A: 1\rX-B: 2\r\n\r\n"),
        one("a space before the colon", "GET /r/0 HTTP/1.1\r\n\(host)X-A : 1\r\n\r\n"),
        one("another version", "GET /r/0 HTTP/2.0\r\n\(host)\r\n", [400, 505]),
        one("a control in the target", "GET /r/\u{1}0 HTTP/1.1\r\n\(host)\r\n"),
        one("a backslash in the target", "GET /r\\0 HTTP/1.1\r\n\(host)\r\n"),
        one("a long line", "GET /\(String(repeating: "a", count: 9_000)) HTTP/1.1\r\n\(host)\r\n", [400, 414, 431]),
    ]

    private static let lengths = [
        post("two framings", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        post("two lengths", "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        post("a length with a sign", "Content-Length: +1\r\n\r\na"),
        post("a length of 2^64 and five", "Content-Length: 18446744073709551621\r\n\r\nabcde"),
        post("an unknown coding", "Transfer-Encoding: gzip\r\n\r\n", [400, 501]),
        post("two codings", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", [400, 501]),
        post("chunks in HTTP/1.0", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", version: "1.0"),
        one("HEAD with a body", "HEAD /r/0 HTTP/1.1\r\n\(host)Content-Length: 3\r\n\r\nabc"),
        one("HEAD with chunks", "HEAD /r/0 HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ]

    private static func chunks(_ name: String, _ body: String) -> Trespass {
        post(name, "Transfer-Encoding: chunked\r\n\r\n\(body)")
    }

    private static let chunks = [
        chunks("a chunk without a size", "zz\r\n"),
        chunks("a chunk of 2^64 and five", "10000000000000005\r\nabcde\r\n0\r\n\r\n"),
        chunks("a chunk that ends in another byte", "5\r\nabcdeX\n0\r\n\r\n"),
        chunks("a chunk that ends in a line feed", "5\r\nabcde\n0\r\n\r\n"),
        chunks("a chunk's size that ends in a line feed", "5\nabcde\r\n0\r\n\r\n"),
        chunks("a line feed in a chunk's extension", "5;a=\"\n\"\r\nabcde\r\n0\r\n\r\n"),
        chunks("a line feed behind a chunk's extension", "5;a=b\nabcde\r\n0\r\n\r\n"),
        chunks("a bare line feed behind a trailer", "0\r\nX-Sum: 1\n\r\n"),
    ]
}
