// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A request that the proxy must refuse by itself, and the answers that are right.
struct Trespass {
    let name: String
    let request: String
    let statuses: Set<Int>
    let method: String
    /// The runs in which the rule holds.
    let scope: Scope
    /// True if nothing that follows on its connection may be read as a request.
    let endsConnection: Bool

    /// The runs in which a request is refused.
    enum Scope {
        case everywhere
        /// Over TCP, which a browser can reach.
        case tcp
        /// Over a Unix socket, whose caller the kernel identifies.
        case unix
        /// The runs in which a path below is routed elsewhere.
        case routes
        /// The runs in which a challenge applies to some of the addresses.
        case places
    }

    static let host = "Host: s0.localhost:8080\r\n"
    /// A request that may follow another one.
    static let smuggled = "GET /r/0 HTTP/1.1\r\n\(host)\r\n"

    /// Creates a request without a number: one that reaches a server is noticed there.
    init(
        _ name: String, _ request: String, _ statuses: Set<Int>, _ scope: Scope = .everywhere,
        endsConnection: Bool = false
    ) {
        self.name = name
        self.request = request
        self.statuses = statuses
        self.scope = scope
        self.endsConnection = endsConnection
        method = String(request.prefix { $0 != " " })
    }

    private static let all = UnreadableRequests.all + RefusedRequests.all

    /// Returns one of those that are refused in a simulation of that kind.
    static func any(_ chance: inout Chance, in setting: Setting, of server: SimulatedServer) -> Trespass {
        while true {
            let one = chance.pick(all)
            // A body that breaks off ends a trial of the credential; other requests must wait for the next trial.
            if one.method == "POST", server.protection.account.ridesOnRequests, !chance.oneIn(4) { continue }
            switch one.scope {
            case .everywhere: return one
            case .tcp: if !setting.isUnix { return one }
            case .unix: if setting.isUnix { return one }
            case .routes: if setting.hasRoutes { return one }
            case .places: if server.habits.isPartlyOpen { return one }
            }
        }
    }
}

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

/// Requests that two readers could read differently: nothing after them is read (RFC 9112 §11.2).
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
