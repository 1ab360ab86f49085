// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An identity provider, to which several upstreams send their users, as with OpenID Connect.
final class SignOnProvider: Protection {
    /// A mistake that it makes at times.
    private enum Lapse: CaseIterable {
        /// It sends the user on to a server that no configuration names.
        case leadsElsewhere
        /// It asks to send the form once more, to another address.
        case repeatsForm
        /// It sends the user on to its old address, which has no TLS.
        case leadsToPlain
        /// Its form goes to another provider.
        case sharesForm
        /// Its form goes to the upstream.
        case sendsBack
    }

    /// A sign-on under way: the upstream, and the value that it expects back.
    private struct Flow {
        var client: Int
        var state: String
    }

    private static let cookie = "IDP"
    /// The old address of a provider with TLS.
    static let plain = "http://idp.test:9080"
    /// Another provider with TLS.
    static let other = "https://sso.test:9444"
    let account: Account
    let origin: String
    /// The ports of the upstreams.
    private var clients: [Int: Int] = [:]
    private var flows: [String: Flow] = [:]
    /// The values that have established the sessions, by cookie.
    private var sessions: [String: String] = [:]
    private var codes: Set<String> = []
    private var last = 0
    private let lapse: Lapse?
    /// True if it hands the user back by a form that submits itself.
    private let postsForms: Bool
    private var simulation: Simulation { account.simulation }

    init(_ account: Account) {
        self.account = account
        let isSecure = !account.simulation.chance.oneIn(3)
        origin = isSecure ? "https://idp.test:9443" : "http://127.0.0.1:9001"
        let lapses: [Lapse] = isSecure ? Lapse.allCases : [.leadsElsewhere, .repeatsForm, .sendsBack]
        lapse = account.simulation.chance.oneIn(4) ? nil : account.simulation.chance.pick(lapses)
        postsForms = account.simulation.chance.oneIn(2)
    }

    /// The origins that upstreams name.
    var named: [String] { origin.hasPrefix("https") ? [origin, Self.plain, Self.other] : [origin] }

    func add(client: Int, at port: Int) { clients[client] = port }

    /// Takes a code; false if the code is unknown or used.
    func take(_ code: String) -> Bool { codes.remove(code) != nil }

    var origins: [String] { [origin] }
    var configuration: [String] { [] }
    func fields(of value: String) -> [String: String] { ["username": "ann", "password": value] }
    var secrets: Set<String> { [account.name, tag] }
    /// The owner of its own secrets.
    private var tag: String { "p\(account.name.dropFirst())" }
    func refusal() -> ServerAnswer { ServerAnswer(404) }
    func isDemand(_ status: Int, _ body: String) -> Bool { false }
    func endSessions() { sessions = [:] }

    func examine(_ request: ServerRequest) -> Examination {
        if request.value("host") != nil { simulation.violated("a caller's request reaches the provider") }
        simulation.violated("rule 11: a login asks the provider for \(request.target)")
        return .demand(refusal())
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        switch (request.method, request.path) {
        case ("GET", "/authorize"): authorize(request)
        case ("POST", "/login"): logIn(request)
        default: nil
        }
    }

    private func authorize(_ request: ServerRequest) -> ServerAnswer {
        let query = ServerRequest.pairs(of: request.target.components(after: "?") ?? "")
        guard let client = query["client"].flatMap({ Int($0) }), let state = query["state"] else {
            return ServerAnswer(400)
        }
        let flow = Flow(client: client, state: state)
        if lapse == .leadsElsewhere, account.lapses() {
            return ServerAnswer(302, [("Location", "\(ApplicationForm.elsewhere)/consent")])
        }
        if lapse == .leadsToPlain, account.lapses() {
            return ServerAnswer(302, [("Location", "\(Self.plain)\(request.target)")])
        }
        if let id = request.cookie(Self.cookie), let value = sessions[id] {
            if !account.wasUsed(value) {
                simulation.violated("rule 9: a login of \(account.name) goes on with the session of an earlier value")
            }
            return handBack(flow)
        }
        let number = newID("flow")
        flows[number] = flow
        return page(number, "Please log in.", at: formTarget(of: flow))
    }

