// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A MobileFirst 8.0 server: registration, preauthorization, authorization, token.
final class MobileFirstProtection: Protection {
    /// An application that has registered itself.
    private struct Client {
        /// True if its check has passed.
        var isPassed = false
        /// True if its last request was answered by something that is not a challenge of the server.
        var hasMetStranger = false
    }

    private static let api = "/mfp/api/"
    let account: Account
    private var clients: [String: Client] = [:]
    private var codes: Set<String> = []
    private var tokens: Set<String> = []
    private var last = 0
    /// The time until which the server asks to send each request again, in ms since 1970.
    private var isInConflictUntil: Int64 = 0

    init(_ account: Account) { self.account = account }

    /// Its tokens are for the whole server.
    let isEverywhere = true
    let upstreamConfiguration = ", mobilefirst: { application: com.sample.shop, scope: [Pin] }"

    var configuration: [String] { ["security-check: Pin", "answer: { pin: \"{pin}\" }"] }

    func fields(of value: String) -> [String: String] { ["pin": value] }

    func examine(_ request: ServerRequest) -> Examination {
        if isInConflict { return .demand(ServerAnswer(409, [("MFP-Conflict", "Concurrency failure")])) }
        if let value = request.value("authorization"), tokens.contains(value) { return .pass(nil) }
        return .demand(refusal())
    }

    /// Returns true if a request is to be sent again: once, or each time for a while.
    private var isInConflict: Bool {
        let simulation = account.simulation
        guard simulation.isFault(8) else { return simulation.now < isInConflictUntil && simulation.isStormy }
        if simulation.chance.oneIn(3) { isInConflictUntil = simulation.now + 2_000 }
        return true
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path.hasPrefix(Self.api) else { return nil }
        guard request.isSide else {
            account.simulation.violated("rule 11: \(request.path) was not asked by a login")
            return ServerAnswer(405)
        }
        switch request.path.dropFirst(Self.api.count) {
        case "registration/v1/self":
            clients["client\(next())"] = Client()
            return ServerAnswer(201, [("Location", "/mfp/api/registration/clients/client\(last)")])
        case "preauth/v1/preauthorize": return preauthorize(request)
        case "az/v1/authorization":
            let id = request.target.components(between: "client_id=", and: "&") ?? ""
            guard clients[id]?.isPassed == true else { return unknownClient }
            codes.insert("code\(next())")
            return ServerAnswer(302, [("Location", "http://mfpredirecturi?code=code\(last)")])
        case "az/v1/token":
            guard codes.remove(request.form["code"] ?? "") != nil else { return unknownClient }
            let token = "\(Simulation.secretMark)mfp\(account.name)n\(next())"
            tokens.insert("Bearer \(token)")
            return ServerAnswer(
                200, ServerAnswer.tokenFields,
                body: "{\"access_token\":\"\(token)\",\"token_type\":\"Bearer\",\"expires_in\":3600}")
        default: return ServerAnswer(404)
        }
    }

    private func preauthorize(_ request: ServerRequest) -> ServerAnswer {
        let simulation = account.simulation
        let text = String(decoding: request.body, as: UTF8.self)
        let id = text.components(between: "\"client_id\":\"", and: "\"") ?? ""
        guard let client = clients[id] else { return unknownClient }
        clients[id]?.hasMetStranger = false
        guard let pin = text.components(between: "\"pin\":\"", and: "\"") else {
            if client.isPassed { return passed }
            // A gateway before the server copies its names.
            if simulation.isFault(2) {
                clients[id]?.hasMetStranger = true
                return ServerAnswer(401, [("Content-Type", "application/json")], body: "{\"challenges\":{\"Pin\":{}}}")
            }
            return challenge
        }
        if client.hasMetStranger {
            simulation.violated("rule 7: an answer of \(account.name) to what is no challenge of its server")
        }
        let attempt = account.judge(pin, sentAt: request.sentAt)
        guard attempt.isRight else { return challenge.judging(attempt) }
        clients[id]?.isPassed = true
        return passed.judging(attempt)
    }

    private func next() -> Int {
        last += 1
        return last
    }

    private var passed: ServerAnswer {
        ServerAnswer(200, [("Content-Type", "application/json")], body: "{\"successes\":{\"Pin\":{}}}")
    }

    private var challenge: ServerAnswer {
        ServerAnswer(
            401, [("Content-Type", "application/json"), ("WWW-Authenticate", "MFP-Challenge")],
            body: "{\"challenges\":{\"Pin\":{}}}")
    }

    private var unknownClient: ServerAnswer {
        ServerAnswer(400, [("Content-Type", "application/json")], body: "{\"errorCode\":\"INVALID_CLIENT_ID\"}")
    }

    func refusal() -> ServerAnswer { ServerAnswer.tokenMissing }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 }

    func isConflict(_ answer: CallerAnswer) -> Bool {
        answer.status == 409 && answer.value("mfp-conflict") != nil && account.simulation.weather.hasFaults
    }

    func endSessions() {
        account.ends += 1
        (tokens, clients) = ([], account.simulation.chance.oneIn(2) ? [:] : clients.mapValues { _ in Client() })
    }
}
