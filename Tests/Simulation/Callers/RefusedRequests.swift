// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Requests that can be read, and that go nowhere.
enum RefusedRequests {
    static let all: [Trespass] = methods + browsers + routes + places

    private static let host = Trespass.host

    private static func get(_ name: String, _ path: String, _ statuses: Set<Int>, _ scope: Trespass.Scope) -> Trespass {
        Trespass(name, "GET \(path) HTTP/1.1\r\n\(host)\r\n", statuses, scope)
    }

    private static let methods = [
        Trespass("TRACE", "TRACE /r/0 HTTP/1.1\r\n\(host)\r\n", [405]),
        Trespass("TRACE in small letters", "trace /r/0 HTTP/1.1\r\n\(host)\r\n", [405]),
        Trespass("TRACK", "TRACK /r/0 HTTP/1.1\r\n\(host)\r\n", [405]),
        Trespass("debug in another case", "dEbUg /r/0 HTTP/1.1\r\n\(host)\r\n", [405]),
        Trespass("an unknown expectation", "GET /r/0 HTTP/1.1\r\n\(host)Expect: tea\r\n\r\n", [417]),
        Trespass(
            "a circle",
            "GET /r/0 HTTP/1.1\r\n\(host)Via: \(Array(repeating: "1.1 countersign", count: 8).joined(separator: ", "))\r\n\r\n",
            [508]),
        Trespass("the last hop", "OPTIONS /r/0 HTTP/1.1\r\n\(host)Max-Forwards: 0\r\n\r\n", [200]),
    ]

    private static let browsers = [
        Trespass("a strange host", "GET /r/0 HTTP/1.1\r\nHost: evil.test\r\n\r\n", [421], .tcp),
        Trespass("another site", "GET /r/0 HTTP/1.1\r\n\(host)Sec-Fetch-Site: cross-site\r\n\r\n", [403], .tcp),
        Trespass("the same site", "GET /r/0 HTTP/1.1\r\n\(host)Sec-Fetch-Site: same-site\r\n\r\n", [403], .tcp),
        Trespass("another origin", "GET /r/0 HTTP/1.1\r\n\(host)Origin: http://evil.test\r\n\r\n", [403], .tcp),
        Trespass(
            "an opaque origin", "POST /r/0 HTTP/1.1\r\n\(host)Origin: null\r\nContent-Length: 0\r\n\r\n", [403], .tcp),
        Trespass(
            "a preflight",
            "OPTIONS /r/0 HTTP/1.1\r\n\(host)Origin: http://evil.test\r\nAccess-Control-Request-Method: PUT\r\n\r\n",
            [403], .tcp),
    ]

    private static let routes = [
        get("an ambiguous path", "/private%2f..%2fr/0", [400], .routes),
        get("a path of two readings", "/r/..;/private/0", [400], .routes),
        get("a path in capitals", "/PRIVATE/0", [400], .routes),
        get("a letter that is encoded", "/%70rivate/0", [400], .routes),
        get("a slash that is encoded twice", "/private%252f0", [400], .routes),
        get("a backslash that is encoded", "/private%5c0", [400], .routes),
        get("an empty segment", "//private/0", [400], .routes),
        get("dot segments out", "/private/../r/0", [400, 403], .routes),
        get("dot segments in", "/r/../private/0", [400], .routes),
        get("a parameter", "/private;a/0", [400], .routes),
        get("a NUL", "/r/%00/0", [400], .routes),
        get("an overlong slash", "/private%c0%af0", [400], .routes),
        get("another's path", "/private/0", [403], .unix),
        Trespass("a host without a route", "GET /r/0 HTTP/1.1\r\nHost: nowhere.localhost:8080\r\n\r\n", [404, 421]),
    ]

    private static let places = [
        get("a path with the credential of another", "/r/..%2fopen/0", [400], .places),
        get("a path without its credential", "/open/..%2fr/0", [400], .places),
        get("a parameter that hides a credential", "/open/..;a/r/0", [400], .places),
    ]
}
