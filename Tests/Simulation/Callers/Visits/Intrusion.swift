// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Requests that a browser sends on behalf of a page of another origin, or to a name that leads here (DNS rebinding).
enum Intrusion {
    /// The host of the first server, as its own pages have it.
    private static let own = "s0.localhost:8080"

    /// Names that are none of the machine's own, however much they look like it.
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
