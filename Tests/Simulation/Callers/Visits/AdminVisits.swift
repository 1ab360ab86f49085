// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
