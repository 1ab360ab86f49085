// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The parts of requests.
enum RequestWords {
    static let methods: [StaticString] = [
        "GET", "GET", "GET", "HEAD", "POST", "POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "M-SEARCH",
        "!#$%&'*+-.^_`|~9", "G",
        "CONNECTX", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ]
    static let connectTargets: [StaticString] = ["a:1", "[::1]:443", "host.example:65535", "127.0.0.1:80"]
    static let hosts: [StaticString] = [
        "a", "a:80", "bank.example", "BANK.example:", "127.0.0.1:8080", "[::1]", "[2001:db8::1]:443",
        "[::ffff:1.2.3.4]", "a.",
        "x_y~z", "a:0", "a:65535", "[1:2:3:4:5:6:7:8]",
    ]
    static let commas: [StaticString] = [",", ", ", " ,", ",,", " \t, ,\t"]
    static let others: [(name: StaticString, isHopByHop: Bool)] = [
        ("X-A", false), ("Accept", false), ("User-Agent", false), ("Referer", false), ("Authorization", false),
        ("Content-Type", false), ("!#$%&'*+.^`|~0", false), ("Keep-Alive", true), ("TE", true), ("Upgrade", true),
        ("Proxy-Authorization", true), ("Proxy-Connection", true), ("X-Forwarded-For", false), ("If-None-Match", false),
    ]
    static let keepAlive = 7
    static let te = 8
    static let upgrade = 9
    static let values: [StaticString] = [
        "trailers", "", "a", "a b", "a,b;c=\"d\"", "\u{E9}\u{1F600}", "b\tc", "0", "a:b", "websocket", "chunked", "5",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "GET / HTTP/1.1", "\\", "\"", "%0d%0aX: y",
    ]
    static let trailers = 0

    /// Request lines that no reader may accept, even with the rest of a head after them.
    static let brokenLines: [StaticString] = [
        " GET / HTTP/1.1\r\n", "\tGET / HTTP/1.1\r\n", "GET\t/ HTTP/1.1\r\n", "GET  / HTTP/1.1\r\n",
        "G(T / HTTP/1.1\r\n",
        "GET /a b HTTP/1.1\r\n", "GET / HTTP/1.1 \r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/0.9\r\n",
        "GET / http/1.1\r\n",
        "GET / HTTP/1.10\r\n", "GET / HTTP/1.\r\n", "GET / HTTP/1,1\r\n", "GET / HTTP/11\r\n", "GET /\r\n",
        "GET / \r\n", "GET\r\n",
        "GET /#f HTTP/1.1\r\n", "GET /%zz HTTP/1.1\r\n", "GET /%4 HTTP/1.1\r\n", "GET /% HTTP/1.1\r\n",
        "GET /\\ HTTP/1.1\r\n",
        "GET /\u{E9} HTTP/1.1\r\n", "GET a HTTP/1.1\r\n", "GET ftp://a/ HTTP/1.1\r\n", "GET http:/a HTTP/1.1\r\n",
        "GET http:///a HTTP/1.1\r\n", "GET http://u@h/ HTTP/1.1\r\n", "GET http://h:99999/ HTTP/1.1\r\n",
        "CONNECT / HTTP/1.1\r\n",
        "CONNECT h HTTP/1.1\r\n", "CONNECT h:0 HTTP/1.1\r\n", "CONNECT h: HTTP/1.1\r\n", "CONNECT * HTTP/1.1\r\n",
        "GET * HTTP/1.1\r\n", "OPTIONS *x HTTP/1.1\r\n", "GET / HTTP/1.1\n", "GET / HTTP/1.1\r\r\n",
        "GET /\r HTTP/1.1\r\n",
        "GET /\0 HTTP/1.1\r\n", "GET /\u{7F} HTTP/1.1\r\n", "GET /|a HTTP/1.1\r\n", "GET /[a] HTTP/1.1\r\n",
        "GET /?a\"b HTTP/1.1\r\n",
        "GET /?a\\b HTTP/1.1\r\n", "GET /?a<b HTTP/1.1\r\n", "\r\n\r\n\r\nGET / HTTP/1.1\r\n", "\nGET / HTTP/1.1\r\n",
        "\r GET / HTTP/1.1\r\n", "\u{16}\u{3}\u{1}\r\n", "GET /?a#b HTTP/1.1\r\n", "GET http://a%41/ HTTP/1.1\r\n",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n",
    ]
    /// None of them may be in any head.
    static let brokenFields: [StaticString] = [
        "A : b\r\n", "A\t: b\r\n", " A: b\r\n", "\tb\r\n", "A\r\n", ": b\r\n", "A: b\n", "A: b\rc\r\n", "A: b\r\r\n",
        "A: \0\r\n",
        "A: \u{7F}\r\n", "A: \u{1}b\r\n", "A(: b\r\n", "\u{E9}: b\r\n", "A B: c\r\n", "\"A\": b\r\n", "A: b\r\n c\r\n",
        "A:\r\n\tc\r\n",
        "Content-Length: +5\r\n", "Content-Length: -1\r\n", "Content-Length: 0x5\r\n", "Content-Length: 5, 5\r\n",
        "Content-Length: 5 5\r\n", "Content-Length:\r\n", "Content-Length: 5,\r\n", "Content-Length: 5;a=b\r\n",
        "Content-Length: \u{665}\r\n", "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 99999999999999999999999999\r\n", "Content-Length: 1e1\r\n", "Content-Length: \"5\"\r\n",
        "content-length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: \"chunked\"\r\n", "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding:\r\n", "Transfer-Encoding: ,chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: chunked\u{B}\r\n",
        "Transfer-Encoding: \u{A0}chunked\r\n",
        "Host: a b\r\n", "Host: a,b\r\n", "Host:\r\n", "Host: u@h\r\n", "Host: h:65536\r\n", "Host: h:1x\r\n",
        "Host: [::1\r\n",
        "Host: [::1]x\r\n", "Host: [:::]\r\n", "Host: a/b\r\n", "Host: a%41\r\n", "Host: h:00080\r\nHost: h\r\n",
        "Host: [::1%25lo]\r\n", "Host: [::01.2.3.4]\r\n", "Host: a\r\nhOST: a\r\n", "Host: :80\r\n", "Host: a:+1\r\n",
        "Connection: a b\r\n", "Connection: (\r\n", "Connection: \"close\"\r\n", "Connection: close;x\r\n",
        "Connection: a/b\r\n",
    ]
}

/// A path with its query, as in a request's target.
enum PathText {
    static func write(_ sentence: inout Sentence) {
        for _ in 0...sentence.choices.below(3) {
            sentence.put("/")
            sentence.put(sentence.choices.pick(segments))
        }
        guard sentence.choices.once(in: 3) else { return }
        sentence.put("?")
        sentence.put(sentence.choices.pick(queries))
    }

    private static let segments: [StaticString] = [
        "", "a", "accounts", "x.html", ".", "..", "%41", "%2e%2E", "%2f", "%00", "%C3%A9", "a;b=c", "a:b@c",
        "!$&'()*+,;=",
        "~-._", "A", "%25", "%2561",
    ]
    private static let queries: [StaticString] = [
        "", "a=b", "a=b&c=d", "?", "/../", "ids[]=1", "{}|^`", "%20", "a=%3D+x", "q='x'",
    ]
}
