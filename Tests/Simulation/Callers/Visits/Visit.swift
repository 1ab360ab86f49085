// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One request of a guest, and the condition for its answer.
struct Visit {
    let name: String
    let listener: ListenerKind
    let request: String
    /// Returns the fault of the answer; `nil` if it has none.
    let fault: (CallerAnswer) -> String?

    /// Creates a request that is answered with one of these statuses.
    init(
        _ name: String, at listener: ListenerKind, _ request: String, _ statuses: Set<Int>,
        fault: @escaping (CallerAnswer) -> String? = { _ in nil }
    ) {
        self.name = name
        self.listener = listener
        self.request = request
        self.fault = { answer in
            statuses.contains(answer.status)
                ? fault(answer)
                : "\(answer.status) \(String(decoding: answer.body, as: UTF8.self).prefix(200))"
        }
    }

    /// Creates a request that is refused with that code, and its connection ended.
    static func refused(
        _ name: String, at listener: ListenerKind, _ request: String, _ statuses: Set<Int>, codes: Set<String>
    ) -> Visit {
        Visit(name, at: listener, request, statuses) { answer in
            guard codes.contains(answer.code ?? answer.codeOfHead ?? "") else {
                return "the code is \(answer.code ?? "lost")"
            }
            // A refused client does not keep a connection that others may need.
            return answer.value("connection")?.lowercased() == "close" ? nil : "the connection stays open"
        }
    }
}

/// Requests to the admin listener of programs that may make them, and of some that may not.
enum AdminVisits {
    /// Parts of paths that only a caller has chosen.
    private static let chosen = ["/r/", "/forbidden/", "/open/", "/deep;x"]

    private static func request(_ method: String, _ target: String) -> String {
        "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1:9180\r\n\r\n"
    }

    /// Returns all of them in a daemon with these challenges.
    static func all(_ challenges: [String]) -> [Visit] { questions + changes(challenges) }

    /// Health, metrics and status: for everybody.
    private static var questions: [Visit] {
        ["/livez", "/readyz", "/readyz?verbose", "/healthz?verbose", "/metrics", "/status", "/status", "/"].flatMap {
            target in
            [
                // Every user of the machine may ask, and callers' paths may name people.
                Visit("\(target) over TCP", at: .adminTCP, request("GET", target), [200, 503]) { answer in
                    let body = String(decoding: answer.body, as: UTF8.self)
                    return chosen.first { body.contains($0) }.map { "a path with \($0) is told" }
                },
                Visit("\(target) over a Unix socket", at: .adminUnix, request("GET", target), [200, 503]),
            ]
        }
    }

    /// Changes: over the Unix socket only.
    private static func changes(_ challenges: [String]) -> [Visit] {
        challenges.flatMap { name in
            ["/unlatch?name=\(name)", "/sessions/drop?name=\(name)"].flatMap { target in
                [
                    Visit("\(target) over TCP", at: .adminTCP, request("POST", target), [403]),
                    Visit("\(target) over a Unix socket", at: .adminUnix, request("POST", target), [200]),
                ]
            }
        }
    }
}

/// Requests to a listener with tokens that have none of them.
enum TokenVisits {
    private static func visit(_ name: String, _ fields: String) -> Visit {
        // 503 for a missing token: the request may have it.
        Visit.refused(
            name, at: .token, "GET /r/0 HTTP/1.1\r\nHost: s0.localhost:8080\r\n\(fields)\r\n", [401, 503],
            codes: ["caller-not-known", "no-credential"])
    }

