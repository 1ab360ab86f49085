// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The composite challenge of Worklight 6.x and MobileFirst 7.x. Its answers go to an address of their own, or with a
/// GET of the resource: the judge of rules 2 and 3 if the server begins another session meanwhile.
final class CompositeProtection: Protection {
    /// One session of the server.
    private struct ServerSession {
        let instance: String
        /// The PINs that this login has sent before.
        var pins: [String] = []
        var isLoggedIn = false
    }

    private static let cookie = "JSESSIONID"
    private static let instanceField = "wl-instance-id"
    let account: Account
    let needsBody = true
    let prefix = "/apps/services/api/Shop/linux"
    private var sessions: [String: ServerSession] = [:]
    private var last = 0
    /// The time until which the server loses each session at once, in ms since 1970.
    private var isForgetfulUntil: Int64 = 0

    init(_ account: Account) { self.account = account }

    var configuration: [String] { ["security-check: Pin", "answer: { pin: \"{pin}\" }"] }

    func fields(of value: String) -> [String: String] { ["pin": value] }

    private func session(of request: ServerRequest) -> (id: String, session: ServerSession)? {
        guard let id = request.cookie(Self.cookie), let session = sessions[id],
            request.value(Self.instanceField) == session.instance
        else { return nil }
        return (id, session)
    }

    func examine(_ request: ServerRequest) -> Examination {
        if session(of: request)?.session.isLoggedIn == true { return .pass(nil) }
        return .demand(challenge(after: []))
    }

    /// Returns the answers to the checks that a request carries, or `nil`.
    private func answers(in request: ServerRequest) -> String? {
        if request.path.hasSuffix("/authenticate") { return String(decoding: request.body, as: UTF8.self) }
        guard let value = request.value("authorization"), value.hasPrefix("{") else { return nil }
        let named = request.path.split(separator: "/").last.flatMap { Int($0) }
        if let number = SharedResources.order(in: request.target) ?? named,
            let order = account.simulation.orders[number], !order.isRead
        {
            account.simulation.violated("rule 2: answers go to the address of \(order.method) \(number)")
        }
        return value
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard let text = answers(in: request) else { return nil }
        let simulation = account.simulation
        guard request.isSide else {
            simulation.violated("rule 11: an answer was not sent by a login")
            return ServerAnswer(405)
        }
        guard let (id, session) = session(of: request) else { return challenge(after: []) }
        let pin = text.components(between: "\"pin\":\"", and: "\"") ?? ""
        // Another value may have been stored meanwhile.
        let count = session.pins.count { $0 == pin } + 1
        if count > 2 || count > 1 && !account.isAccepted(pin) {
            simulation.violated("rule 3: a PIN of \(account.name) is sent \(count) times in one login")
        }
        let attempt = account.judge(pin, sentAt: request.sentAt)
        if isForgetful() {
            sessions[id] = nil
            account.ends += 1
            let answer = challenge(after: session.pins + [pin])
            guard attempt.isRight else { return answer.judging(attempt) }
            attempt.isMoot()
            account.refuses(pin)
            return answer
        }
        guard attempt.isRight else {
            if simulation.chance.oneIn(2) { return refusal(in: id, session).judging(attempt) }
            return message(403, "{\"WL-Authentication-Failure\":{\"Pin\":{\"reason\":\"wrong\"}}}").judging(attempt)
        }
        sessions[id] = nil
        last += 1
        let next = "\(Simulation.secretMark)composite\(account.name)n\(last)"
        sessions[next] = ServerSession(instance: session.instance, isLoggedIn: true)
        var answer = message(200, "{\"WL-Authentication-Success\":{\"Pin\":{\"userId\":\"ann\"}}}")
        answer.fields.append(("Set-Cookie", "\(Self.cookie)=\(next); Path=/"))
        return answer.judging(attempt)
    }

    private func isForgetful() -> Bool {
        let simulation = account.simulation
        if simulation.isFault(6) { isForgetfulUntil = simulation.now + 2_000 }
        return simulation.isStormy && simulation.now < isForgetfulUntil
    }

    func isCarried(by request: ServerRequest) -> Bool { request.cookie(Self.cookie) != nil }

    func refusal() -> ServerAnswer { ServerAnswer(403, body: "not for you") }

    /// Returns the challenge of a new session, after those answers of one login.
    private func challenge(after pins: [String]) -> ServerAnswer {
        last += 1
        let session = ServerSession(instance: "i\(last)", pins: pins)
        sessions["w\(last)"] = session
        return refusal(in: "w\(last)", session)
    }

    private func refusal(in id: String, _ session: ServerSession) -> ServerAnswer {
        let realm = "\"wl_antiXSRFRealm\":{\"WL-Instance-Id\":\"\(session.instance)\"}"
        var answer = message(401, "{\"challenges\":{\(realm),\"Pin\":{}}}")
        answer.fields += [
            ("WWW-Authenticate", "WL-Composite-Challenge"), ("Set-Cookie", "\(Self.cookie)=\(id); Path=/"),
        ]
        return answer
    }

    private func message(_ status: Int, _ text: String) -> ServerAnswer {
        ServerAnswer(status, [("Content-Type", "application/json")], body: "/*-secure-\n\(text)*/")
    }

    func isDemand(_ status: Int, _ body: String) -> Bool { [401, 403].contains(status) }

    func endSessions() {
        account.ends += 1
        sessions = [:]
    }
}
