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
