// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A token that a server has issued, and its uses.
final class IssuedToken {
    /// Its end, in ms since 1970.
    let end: Int64
    private let life: Int64
    let scopes: Set<String>
    /// The sending of the secret that it was issued for.
    private let attempt: Attempt
    /// The time at which the daemon got it, in ms since 1970; 0 if it has not.
    var deliveredAt: Int64 { attempt.deliveredAt ?? 0 }
    /// True if a resource has refused it.
    var isRefused = false
    /// The times of the first and of the last use at which it has to be renewed, in ms since 1970.
    private var uses: (first: Int64, last: Int64)?

    init(end: Int64, life: Int64, scopes: Set<String>, _ attempt: Attempt) {
        self.end = end
        self.life = life
        self.scopes = scopes
        self.attempt = attempt
    }

    /// Records a use: a renewal begins with the first one after three quarters of the lead (30 s, or a fifth of the
    /// lifetime) are left.
    func isUsed(at now: Int64) {
        let lead = min(30_000, life / 5) * 3 / 4
        guard now > end - lead, now < end - 1_500 else { return }
        uses = (uses?.first ?? now, now)
    }

    /// Returns true if another token is requested at `now` only, although uses have shown before its end that one is
    /// needed.
    ///
    /// `amongOthers`: logins for other scopes may have been under way, so that only a use after a second or more
    /// counts.
    func wasRenewable(at now: Int64, amongOthers: Bool) -> Bool {
        guard now > end, let uses, deliveredAt > 0 else { return false }
        return !amongOthers || uses.last - uses.first > 2_000
    }
}

extension ServerAnswer {
    /// The answer to a request without a token (RFC 6750 §3).
    static var tokenMissing: ServerAnswer {
        ServerAnswer(401, [("WWW-Authenticate", "Bearer error=\"invalid_token\"")], body: "no token")
    }

    /// The fields of a token endpoint's answers (RFC 6749 §5.1).
    static var tokenFields: [(name: String, value: String)] {
        [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
    }

    /// Returns a token endpoint's refusal (RFC 6749 §5.2).
    static func tokenRefusal(_ error: String) -> ServerAnswer {
        ServerAnswer(error == "invalid_client" ? 401 : 400, tokenFields, body: "{\"error\":\"\(error)\"}")
    }
}

/// Tokens of a token endpoint (RFC 6749 §4.4), as `Bearer` (RFC 6750), with a scope for some resources: the judge of rule 8 for
/// renewals.
final class TokenProtection: Protection {
    let account: Account
    let isCarriedUnasked = true
    let isTriedByHand = false
    private var tokens: [String: IssuedToken] = [:]
    /// The latest token of each scope that a session was made of.
    private var latest: [String: IssuedToken] = [:]
    /// True after a refusal of more scope: the next token only shows that the secret is accepted.
    private var isConfirming = false
    /// The last token that only showed that.
    private var confirmation: IssuedToken?
    /// True while no such token is known to have arrived: the daemon asks for less once more, or for a session.
    private var isUnconfirmed = false
    /// The lifetime of a token in seconds.
    private let life: Int
    /// True if some resources need more than the usual scope.
    private let hasScopes: Bool
    /// The error by which the scope `admin` is refused.
    private let scopeRefusal: String
    private var last = 0
    /// The address of the token endpoint, which may be another origin than the resources'.
    private let endpoint: String

    init(_ account: Account, port: Int) {
        self.account = account
        endpoint = "http://\(account.simulation.chance.pick(["127.0.0.1", "localhost"])):\(port)/token"
        life = account.simulation.chance.pick([40, 60, 3_600])
        hasScopes = account.simulation.chance.oneIn(2)
        scopeRefusal = account.simulation.chance.pick([
            "invalid_scope", "unauthorized_client", "invalid_client", "invalid_grant",
        ])
    }

    var isShortLived: Bool { life < 3_600 }
    var hasOneSession: Bool { !hasScopes }

    var configuration: [String] {
        let scope = hasScopes ? ", scope: [read]" : ""
        return [
            "scheme: bearer",
            "token: { grant: client-credentials, url: \"\(endpoint)\", client-auth: body\(scope) }",
        ]
    }

    func fields(of value: String) -> [String: String] { ["client-id": "daemon", "client-secret": value] }

    // MARK: Resources

    /// Returns the scope that the resource of an order needs: the usual one for a resource that many ask for.
    private func scope(of order: Order) -> String {
        scope(ofOrder: SharedResources.order(in: order.target) == nil ? order.number : 0)
    }

    /// Returns the scope that the resource with the number of an order needs.
    private func scope(ofOrder number: Int) -> String {
        guard hasScopes else { return "" }
        return number % 3 == 1 ? "write" : number % 12 == 3 ? "admin" : "read"
    }

    func examine(_ request: ServerRequest) -> Examination {
        let simulation = account.simulation
        if case .unknownScheme = ResourceManner(request, in: account.simulation) {
            return .demand(ResourceManner.strangeChallenge)
        }
        guard let value = request.value("authorization"), let token = tokens[value] else { return .demand(refusal()) }
        if token.end < simulation.time(of: request.sentAt) - 5_000 {
            simulation.violated("rule 8: a token of \(account.name) is sent after its end")
        }
        guard token.end > simulation.now else { return .demand(refusal()) }
        token.isUsed(at: simulation.now)
        if request.path.contains("/forbidden/") { token.isRefused = true }
        let number = request.path.split(separator: "/").last.flatMap { Int($0) } ?? 0
        let needed = scope(ofOrder: number)
        guard token.scopes.isEmpty || token.scopes.contains(needed) else {
            return .demand(
                ServerAnswer(
                    403, [("WWW-Authenticate", "Bearer error=\"insufficient_scope\", scope=\"\(needed)\"")],
                    body: "more scope"))
        }
        return .pass(nil)
    }

