// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An address at which another protocol is spoken (RFC 9110 §7.8), and requests for it.
enum SwitchedProtocol {
    /// The beginning of its paths.
    static let path = "/base/switch/"

    /// Returns the answer to a request: a demand, or 101 with the cookies that the protection renews.
    static func answer(to request: ServerRequest, of protection: some Protection) -> ServerAnswer {
        switch protection.examine(request) {
        case .demand(let answer): return answer
        case .pass(let attempt):
            // A login looks at the address of the request.
            guard request.value("upgrade") != nil else {
                return ServerAnswer(200, body: "looked at").judging(attempt)
            }
            let fields: [(name: String, value: String)] = [("Connection", "Upgrade"), ("Upgrade", "echo")]
            var answer = ServerAnswer(101, fields + protection.renewals(for: request)).judging(attempt)
            answer.closes = true
            return answer
        }
    }

    /// Returns a caller's request for it at the server of that name.
    static func visit(at name: String) -> Visit {
        // Whatever happens to the login, no cookie of the session is told.
        Visit(
            "another protocol", at: .common,
            "GET /switch/0 HTTP/1.1\r\nHost: \(name).localhost:8080\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
            [200, 401, 403, 429, 500, 502, 503, 504])
    }
}
