// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The parts of responses.
enum ResponseWords {
    static let reasons: [StaticString] = ["OK", "", "Not Found", "\u{E9}t\u{E9}", "a\tb", "HTTP/1.1 200 OK", "  "]
    static let others: [(name: StaticString, isHopByHop: Bool)] = [
        ("X-A", false), ("Content-Type", false), ("Server", false), ("Cache-Control", false), ("ETag", false),
        ("Vary", false), ("Warning", false), ("Keep-Alive", true), ("Proxy-Authenticate", true), ("Upgrade", true),
        ("Age", false), ("!#$%&'*+.^`|~0", false),
    ]
    static let values: [StaticString] = [
        "", "a", "a b", "text/html; charset=\"utf-8\"", "a,b", "\u{E9}\u{1F600}", "b\tc", "0", "Apache/2.4",
        "max-age=0, no-store",
        "W/\"x\"", "chunked", "HTTP/1.1 200 OK", "\\\"",
    ]
    /// Each of them, first in a head, makes it none.
    static let brokenLines: [StaticString] = [
        "HTTP/1.1\r\n", "HTTP/1.1 \r\n", "HTTP/1.1 20\r\n", "HTTP/1.1 2000\r\n", "HTTP/1.1 2x0 OK\r\n",
        "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1\t200 OK\r\n", "http/1.1 200 OK\r\n", "HTTP/1 200 OK\r\n", "HTTP/0.9 200 OK\r\n", "HTTP/4 200\r\n",
        "ICY 200 OK\r\n",
        "HTTP/1.1 099 a\r\n", "HTTP/1.1 000 a\r\n", "HTTP/1.1 -20 a\r\n", "HTTP/1.1 200 a\0\r\n",
        "HTTP/1.1 200 a\rb\r\n",
        "HTTP/1.1 200 OK\n", " HTTP/1.1 200 OK\r\n", "\r\n", "HTTP/1.1 200OK\r\n", "HTTP/1.1 200\tOK\r\n",
        "HTTP/11 200 OK\r\n",
        "HTTP/1.1 +20 OK\r\n", "HTTP/x.1 200 OK\r\n", "HTTP/1.x 200 OK\r\n", "\u{665}\r\n", "HTTP/1.1 200 OK\r\r\n",
    ]
    static let brokenFields: [StaticString] = [
        "A : b\r\n", "A\t: b\r\n", " A: b\r\n", "\tb\r\n", "A\r\n", ": b\r\n", "A: b\n", "A: b\rc\r\n", "A: b\r\r\n",
        "A: \0\r\n",
        "A: \u{7F}\r\n", "A: \u{1}b\r\n", "A(: b\r\n", "\u{E9}: b\r\n", "A B: c\r\n", "\"A\": b\r\n", "A: b\r\n c\r\n",
        "A:\r\n\tc\r\n",
        "Content-Length: +5\r\n", "Content-Length: -1\r\n", "Content-Length: 0x5\r\n", "Content-Length: 5, 6\r\n",
        "Content-Length: 5 5\r\n", "Content-Length:\r\n", "Content-Length: ,\r\n", "Content-Length: 5;a=b\r\n",
        "Content-Length: 9223372036854775808\r\n", "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 1e1\r\n",
        "Content-Length: \"5\"\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: chunked;q=1\r\n", "Transfer-Encoding:\r\n", "Connection: a b\r\n", "Connection: (\r\n",
        "Connection: \"close\"\r\n", "Connection: close;x\r\n", "\r\nA: b\r\n",
    ]
}