    /// Returns all of them.
    static func all(_ listeners: Listeners) -> [Visit] {
        let field = CallerToken.field
        let (visitor, clerk) = (CallerToken.visitor.text, CallerToken.clerk.text)
        var visits = [
            visit("no token", ""), visit("an empty token", "\(field):\r\n"),
            visit("all of a token but its end", "\(field): \(visitor.dropLast())\r\n"),
            visit("the beginning of a token", "\(field): \(clerk.prefix(6))\r\n"),
            visit("more than a token", "\(field): \(visitor)0\r\n"),
            visit("a token in capitals", "\(field): \(visitor.uppercased())\r\n"),
            visit("two tokens", "\(field): \(visitor)\r\n\(field): \(clerk)\r\n"),
            visit("a token in another field", "X_Caller_Token: \(visitor)\r\n"),
            visit("a token after a scheme", "Authorization: Bearer \(visitor)\r\n"),
        ]
        if listeners.hasTwins {
            visits.append(
                Visit.refused(
                    "a token of two callers", at: .token,
                    "GET /r/0 HTTP/1.1\r\nHost: s0.localhost:8080\r\n\(field): \(CallerToken.twins[0].text)\r\n\r\n",
                    [503], codes: ["no-credential"]))
        }
        return visits
    }
}

/// Requests that a browser sends for a page of another origin, or to a name that resolves to this machine (DNS
/// rebinding).
enum Intrusion {
    /// The host of the first server, as its own pages have it.
    private static let own = "s0.localhost:8080"

    /// Names that are not the machine's own, although they resemble them.
    private static let strangers = [
        "evil.test", "evil-localhost", "evillocalhost:8080", "127.evil.example", "127.0.0.1.evil.test", "127.1",
        "localhost.evil.test", "s0.localhost.evil.test:8080", "2130706433",
    ]

    /// Fields of browsers' requests that are refused, at a listener whose host is `host`.
    private static func fields(_ host: String) -> [(name: String, method: String, fields: String)] {
        let origin = "Origin: http://\(host)\r\n"
        let other = "Origin: http://evil.test\r\n"
        return [
            ("another site", "GET", "Sec-Fetch-Site: cross-site\r\n"),
            ("an image that nobody asked for", "GET", "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: no-cors\r\n"),
            ("a request of nobody without a mode", "GET", "Sec-Fetch-Site: none\r\n"),
            ("another origin", "GET", other),
            ("another port", "GET", "Origin: http://\(host.prefix { $0 != ":" }):9999\r\n"),
            ("no port", "GET", "Origin: http://\(host.prefix { $0 != ":" })\r\n"),
            ("another scheme", "GET", "Origin: https://\(host)\r\n"),
            ("two origins, the last its own", "GET", other + origin),
            ("two origins, the first its own", "GET", origin + other),
            ("two sites", "GET", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Site: same-origin\r\n"),
            ("a preflight of another origin", "OPTIONS", other + "Access-Control-Request-Method: PUT\r\n"),
            ("a preflight of its own origin", "OPTIONS", origin + "Access-Control-Request-Method: PUT\r\n"),
        ]
    }

    /// Returns those at the common listener, for programs and its own pages.
    static func visits(_ listeners: Listeners) -> [Visit] {
        var visits = fields(own).map { name, method, fields in
            Visit.refused(
                name, at: .common, "\(method) /r/0 HTTP/1.1\r\nHost: \(own)\r\n\(fields)\r\n", [403],
                codes: ["caller-not-allowed"])
        }
        visits.append(
            Visit.refused(
                "a route for other users", at: .common, "GET /staff/0 HTTP/1.1\r\nHost: \(own)\r\n\r\n", [403],
                codes: ["caller-not-allowed"]))
        if !listeners.isUnix(.common) {
            visits += strangers.map { host in
                Visit("the host \(host)", at: .common, "GET /r/0 HTTP/1.1\r\nHost: \(host)\r\n\r\n", [421])
            }
        }
        return visits
    }

    /// Returns those at the admin listeners.
    static func adminVisits() -> [Visit] {
        let host = "localhost:9180"
        var visits: [Visit] = []
        for path in ["/status", "/", "/livez"] {
            for (name, method, fields) in fields(host) where method == "GET" {
                for listener in [ListenerKind.adminTCP, .adminUnix] {
                    visits.append(
                        Visit(
                            "\(name) asks the admin listener", at: listener,
                            "GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n", [403]))
                }
            }
        }
        for host in strangers {
            visits.append(
                Visit(
                    "the host \(host) at the admin listener", at: .adminTCP,
                    "GET /status HTTP/1.1\r\nHost: \(host)\r\n\r\n", [421]))
        }
        return visits
    }
}
