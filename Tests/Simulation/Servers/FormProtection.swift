// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A login form of a gateway, with status 200 (WebSEAL), that may ask for a one-time password as well.
final class FormProtection: Protection {
    private static let cookie = "PD-S-SESSION-ID"
    let account: Account
    let isCarriedUnasked = true
    private var sessions: Set<String> = []
    private var last = 0

    let needsBody = true
    private var codes: OneTimeCodes?

    init(_ account: Account, codes: OneTimeCodes? = nil) {
        self.account = account
        self.codes = codes
    }

    /// True if it asks for a one-time password.
    var usesCodes: Bool { codes != nil }

    var configuration: [String] {
        ["gateway: webseal"] + (usesCodes ? ["login: { parameters: { otp: \"{totp}\" } }"] : [])
    }

    func fields(of value: String) -> [String: String] {
        let fields = ["username": "ann", "password": value]
        return usesCodes ? fields.merging(["totp-seed": OneTimeCodes.seed]) { $1 } : fields
    }

    func examine(_ request: ServerRequest) -> Examination {
        if let id = request.cookie(Self.cookie), sessions.contains(id) { return .pass(nil) }
        return .demand(refusal())
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path.hasSuffix("/pkmslogin.form") else { return nil }
        guard request.method == "POST", request.isSide else {
            account.simulation.violated("rule 11: the form was not sent by a login")
            return ServerAnswer(405)
        }
        let attempt = account.judge(request.form["password"] ?? "", sentAt: request.sentAt)
        if let isTaken = codes?.take(request.form["otp"] ?? "", for: account), !isTaken { return ServerAnswer(400) }
        guard attempt.isRight else { return page("HPDIA0200W Authentication failed.").judging(attempt) }
        last += 1
        let id = "\(Simulation.secretMark)session\(account.name)n\(last)"
        sessions.insert(id)
        return ServerAnswer(
            302, [("Location", "/welcome"), ("Set-Cookie", "\(Self.cookie)=\(id); Path=/; HttpOnly")]
        ).judging(attempt)
    }

    func isCarried(by request: ServerRequest) -> Bool { request.cookie(Self.cookie) != nil }

    func refusal() -> ServerAnswer { page("Please log in.") }

    private func page(_ text: String) -> ServerAnswer {
        ServerAnswer(
            200, [("Content-Type", "text/html; charset=utf-8"), ("Server", "WebSEAL")],
            body: "<html><body><p>\(text)</p><form method=POST action=\"/pkmslogin.form\">"
                + "<input name=username><input type=password name=password>\(usesCodes ? "<input name=otp>" : "")"
                + "<input type=hidden name=login-form-type value=pwd></form></body></html>")
    }

    func isDemand(_ status: Int, _ body: String) -> Bool { body.contains("pkmslogin.form") }

    func endSessions() {
        account.ends += 1
        sessions = []
    }
}

/// An application on another machine that is reached without TLS, as its operator allows, and whose login has TLS.
final class SplitForm: Protection {
    private static let (cookie, safe) = ("SID", "SAFE")
    let account: Account
    let host: String
    private let port: Int
    private var sessions: Set<String> = []
    private var last = 0
    let allowsPlaintext = true
    let needsBody = true
    let isCarriedUnasked = true
    let isEverywhere = true
    let isTriedByHand = false

    init(_ account: Account, port: Int) {
        self.account = account
        self.port = port
        host = "\(account.name).test"
    }

    var origins: [String] { ["http://\(host):\(port)", secureOrigin] }
    private var secureOrigin: String { "https://\(host):\(port + Self.distance)" }
    /// The distance of the port with TLS from the one without.
    private static let distance = 400
    private var words: String { "login-of-\(account.name)" }

    var configuration: [String] {
        [
            "gateway: none", "detect: { body-contains: \(words) }",
            "login: { url: \"\(secureOrigin)/login\", parameters: { user: \"{username}\", pass: \"{password}\" } }",
        ]
    }
    func fields(of value: String) -> [String: String] { ["username": "ann", "password": value] }
    func isCarried(by request: ServerRequest) -> Bool { request.cookie(Self.cookie) != nil }
    func isDemand(_ status: Int, _ body: String) -> Bool { body.contains(words) }

    func refusal() -> ServerAnswer {
        ServerAnswer(200, [("Content-Type", "text/html")], body: "<html><body class=\"\(words)\">log in</body></html>")
    }

    func examine(_ request: ServerRequest) -> Examination {
        if request.cookie(Self.safe) != nil, request.origin != secureOrigin {
            account.simulation.violated("rule 9: a cookie for TLS goes out in the clear: \(request.target)")
        }
        if let id = request.cookie(Self.cookie), sessions.contains(id) { return .pass(nil) }
        return .demand(refusal())
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        if !request.body.isEmpty, !SecretWatch.owners(in: request.body).isEmpty, request.origin != secureOrigin {
            account.simulation.violated("rule 11: the password of \(account.name) goes out in the clear")
        }
        guard request.path == "/login", request.isSide else { return nil }
        let attempt = account.judge(request.form["pass"] ?? "", sentAt: request.sentAt)
        guard attempt.isRight else { return refusal().judging(attempt) }
        last += 1
        let id = "\(Simulation.secretMark)session\(account.name)n\(last)"
        sessions.insert(id)
        return ServerAnswer(
            302,
            [
                ("Location", "/welcome"), ("Set-Cookie", "\(Self.cookie)=\(id); Path=/; HttpOnly"),
                ("Set-Cookie", "\(Self.safe)=\(Simulation.secretMark)safe\(account.name)n\(last); Path=/; Secure"),
            ]
        ).judging(attempt)
    }

    func endSessions() {
        account.ends += 1
        sessions = []
    }
}

/// An application on another machine without TLS. Its sessions need no credential and are made with TLS: they do not
/// leave this machine in the clear, as no operator allows it.
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
