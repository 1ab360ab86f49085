// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A token endpoint of refresh tokens that are good once (RFC 6749 §6, RFC 9700 §4.14): the judge of rule 8.
final class RefreshEndpoint {
    /// One use of a refresh token.
    private struct Use {
        let attempt: Attempt
        /// The number of restarts before it.
        let restarts: Int
    }

    let account: Account
    let port: Int
    /// The refresh token that came with each access token, until that is used.
    private var tokens: [String: String] = [:]
    /// The time at which each access token ends, in ms since 1970.
    private var ends: [String: Int64] = [:]
    private let life: Int
    /// The refresh token that is good now, and those before it.
    private var latest: String?
    private var spent: [String: Use] = [:]
    /// The first refresh token of each chain.
    private var roots: [String: String] = [:]
    private var root = ""
    private var last = 0

    init(_ account: Account, port: Int) {
        self.account = account
        self.port = port
        life = account.simulation.chance.pick([40, 3_600])
    }

    /// Returns true if an access token is good.
    func isGood(_ authorization: String) -> Bool {
        guard let end = ends[authorization], end > account.simulation.now else { return false }
        if let refresh = tokens.removeValue(forKey: authorization), spent[refresh] == nil,
            !account.simulation.disk.holds(refresh)
        {
            account.simulation.violated(
                "rule 8: an access token of \(account.name) is used before its refresh token is stored")
        }
        return true
    }

    /// Returns the answer to a token request of the challenge of that name.
    func answer(to request: ServerRequest, of challenge: String) -> ServerAnswer {
        let simulation = account.simulation
        let presented = request.form["refresh_token"] ?? ""
        if root != account.right {
            root = account.right
            latest = nil
        }
        if let use = spent[presented] {
            // A login that was given up learns nothing of an answer that came later.
            let isLate = simulation.logins.wasLate(challenge, since: simulation.time(of: use.attempt.sentAt))
            let isKnown =
                use.attempt.deliveredAt != nil && !isLate && use.restarts == simulation.rules.restarts
            if isKnown || !isLate && !simulation.weather.forgets {
                simulation.violated("rule 8: a refresh token of \(account.name) is used twice")
            }
        }
        // One that was used may come again, but not those of an earlier value.
        let isOfRoot = (roots[presented] ?? presented) == root
        let isGood = presented == latest ?? root || spent[presented] != nil && isOfRoot
        let value = isGood ? account.right : roots[presented] ?? presented
        let attempt = account.judge(value, sentAt: request.sentAt, by: challenge)
        guard attempt.isRight else {
            return ServerAnswer.tokenRefusal("invalid_grant").waiting(&simulation.chance).judging(attempt)
        }
        last += 1
        spent[presented] = Use(attempt: attempt, restarts: simulation.rules.restarts)
        let mark = Simulation.secretMark
        let (token, refresh) = ("\(mark)access\(account.name)n\(last)", "\(mark)refresh\(account.name)n\(last)")
        latest = refresh
        roots[refresh] = root
        tokens["Bearer \(token)"] = refresh
        ends["Bearer \(token)"] = simulation.now + Int64(life) * 1_000
        return ServerAnswer(
            200, ServerAnswer.tokenFields,
            body:
                "{\"access_token\":\"\(token)\",\"token_type\":\"Bearer\",\"expires_in\":\(life),\"refresh_token\":\"\(refresh)\"}"
        ).judging(attempt)
    }

    /// Ends all access tokens.
    func endSessions() {
        account.ends += 1
        (tokens, ends) = ([:], [:])
    }
}

/// Tokens for refresh tokens; several servers may have one endpoint, and the daemon one credential for them.
final class RefreshProtection: Protection {
    let endpoint: RefreshEndpoint
    let challengeName: String
    let isCarriedUnasked = true

    /// Creates the protection of the server with that challenge.
    init(_ challengeName: String, at endpoint: RefreshEndpoint) {
        self.challengeName = challengeName
        self.endpoint = endpoint
        if challengeName != endpoint.account.name { endpoint.account.challenges += 1 }
    }

    var account: Account { endpoint.account }

    var configuration: [String] {
        let url = "http://127.0.0.1:\(endpoint.port)/token?for=\(challengeName)"
        return ["scheme: bearer", "token: { grant: refresh-token, url: \"\(url)\", client-auth: body }"]
    }

    func fields(of value: String) -> [String: String] {
        ["refresh-token": value, "client-id": "daemon", "client-secret": "\(Simulation.secretMark)client"]
    }

    func examine(_ request: ServerRequest) -> Examination {
        guard let value = request.value("authorization"), endpoint.isGood(value) else { return .demand(refusal()) }
        return .pass(nil)
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path == "/token" else { return nil }
        return endpoint.answer(to: request, of: request.target.components(after: "for=") ?? "")
    }

    func refusal() -> ServerAnswer {
        ServerAnswer.tokenMissing
    }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 }

    func endSessions() { endpoint.endSessions() }
}
