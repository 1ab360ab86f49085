// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("What a caller asks for decides neither about a login nor where its password goes")
struct LoginPageTrustTests {
    /// A page that another user put on the upstream, and the requests for such pages as `METHOD TARGET`.
    private final class Pages: Sendable {
        private let seen = Notes()
        private let page: String

        init(_ page: String) { self.page = page }

        func respond(_ request: FakeRequest) -> FakeResponse? {
            guard request.path.contains("/uploads/") || request.path.contains("/wiki/") else { return nil }
            seen.add("\(request.method) \(request.path)")
            return .html(200, page)
        }

        func count(_ request: String) -> Int { seen.all.count { $0 == request } }
        var posts: [String] { seen.all.filter { $0.hasPrefix("POST") } }
    }

    private static func configuration(at place: String, _ more: String = "") -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.workers = 2
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = [
            "name: page\nat: \"http://127.0.0.1:${UPSTREAM_PORT}/\(place)\"\ngateway: j-security-check\ncredential: ann\n\(more)"
        ]
        configuration.mobileFirst = []
        configuration.environment = ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "demo"]
        return configuration
    }

    private static let form =
        #"<h1>Manual</h1><form method="post" action="j_security_check"><input name="j_username"></form>"#

    @Test(
        "a page that always holds the form passes byte for byte, first or later; one login, one password, no latch",
        arguments: [true, false])
    func alwaysForm(isFirst: Bool) async throws {
        try await withBank(Self.configuration(at: "form/*")) { bank in
            let pages = Pages(Self.form)
            bank.upstream.override(pages.respond)
            if !isFirst { try await bank.expect("/form/a", status: 200) }
            for _ in 0..<5 {
                #expect(try await bank.expect("/form/uploads/manual.html", status: 200).text == Self.form)
            }
            #expect(pages.count("GET /form/uploads/manual.html") == (isFirst ? 6 : 5))
            let posted = try await bank.expect("/form/uploads/search", "-d", "q=x", status: 200)
            #expect(posted.text == Self.form && pages.count("POST /form/uploads/search") == 1)
            try await bank.expect("/form/b", status: 200)
            #expect(bank.record.logins["form"] == 1 && bank.record.answerCount(to: "form") == 1)
        }
    }

    @Test("what a caller asked for is executed once, over a login and three renewals")
    func onceOnly() async throws {
        try await withBank(Self.configuration(at: "form/*")) { bank in
            try await bank.expect("/form/pay?to=mallory&amount=100", status: 200)
            for round in 0..<3 {
                bank.upstream.form.dropSessions()
                try await bank.expect("/form/other\(round)", status: 200)
            }
            #expect(bank.record.logins["form"] == 4)
            #expect(bank.record.hits.count { $0.path.hasPrefix("/form/pay") } == 1, "\(bank.record.hits)")
        }
    }

    @Test(
        "a page that somebody put there gets no password: neither its action, nor its <base>, nor its hidden fields count"
    )
    func phishing() async throws {
        let page = """
            <base href="/wiki/save/"><form method=post action="/wiki/save/j_security_check"><input type=hidden name=publish value=1></form>
            """
        try await withBank(Self.configuration(at: "*")) { bank in
            let pages = Pages(page)
            bank.upstream.override(pages.respond)
            let answer = try await bank.expect("/uploads/evil.html", status: 502, code: "login-failed")
            #expect(
                answer.json?["detail"]?.string?.contains("/wiki/save/j_security_check") == true, "\(answer.summary)")
            #expect(pages.posts.isEmpty && bank.record.answerCount(to: "form") == 0)
        }
    }
}
