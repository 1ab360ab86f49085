// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Requests to a listener with tokens that have none of them.
enum TokenVisits {
    private static func visit(_ name: String, _ fields: String) -> Visit {
        // 503 where a token is missing: the request may have it.
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