    /// Returns the server that the form goes to; its own has no name.
    private func formTarget(of flow: Flow) -> String {
        guard let lapse, [.sharesForm, .sendsBack].contains(lapse), account.lapses() else { return "" }
        return lapse == .sharesForm ? Self.other : "http://127.0.0.1:\(clients[flow.client] ?? 0)"
    }

    private func page(_ flow: String, _ text: String, at server: String) -> ServerAnswer {
        ServerAnswer(
            200, [("Content-Type", "text/html"), ("Set-Cookie", "PRE=\(flow); Path=/; HttpOnly")],
            body: "<html><body><p>\(text)</p><form method=\"post\" action=\"\(server)/login\">"
                + "<input type=\"hidden\" name=\"flow\" value=\"\(flow)\"><input type=\"text\" name=\"user\">"
                + "<input type=\"password\" name=\"pass\"></form></body></html>")
    }

    private func logIn(_ request: ServerRequest) -> ServerAnswer {
        let form = request.form
        let attempt = account.judge(form["pass"] ?? "", sentAt: request.sentAt)
        guard let number = form["flow"], let flow = flows[number], request.cookie("PRE") == number else {
            simulation.violated("a form of the provider came without its cookie")
            return ServerAnswer(400)
        }
        guard attempt.isRight else {
            let server = formTarget(of: flow)
            // Nothing tells that from a page of another provider.
            if !server.isEmpty { attempt.isMoot() }
            return page(number, "Wrong.", at: server).judging(attempt)
        }
        if lapse == .repeatsForm, account.lapses() {
            attempt.isMoot()
            return ServerAnswer(simulation.chance.pick([307, 308]), [("Location", "/repeat")])
        }
        let id = newID("provider")
        sessions[id] = attempt.value
        var answer = handBack(flow)
        answer.fields.append(("Set-Cookie", "\(Self.cookie)=\(id); Path=/; HttpOnly"))
        return answer.judging(attempt)
    }

    /// Sends the user back to the upstream.
    private func handBack(_ flow: Flow) -> ServerAnswer {
        last += 1
        let code = "\(Simulation.secretMark)codek\(flow.client)n\(last)"
        codes.insert(code)
        let address = "http://127.0.0.1:\(clients[flow.client] ?? 0)/callback"
        guard postsForms else {
            return ServerAnswer(303, [("Location", "\(address)?code=\(code)&state=\(flow.state)")])
        }
        return ServerAnswer(
            200, [("Content-Type", "text/html")],
            body: "<html><body><form method=\"post\" action=\"\(address)\">"
                + "<input type=\"hidden\" name=\"code\" value=\"\(code)\">"
                + "<input type=\"hidden\" name=\"state\" value=\"\(flow.state)\"></form>"
                + "<script>document.forms[0].submit()</script></body></html>")
    }

    private func newID(_ kind: String) -> String {
        last += 1
        return "\(Simulation.secretMark)\(kind)\(tag)n\(last)"
    }
}

/// The other addresses that upstreams name for sign-ons: the old one of a provider, without TLS, and another
/// provider's. No page leads a login to an address that it may follow.
final class StrangeProvider: Protection {
    let account: Account

    let secrets: Set<String> = []

    init(_ account: Account) { self.account = account }

    let origins = [SignOnProvider.plain, SignOnProvider.other]
    var configuration: [String] { [] }
    func fields(of value: String) -> [String: String] { [:] }
    func refusal() -> ServerAnswer { ServerAnswer(404) }
    func isDemand(_ status: Int, _ body: String) -> Bool { false }
    func endSessions() {}

    func examine(_ request: ServerRequest) -> Examination {
        account.simulation.violated(
            "rule 11: a sign-on goes to \(request.origin ?? "a caller's request")\(request.target)")
        return .demand(refusal())
    }
}
