// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An application on another machine without TLS, whose sessions need no credential and are made with TLS: they do not leave this
/// machine in the clear, as nobody allows it.
final class VisitorForm: Protection {
    let account: Account
    private var last = 0
    let needsBody = true
    let usesCredential = false
    let isEverywhere = true
    let isTriedByHand = false
    let secrets: Set<String> = []

    let origins: [String]

    /// The distance of the port with TLS from the one without.
    private static let distance = 400

    init(_ account: Account, port: Int) {
        self.account = account
        account.isNeverWell = true
        origins = ["http://\(account.name).test:\(port)", "https://\(account.name).test:\(port + Self.distance)"]
    }

    private var words: String { "login-of-\(account.name)" }

    var configuration: [String] {
        [
            "gateway: none", "detect: { body-contains: \(words) }",
            "login: { page: \"\(origins[1])/page\", url: \"\(origins[1])/enter\", parameters: { visitor: \"1\" } }",
        ]
    }
    func fields(of value: String) -> [String: String] { [:] }
    func isDemand(_ status: Int, _ body: String) -> Bool { body.contains(words) }

    func refusal() -> ServerAnswer {
        ServerAnswer(200, [("Content-Type", "text/html")], body: "<html><body class=\"\(words)\">enter</body></html>")
    }

    func examine(_ request: ServerRequest) -> Examination {
        return .demand(refusal())
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        if request.path == "/page" {
            return ServerAnswer(200, [("Content-Type", "text/html")], body: "<html>enter</html>")
        }
        guard request.path == "/enter", request.isSide else { return nil }
        last += 1
        return ServerAnswer(
            200,
            [
                ("Content-Type", "text/html"),
                ("Set-Cookie", "SID=\(Simulation.secretMark)visit\(account.name)n\(last); Path=/"),
            ], body: "<html>welcome</html>")
    }

    func endSessions() {}
}