    func isRefused(_ order: Order) -> Bool { isStrange(order) || isBeyondReach(order) }

    func isStrange(_ order: Order) -> Bool {
        if case .unknownScheme = ResourceManner(order, in: account.simulation) { return !order.isForbidden }
        return false
    }

    func isBeyondReach(_ order: Order) -> Bool { scope(of: order) == "admin" }

    func serves(_ order: Order) -> Bool {
        let simulation = account.simulation
        guard !order.isForbidden, !isRefused(order), ["", "read"].contains(scope(of: order)) else {
            return false
        }
        // A session that another node established with another value is of no use here, and a process that ends may
        // have established the last one.
        if simulation.setting.nodes > 1, simulation.weather.changesCredentials { return false }
        if simulation.weather.restarts { return false }
        let usual = tokens.values.filter { $0.scopes.isSubset(of: ["read"]) }
        // The daemon holds the last one that it has got, for no scope and for this one.
        let held = latest.values.filter { $0.scopes.isSubset(of: ["read"]) }
        return !held.isEmpty && !usual.contains { $0.isRefused && $0.end > simulation.now }
            && held.allSatisfy { held in
                held.deliveredAt > 0 && held.deliveredAt > account.lastDrop && held.deliveredAt < order.began - 1_000
                    && held.end > simulation.now + 2_000 && usual.contains { $0 === held }
                    // One that came after the end of its login is dropped.
                    && !simulation.logins.wasLate(account.name, since: held.deliveredAt - 10_000)
            }
    }

    // MARK: The token endpoint

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path == "/token" else { return nil }
        let simulation = account.simulation
        guard request.method == "POST", request.isSide else {
            simulation.violated("rule 11: a token was not asked for by a login")
            return ServerAnswer(405)
        }
        let asked = request.form["scope"]?.split(separator: "+").map(String.init).sorted() ?? []
        let scope = asked.joined(separator: " ")
        let mayHaveConfirmed = isUnconfirmed
        if confirmation?.deliveredAt ?? 0 > 0 { isUnconfirmed = false }
        let isConfirmation = isConfirming
        isConfirming = false
        if isConfirmation { (confirmation, isUnconfirmed) = (nil, true) }
        if latest[scope]?.wasRenewable(at: simulation.now, amongOthers: hasScopes) == true, isSteady {
            simulation.violated("rule 8: a token of \(account.name) was used before its end, and is renewed after it")
        }
        if simulation.isFault(5) { return trouble() }
        let attempt = account.judge(request.form["client_secret"] ?? "", sentAt: request.sentAt)
        guard attempt.isRight else {
            return ServerAnswer.tokenRefusal("invalid_client").waiting(&simulation.chance).judging(attempt)
        }
        if asked.contains("admin") {
            // A refusal of the secret, to a daemon that may have lost its memory of the acceptance, or if another node
            // has it.
            let secret = request.form["client_secret"] ?? ""
            let isNew = !account.isAccepted(secret)
            if isNew || simulation.weather.forgets || simulation.setting.nodes > 1 { account.refuses(secret) }
            guard !isNew else {
                attempt.isMoot()
                return ServerAnswer.tokenRefusal(scopeRefusal)
            }
            // After less was granted, the daemon may know enough.
            if mayHaveConfirmed { (confirmation, isUnconfirmed) = (nil, true) } else { isConfirming = true }
            return ServerAnswer.tokenRefusal(scopeRefusal).judging(attempt)
        }
        last += 1
        let value = "\(Simulation.secretMark)token\(account.name)n\(last)"
        let token = IssuedToken(
            end: simulation.now + Int64(life) * 1_000, life: Int64(life) * 1_000, scopes: Set(asked), attempt)
        tokens["Bearer \(value)"] = token
        if isUnconfirmed { confirmation = token }
        if !isConfirmation { latest[scope] = isUnconfirmed ? nil : token }
        return ServerAnswer(
            200, ServerAnswer.tokenFields,
            body: "{\"access_token\":\"\(value)\",\"token_type\":\"Bearer\",\"expires_in\":\(life)}"
        ).judging(attempt)
    }

    /// True if nothing prevents a renewal.
    private var isSteady: Bool {
        let weather = account.simulation.weather
        return !weather.forgets && !weather.changesCredentials && !weather.endsSessions && account.isRight
    }

    /// Returns an answer that is not a verdict on the secret.
    private func trouble() -> ServerAnswer {
        let simulation = account.simulation
        switch simulation.chance.below(8) {
        case 0, 6, 7: return ServerAnswer.tokenRefusal("unauthorized_client")
        case 1: return ServerAnswer.tokenRefusal("invalid_scope")
        case 2: return ServerAnswer(429, [("Retry-After", "3")], body: "too many")
        case 3: return ServerAnswer(503, [("Retry-After", "2")], body: "busy")
        case 4: return ServerAnswer(200, ServerAnswer.tokenFields, body: "{\"token_type\":\"Bearer\"}")
        default: return ServerAnswer(302, [("Location", "http://127.0.0.1:1/token")])
        }
    }

    func refusal() -> ServerAnswer {
        ServerAnswer.tokenMissing
    }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 || status == 403 && body == "more scope" }

    func endSessions() {
        account.ends += 1
        tokens = [:]
    }
}
