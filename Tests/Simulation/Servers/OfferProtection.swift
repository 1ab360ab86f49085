// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A server of several schemes, of which the daemon prefers one: the judge of rule 10.
final class OfferProtection: Protection {
    let account: Account
    let isScheme = true
    let isTriedByHand = false
    private let basic: BasicProtection
    private let digest: DigestProtection
    /// The schemes of the daemon, the preferred one first.
    private let configured: [String]
    private let offered: Set<String>
    /// The orders that have met challenges of the expected scheme which cannot be read.
    private var unreadable: Set<Int> = []

    init(_ account: Account) {
        self.account = account
        basic = BasicProtection(account)
        digest = DigestProtection(account, isAlone: false)
        let chance = account.simulation.chance.below(4)
        configured = chance < 2 ? ["Digest", "Basic"] : ["Basic", "Digest"]
        offered = chance % 2 == 0 ? ["Basic", "Digest"] : [configured[1]]
    }

    var configuration: [String] { ["scheme: [\(configured.joined(separator: ", ").lowercased())]"] }

    func fields(of value: String) -> [String: String] { digest.fields(of: value) }

    /// The scheme that has to be used.
    private var expected: String { configured.first(where: offered.contains) ?? "" }

    func examine(_ request: ServerRequest) -> Examination {
        let used = request.value("authorization").map { String($0.prefix { $0 != " " }) }
        if let used, used != expected {
            account.simulation.violated("rule 10: \(used) is used instead of \(expected), offered: \(offered.sorted())")
        }
        switch expected == "Basic" ? basic.examine(request) : digest.examine(request) {
        case .pass(let attempt): return .pass(attempt)
        case .demand(var answer):
            if case .unknownScheme = ResourceManner(request, in: account.simulation) { return .demand(answer) }
            answer.fields.removeAll { $0.name == "WWW-Authenticate" && !$0.value.hasSuffix("stale=true") }
            if !answer.fields.contains(where: { $0.name == "WWW-Authenticate" }) {
                answer.fields += challenges(request)
            }
            return .demand(answer)
        }
    }

    private func challenges(_ request: ServerRequest) -> [(name: String, value: String)] {
        var lines = offered.contains("Digest") ? digest.challenges() : []
        if offered.contains("Basic") {
            lines.insert(("WWW-Authenticate", basic.challenge), at: account.simulation.chance.pick(0...lines.count))
        }
        if isGarbled(request) {
            lines = lines.map {
                $0.value.hasPrefix("Digest") ? ($0.name, "Digest realm=\"\(account.name), nonce=") : $0
            }
            if lines.count == 1 { lines.append(("WWW-Authenticate", "Negotiate a=b, =\"")) }
        } else if account.simulation.chance.oneIn(2) {
            return [("WWW-Authenticate", lines.map(\.value).joined(separator: ", "))]
        }
        return lines
    }

    /// Returns true if the challenges to a request are to be garbled on their way.
    private func isGarbled(_ request: ServerRequest) -> Bool {
        guard account.simulation.weather.hasStrangers, request.value("authorization") == nil, !request.isSide,
            let number = request.path.split(separator: "/").last.flatMap({ Int($0) }),
            account.simulation.chance.oneIn(4)
        else { return false }
        // Other challenges are answered all the same, but nothing weaker in place of Digest.
        if expected == "Digest" { unreadable.insert(number) }
        return true
    }

    func isRefused(_ order: Order) -> Bool { unreadable.contains(order.number) || isStrange(order) }

    func isStrange(_ order: Order) -> Bool { basic.isStrange(order) }

    func value(in request: ServerRequest) -> String? { basic.value(in: request) ?? digest.value(in: request) }

    func refusal() -> ServerAnswer {
        ServerAnswer(401, challenges(ServerRequest(method: "GET", target: "/")), body: "who are you")
    }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 }

    func endSessions() { digest.endSessions() }
}
