// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A container registry with a token service (distribution's *token authentication*). One of its repositories names
/// another service.
final class RegistryProtection: Protection {
    private static let (own, strange) = ("repository:app:pull,push", "repository:guest")
    let account: Account
    private let port: Int
    /// The time at which each token for its own repository ends, in ms since 1970.
    private var tokens: [String: Int64] = [:]
    /// Tokens that open nothing.
    private var narrow: Set<String> = []
    private var last = 0

    init(_ account: Account, port: Int) {
        self.account = account
        self.port = port
    }

    var configuration: [String] {
        ["scheme: bearer", "token: { grant: registry, url: \"http://127.0.0.1:\(port)/token\" }"]
    }
    func fields(of value: String) -> [String: String] { ["username": "ann", "password": value] }
    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 }
    let isEverywhere = true
    let hasOneSession = false
    let isTriedByHand = false
    /// The service that guests' addresses name does not exist.
    func isRefused(_ order: Order) -> Bool { order.isGuests }

    func examine(_ request: ServerRequest) -> Examination {
        if request.path.hasPrefix("/base/guest/") {
            account.disturbed()
            return .demand(
                demand(by: "\(ApplicationForm.elsewhere)/token", "\(Self.strange)\(request.order ?? 0):pull"))
        }
        if let value = request.value("authorization"), tokens[value, default: 0] > account.simulation.now {
            return .pass(nil)
        }
        var answer = refusal()
        if let value = request.value("authorization"), narrow.contains(value) {
            answer.fields[0].value += ",error=\"insufficient_scope\""
        }
        return .demand(answer)
    }

    func refusal() -> ServerAnswer { demand(by: "http://127.0.0.1:\(port)/token", Self.own) }

    private func demand(by realm: String, _ scope: String) -> ServerAnswer {
        ServerAnswer(
            401, [("WWW-Authenticate", "Bearer realm=\"\(realm)\",service=\"registry\",scope=\"\(scope)\"")], body: "no"
        )
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path == "/token" else { return nil }
        guard request.isSide, let basic = request.value("authorization"), basic.hasPrefix("Basic ") else {
            return ServerAnswer(401, body: "{}")
        }
        let pairs = request.target.components(after: "?") ?? ""
        // Only the challenge names that service; only a later recovery may treat it as any scope.
        if ServerRequest.percentDecoded(pairs).contains(Self.strange),
            account.simulation.rules.isOfRequest(challengeName)
        {
            account.simulation.violated("a token is asked for what another token service was named for")
        }
        let password = Base64Text.decode(String(basic.dropFirst(6))).components(after: ":") ?? ""
        let attempt = account.judge(password, sentAt: request.sentAt)
        guard attempt.isRight else {
            return ServerAnswer(401, ServerAnswer.tokenFields, body: "{\"details\":\"incorrect\"}").judging(attempt)
        }
        last += 1
        let token = "\(Simulation.secretMark)token\(account.name)n\(last)"
        let isOwn = ServerRequest.percentDecoded(pairs).contains(Self.own)
        if !isOwn { narrow.insert("Bearer \(token)") }
        if isOwn { tokens["Bearer \(token)"] = account.simulation.now + Self.life * 1_000 }
        return ServerAnswer(
            200, ServerAnswer.tokenFields, body: "{\"token\":\"\(token)\",\"expires_in\":\(Self.life)}"
        ).judging(attempt)
    }

    /// The lifetime of a token in seconds.
    private static let life: Int64 = 300

    func endSessions() {
        account.ends += 1
        tokens = [:]
    }
}
