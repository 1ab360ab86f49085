// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A portal whose login is at a host below its own, with cookies for both, and for one: the judge of rule 9 for cookies.
final class PortalProtection: Protection {
    /// The session's cookie. Its name has a blank, which RFC 6265 keeps (§5.2).
    private static let cookie = "web id"
    /// A cookie of the portal's host alone.
    private static let hostCookie = "before"

    let account: Account
    let isTriedByHand = false
    let isCarriedUnasked = true
    let host = "app.localhost"
    private let loginHost = "id.app.localhost"
    private let port: Int
    private var sessions: Set<String> = []
    private var last = 0
    /// The requests in whose last answer the caller got a cookie of its own.
    private var given: Set<Int> = []

    init(_ account: Account, port: Int) {
        self.account = account
        self.port = port
    }

    var configuration: [String] {
        [
            "gateway: none", "detect: { status: 401, header: { X-Portal: login } }",
            "login: { page: /base/portal, url: \"http://\(loginHost):\(port)/enter\", "
                + "parameters: { user: \"{username}\", password: \"{password}\" } }",
            "success: [ { cookie: \"\(Self.cookie)\" } ]", "failed: [ { status: 403 } ]",
        ]
    }

    func fields(of value: String) -> [String: String] { ["username": "ann", "password": value] }

    // MARK: The login

    func examine(_ request: ServerRequest) -> Examination {
        if let id = request.cookie(Self.cookie), sessions.contains(id) { return .pass(nil) }
        return .demand(refusal())
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        let cookie = "\(Self.hostCookie)=\(Simulation.secretMark)before\(account.name); Path=/"
        if request.path == "/base/portal", request.isSide {
            return ServerAnswer(200, [("Content-Type", "text/html"), ("Set-Cookie", cookie)], body: "<p>Who are you?")
        }
        guard request.path == "/enter" else { return nil }
        guard request.method == "POST", request.isSide, request.host == loginHost else {
            account.simulation.violated("rule 11: the form was not sent by a login to its host")
            return ServerAnswer(405)
        }
        if request.cookie(Self.hostCookie) != nil {
            account.simulation.violated("rule 9: a cookie of \(host) goes to \(loginHost)")
        }
        let attempt = account.judge(request.form["password"] ?? "", sentAt: request.sentAt)
        guard attempt.isRight else { return ServerAnswer(403, body: "no").judging(attempt) }
        let fields = [("Set-Cookie", "\(Self.cookie)=\(makeSession()); Domain=\(host); Path=/; HttpOnly")]
        return ServerAnswer(200, fields, body: "welcome").judging(attempt)
    }

    private func makeSession() -> String {
        last += 1
        let id = "\(Simulation.secretMark)portal\(account.name)n\(last)"
        sessions.insert(id)
        return id
    }

    func isCarried(by request: ServerRequest) -> Bool { request.cookie(Self.cookie) != nil }

    func refusal() -> ServerAnswer { ServerAnswer(401, [("X-Portal", "login")], body: "log in") }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 }

    func endSessions() {
        account.ends += 1
        sessions = []
    }

    // MARK: Cookies

    /// A caller may have a cookie of the session's name.
    func alter(_ order: inout Order) {
        if account.simulation.chance.oneIn(4) { order.extras.append("Cookie: \(Self.cookie)=forged\r\n") }
    }

    func received(_ request: ServerRequest) -> ServerRequest {
        if !request.isSide, request.cookie(Self.cookie)?.hasPrefix("own") == true {
            account.simulation.violated("rule 9: a cookie of one caller goes along with another's request")
        }
        return request
    }

    func renewals(for request: ServerRequest) -> [(name: String, value: String)] {
        guard let id = request.cookie(Self.cookie), sessions.contains(id) else { return [] }
        let name = Self.cookie
        switch account.simulation.chance.below(9) {
        case 0: return [("Set-Cookie", "\(name)=\(makeSession()); Domain=\(host); Path=/; HttpOnly")]
        case 1: return [("Set-Cookie", " \(name)  = \(makeSession()) ; domain=.APP.localhost ; PATH=/")]
        // The same session for another path, for the address itself, and in cookie lines that are not stored.
        case 2: return [("Set-Cookie", "\(name)=\(id); Path=/base/r")]
        case 3: return [("Set-Cookie", "\(name)=\(id)")]
        case 4: return [("Set-Cookie", "\(name)=\(id); Domain=elsewhere.test; Path=/")]
        case 5: return [("Set-Cookie", "\(name)=\(id)\(String(repeating: "x", count: 5_000)); Path=/")]
        default: return []
        }
    }

    func finish(_ answer: inout ServerAnswer, to request: ServerRequest, for order: Order) {
        answer.fields += renewals(for: request)
        given.remove(order.number)
        guard isCarried(by: request), account.simulation.chance.oneIn(4) else { return }
        given.insert(order.number)
        answer.fields.append(("Set-Cookie", "\(Self.cookie)=own\(order.number); Domain=\(host); Path=/base/own/"))
    }

    func fault(in answer: CallerAnswer, to order: Order) -> String? {
        guard given.contains(order.number) else { return nil }
        let start = "\(Self.cookie)=own\(order.number); "
        let isThere = answer.fields.contains { $0.name.lowercased() == "set-cookie" && $0.value.hasPrefix(start) }
        return isThere ? nil : "the caller's own cookie is lost"
    }

    func visits(at name: String) -> [Visit] { [SwitchedProtocol.visit(at: name)] }
}
