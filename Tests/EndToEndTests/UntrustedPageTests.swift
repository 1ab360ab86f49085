// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("Login pages of a server on which anybody may write")
struct WrittenPageTests {
    private static let wiki = FakeKind(script: "wiki", challenge: "gateway: form")
    private static let form =
        "<form method=post action='/save'><input name=title><input type=password name=text></form>"

    private func write(_ page: String, at path: String, of fake: FakeServer) async throws {
        try await fake.direct("/-fake/page?path=\(path)", ["-X", "PUT", "--data-binary", page])
    }

    @Test("three lines log in behind the server's own redirect, and a wrong password goes out once")
    func redirected() async throws {
        try await withFake(Self.wiki) { bank, fake in
            try await bank.expect("/app", status: 200)
            #expect(fake.logins == ["ann ok"])
        }
        try await withFake(Self.wiki, password: "wrong") { bank, fake in
            let rejected = try await bank.expect("/app", code: "login-rejected")
            #expect(rejected.detail.contains("the login page again"), "\(rejected.detail)")
            for _ in 0..<5 { try await bank.expect("/app", code: "login-latched") }
            #expect(fake.logins == ["ann wrong"])
        }
    }

    @Test("a page with a form that a caller asks for gets nothing, and keeps nobody else from logging in")
    func callersPage() async throws {
        try await withFake(Self.wiki) { bank, fake in
            try await write(Self.form, at: "/open/evil.html", of: fake)
            for _ in 0..<3 {
                try await bank.expect("/open/evil.html", status: 200)
                try await fake.direct("/-fake/expire")
                try await bank.expect("/app", status: 200)
            }
            #expect(fake.lines("saved").isEmpty)
        }
    }

    @Test(
        "words and forms on the page at which logins end do not reject a right password",
        arguments: ["Wrong name or password", "account is locked", Self.form])
    func startPage(_ text: String) async throws {
        var kind = Self.wiki
        kind.challenge += """

            failed:
              - { body-contains: Wrong name or password, because: wrong-password }
              - { body-contains: is locked, because: locked }
            """
        try await withFake(kind) { bank, fake in
            try await write("<h1>Start</h1>\(text)", at: "/", of: fake)
            for _ in 0..<3 {
                try await bank.expect("/app", status: 200)
                await bank.killDaemon()
                try await bank.startDaemon()
            }
            #expect(!fake.logins.contains("ann wrong") && fake.lines("saved").isEmpty)
        }
    }

    @Test("a form before the real one gets nothing, also after a restart")
    func formBefore() async throws {
        try await withFake(Self.wiki) { bank, fake in
            try await bank.expect("/app", status: 200)
            try await write(Self.form, at: "/login", of: fake)
            await bank.killDaemon()
            try await bank.startDaemon()
            try await fake.direct("/-fake/expire")
            try await bank.expect("/app", status: 200)
            #expect(fake.logins == ["ann ok", "ann ok"] && fake.lines("saved").isEmpty)
        }
    }

    @Test(
        "an answer that nobody can read is followed by no second submission, not even after a restart",
        arguments: [401, 403, 429, 500])
    func unclear(_ status: Int) async throws {
        try await withFake(Self.wiki.with("--answer", "\(status)"), password: "wrong") { bank, fake in
            for _ in 0..<3 { try await bank.expect("/app", code: "login-failed") }
            await bank.killDaemon()
            try await bank.startDaemon()
            let refused = try await bank.expect("/app", code: "login-failed")
            #expect(refused.detail.contains("sent once"), "\(refused.detail)")
            #expect((Int(refused.field("retry-after") ?? "") ?? 0) > 30, "\(refused.fields)")
            #expect(fake.logins == ["ann wrong"])
        }
    }

    @Test(
        "an answer without the form is a rejection if the server still asks for a login, exactly as before",
        arguments: [200, 404, 422])
    func stillAsks(_ status: Int) async throws {
        try await withFake(Self.wiki.with("--answer", "\(status)"), password: "wrong") { bank, fake in
            let rejected = try await bank.expect("/app", code: "login-rejected")
            #expect(rejected.detail.contains("/ shows the login page after it"), "\(rejected.detail)")
            for _ in 0..<3 { try await bank.expect("/app", code: "login-latched") }
            #expect(fake.logins == ["ann wrong"])
        }
    }
}

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
            // One of them once more, under the login's `User-Agent`: it does not open the page either.
            #expect(pages.count("GET /form/uploads/manual.html") == (isFirst ? 7 : 6))
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
