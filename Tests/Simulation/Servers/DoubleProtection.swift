// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets

/// Basic authentication, and behind it a token that never changes: two challenges of one server.
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
