// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The other addresses that upstreams name for sign-ons: the old one of a provider, without TLS, and another provider's. No page
/// leads a login there that it may follow.
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
