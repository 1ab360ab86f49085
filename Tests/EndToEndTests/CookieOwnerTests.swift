// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Synchronization
import Testing

@Suite("Cookies of a session and of callers, at one server with two applications")
struct CookieOwnerTests {
    /// A shop beside the application that is logged in to: a cookie of the same name, under a path of its own.
    private final class Shop: Sendable {
        private let seen = Mutex<[String?]>([])

        func respond(_ request: FakeRequest) -> FakeResponse? {
            guard request.path.hasPrefix("/shop/") else { return nil }
            let number = seen.withLock { seen in
                seen.append(request.cookie("JSESSIONID"))
                return seen.count
            }
            return .text(200, "shop", fields: [("Set-Cookie", "JSESSIONID=SHOP\(number); Path=/shop")])
        }

        var sessions: [String?] { seen.withLock { $0 } }
    }

    private static func configuration(_ more: String = "") -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.workers = 2
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = [
            "name: page\nat: \"http://127.0.0.1:${UPSTREAM_PORT}/*\"\ngateway: j-security-check\ncredential: ann\n"
                + "prove-at: /form/\n\(more)"
        ]
        configuration.mobileFirst = []
        configuration.environment = ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "demo"]
        return configuration
    }

    @Test("the other application's cookie is each caller's own, and the session's serves where it was set for")
    func otherApplication() async throws {
        try await withBank(Self.configuration()) { bank in
            let shop = Shop()
            bank.upstream.override(shop.respond)
            try await bank.expect("/form/a", status: 200)
            let first = try await bank.expect("/shop/", status: 200)
            #expect(first.field("set-cookie") == "JSESSIONID=SHOP1; Path=/shop")
            try await bank.expect("/shop/", status: 200)
            try await bank.expect("/shop/", "-b", "JSESSIONID=SHOP1", status: 200)
            #expect(shop.sessions == [nil, nil, "SHOP1"])
            let page = try await bank.expect("/form/b", "-b", "JSESSIONID=SHOP1", status: 200)
            #expect(page.field("set-cookie") == nil)
            #expect(bank.record.logins["form"] == 1)
        }
    }

    @Test("a login whose only cookie is given to callers by the configuration wins no session, and says why")
    func allPassed() async throws {
        try await withBank(Self.configuration("cookies: { pass: [JSESSIONID] }")) { bank in
            let answer = try await bank.expect("/form/a", status: 502, code: "login-failed")
            #expect(answer.json?["detail"]?.string?.contains("cookies.pass") == true, "\(answer.summary)")
        }
    }
}
