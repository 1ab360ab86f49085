// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets

/// Basic authentication (RFC 7617).
final class BasicProtection: Protection {
    let account: Account
    let isCarriedUnasked = true
    let isScheme = true
    let isTriedByHand = false

    init(_ account: Account) { self.account = account }

    var configuration: [String] { ["scheme: [basic]"] }

    func fields(of value: String) -> [String: String] { ["username": "ann", "password": value] }

    private func password(in request: ServerRequest) -> String? {
        guard let value = request.value("authorization"), value.hasPrefix("Basic ") else { return nil }
        let text = Base64Text.decode(String(value.dropFirst(6)))
        return text.split(separator: ":", maxSplits: 1).count == 2
            ? String(text.split(separator: ":", maxSplits: 1)[1]) : ""
    }

    func examine(_ request: ServerRequest) -> Examination {
        if case .unknownScheme = ResourceManner(request, in: account.simulation) {
            isPassed(request)
            return .demand(ResourceManner.strangeChallenge)
        }
        guard let password = password(in: request) else { return .demand(refusal()) }
        let attempt = account.judge(password, sentAt: request.sentAt)
        if attempt.isRight { return .pass(attempt) }
        return .demand(refusal().waiting(&account.simulation.chance).judging(attempt))
    }

    func isRefused(_ order: Order) -> Bool { isStrange(order) }

    func isStrange(_ order: Order) -> Bool {
        if order.isForbidden { return false }
        if case .unknownScheme = ResourceManner(order, in: account.simulation) { return true }
        return false
    }

    func value(in request: ServerRequest) -> String? { password(in: request) }

    func refusal() -> ServerAnswer {
        ServerAnswer(401, [("WWW-Authenticate", challenge)], body: "who are you")
    }

    /// The challenge.
    var challenge: String { "Basic realm=\"\(account.name)\"" }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 }

    func endSessions() {}
}

extension ServerAnswer {
    /// Returns the answer as a balancer passes it on: now and then with a wait that has nothing to do with the login.
    func waiting(_ chance: inout Chance) -> ServerAnswer {
        guard chance.oneIn(2) else { return self }
        var answer = self
        answer.fields.append(("Retry-After", "\(chance.pick(1...5))"))
        return answer
    }
}

/// Basic authentication followed by a token that never changes: two challenges of one server.
final class DoubleProtection: Protection {
    /// The end of the token challenge's name.
    private static let suffix = "-token"
    private static let token = "\(Simulation.secretMark)fixed"
    let account: Account
    let isCarriedUnasked = true
    let isScheme = true
    let isTriedByHand = false
    private let basic: BasicProtection

    init(_ account: Account) {
        self.account = account
        basic = BasicProtection(account)
    }

    /// Returns the credential of a token challenge; `nil` if the name is another's.
    static func credential(named name: String) -> Credential? {
        name.hasSuffix(suffix) ? Credential(name: name, fields: ["token": Secret(token)]) : nil
    }

    var configuration: [String] { basic.configuration }

    func furtherChallenges(_ place: String) -> [String] {
        let name = account.name + Self.suffix
        return [
            "  - name: \(name)", "    \(place)", "    credential: \(name)", "    scheme: bearer",
            "    token: { grant: static, field: X-Token, prefix: \"\" }",
        ]
    }

    func fields(of value: String) -> [String: String] { basic.fields(of: value) }

    func examine(_ request: ServerRequest) -> Examination {
        let examination = basic.examine(request)
        guard case .pass(let attempt) = examination, request.value("x-token") != Self.token else { return examination }
        return .demand(ServerAnswer.tokenMissing.judging(attempt))
    }

    func isRefused(_ order: Order) -> Bool { basic.isRefused(order) }

    func isStrange(_ order: Order) -> Bool { basic.isStrange(order) }

    func value(in request: ServerRequest) -> String? { basic.value(in: request) }

    func refusal() -> ServerAnswer { basic.refusal() }

    func isDemand(_ status: Int, _ body: String) -> Bool { basic.isDemand(status, body) }

    func endSessions() {}
}
