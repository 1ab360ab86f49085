// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An upstream that sends its users to an identity provider, which it shares with others.
final class SignOnProtection: Protection {
    private static let cookie = "SID"
    let account: Account
    private let number: Int
    let provider: SignOnProvider
    private var sessions: Set<String> = []
    private var states: Set<String> = []
    private var last = 0
    private let redirect: Int
    /// True if its clock is wrong at times: it takes no code of the provider then.
    private let losesTime: Bool
    private var simulation: Simulation { account.simulation }

    init(_ provider: SignOnProvider, number: Int, port: Int) {
        account = provider.account
        self.provider = provider
        self.number = number
        redirect = account.simulation.chance.pick([302, 303, 307])
        losesTime = account.simulation.chance.oneIn(4)
        provider.add(client: number, at: port)
    }

    let isEverywhere = true
    let isTriedByHand = false
    var challengeName: String { "c\(number)" }
    var secrets: Set<String> { ["u\(number)", "k\(number)"] }
    var configuration: [String] {
        ["gateway: form", "login: { through: [\(provider.named.joined(separator: ", "))] }"]
    }
    /// True if its upstream allows logins without TLS, as the provider has an old address.
    var allowsPlaintext: Bool { provider.named.count > 1 }
    func fields(of value: String) -> [String: String] { provider.fields(of: value) }
    let isCarriedUnasked = true
    func isCarried(by request: ServerRequest) -> Bool { request.cookie(Self.cookie) != nil }
    func isDemand(_ status: Int, _ body: String) -> Bool { status == redirect || status == 401 }

    func examine(_ request: ServerRequest) -> Examination {
        if let id = request.cookie(Self.cookie), sessions.contains(id) { return .pass(nil) }
        // Programs get a status.
        if request.method != "GET", !request.isSide { return .demand(ServerAnswer(401, body: "log in")) }
        return .demand(redirection(isSide: request.isSide))
    }

    func refusal() -> ServerAnswer { redirection(isSide: false) }

    private func redirection(isSide: Bool) -> ServerAnswer {
        last += 1
        let state = "s\(last)"
        var answer = ServerAnswer(
            redirect, [("Location", "\(provider.origin)/authorize?client=\(number)&state=\(state)")])
        if isSide {
            states.insert(state)
            answer.fields.append(("Set-Cookie", "STATE=\(Simulation.secretMark)stateu\(number)n\(last); Path=/"))
        }
        return answer
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path == "/callback" else { return nil }
        guard request.isSide else {
            simulation.violated("rule 11: a sign-on was not ended by a login")
            return ServerAnswer(405)
        }
        let query = ServerRequest.pairs(of: request.target.components(after: "?") ?? "")
        let form = request.method == "POST" ? request.form : query
        guard states.contains(form["state"] ?? ""), provider.take(form["code"] ?? "") else { return ServerAnswer(400) }
        if losesTime, simulation.isStormy, simulation.now / Self.period % 3 == 0 {
            account.disturbed()
            return redirection(isSide: true)
        }
        last += 1
        let id = "\(Simulation.secretMark)sessionu\(number)n\(last)"
        sessions.insert(id)
        return ServerAnswer(
            302, [("Location", "/welcome"), ("Set-Cookie", "\(Self.cookie)=\(id); Path=/; HttpOnly")])
    }

    /// The time for which a clock is right or wrong, in ms.
    private static let period: Int64 = 20_000

    func endSessions() {
        account.ends += 1
        sessions = []
        if simulation.chance.oneIn(3) { provider.endSessions() }
    }
}
