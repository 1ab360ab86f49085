// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A session id that anybody gets, against forged requests of other sites: a login without a credential.
final class SessionIDProtection: Protection {
    private static let field = "X-Session-Id"
    let account: Account
    let usesCredential = false
    private var ids: Set<String> = []
    private var last = 0

    init(_ account: Account) { self.account = account }

    var configuration: [String] {
        [
            "gateway: none", "detect: { status: 409 }",
            "login: { url: /rpc, method: GET, extract: { id: \"header:\(Self.field)\" } }",
            "inject: { \(Self.field): \"{id}\" }",
        ]
    }

    func fields(of value: String) -> [String: String] { [:] }

    func examine(_ request: ServerRequest) -> Examination {
        if let id = request.value(Self.field), ids.contains(id) { return .pass(nil) }
        return .demand(refusal())
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path == "/rpc" else { return nil }
        // A firewall before the server, for a while.
        if account.simulation.isFault(5) {
            return ServerAnswer(account.simulation.chance.pick([401, 403]), body: "no")
        }
        last += 1
        let id = "\(Simulation.secretMark)id\(account.name)n\(last)"
        ids.insert(id)
        return ServerAnswer(200, [(Self.field, id)], body: "{}")
    }

    func isCarried(by request: ServerRequest) -> Bool { request.value(Self.field) != nil }

    func refusal() -> ServerAnswer { ServerAnswer(409, body: "no id") }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 409 }

    func endSessions() {
        account.ends += 1
        ids = []
    }
}
