// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Form logins of servers that are not installed here, by faithful fakes")
struct FormServerTests {
    private static let kinds: [FakeKind] = [
        .webSEAL, .webSEALBehindTLS, .webSEALByRedirect, .liberty, .jetty, .jettyDispatching, .undertow,
    ]

    @Test("a caller without a credential is ann, and the second request costs no further round trip", arguments: kinds)
    func principal(_ kind: FakeKind) async throws {
        try await withFake(kind) { bank, fake in
            let first = try await bank.expect("/app/reports/7?year=2026", status: 200)
            #expect(first.json?["principal"]?.string == "ann", "\(first.summary)")
            #expect(first.json?["target"]?.string == "/app/reports/7?year=2026")
            #expect(first.field("set-cookie") == nil)
            let before = fake.requests.count
            let second = try await bank.expect("/app/reports/8", "-H", "Cookie: mine=1", status: 200)
            #expect(second.json?["principal"]?.string == "ann", "\(second.summary)")
            let cookies = second.json?["cookies"]?.string?.split(separator: "; ").map(String.init) ?? []
            #expect(cookies.contains("mine") && !cookies.contains { $0.hasPrefix("WAS") }, "\(cookies)")
            #expect(fake.requests.count == before + 1 && fake.logins == ["ann ok"])
            // A cookie of the application's own is the caller's, and nobody else's.
            #expect(try await bank.expect("/app/basket", status: 200).field("set-cookie") == "basket=7; Path=/")
            let third = try await bank.expect("/app/reports/9", status: 200)
            #expect(third.json?["cookies"]?.string == cookies.filter { $0 != "mine" }.joined(separator: "; "))
        }
    }

    @Test(
        "a POST without a session takes these requests and no other, and goes once, after the login",
        arguments: [
            (FakeKind.webSEAL, ["/ 200", "/pkmslogin.form 302", "/ 200", "POST 200"]),
            (.webSEALByRedirect, ["/ 302", "/pages/login.html 200", "/pkmslogin.form 302", "/ 200", "POST 200"]),
            (.liberty, ["/ 302", "/app/login.jsp 200", "/app/j_security_check 302", "/ 200", "POST 200"]),
            (.jetty, ["/ 302", "/login.html 200", "/j_security_check 303", "/ 200", "POST 200"]),
            (.jettyDispatching, ["/ 200", "/j_security_check 303", "/ 200", "POST 200"]),
            (.undertow, ["/ 200", "/j_security_check 302", "/ 200", "POST 200"]),
        ])
    func transcript(_ kind: FakeKind, _ expected: [String]) async throws {
        try await withFake(kind) { bank, fake in
            try await bank.expect("/app/transfer", "-d", "amount=1", status: 200)
            let requests = fake.requests.map { line in
                let words = line.split(separator: " ")
                let path = words[1].prefix { $0 != "?" && $0 != ";" }
                return path == "/app/transfer" ? "\(words[0]) \(words[2])" : "\(path) \(words[2])"
            }
            #expect(requests == expected)
            #expect(fake.arrived.map { $0.prefix { $0 != " " } } == ["GET", "POST"])
        }
    }

    @Test(
        "at-start logs in before anybody asks for it",
        arguments: [FakeKind.webSEAL, .webSEALByRedirect, .liberty, .jetty, .undertow])
    func atStart(_ kind: FakeKind) async throws {
        var kind = kind
        kind.challenge += "\nlogin: at-start"
        try await withFake(kind) { bank, fake in
            #expect(await eventually { fake.logins == ["ann ok"] })
            let answer = try await bank.expect("/app/transfer", "-d", "amount=1", status: 200)
            #expect(answer.json?["principal"]?.string == "ann")
            #expect(fake.requests.count { $0.contains("/app/transfer") } == 1 && fake.logins.count == 1)
        }
    }

    @Test("sessions and servers that end in the middle of 50 POSTs are seen by no caller", arguments: kinds)
    func underTraffic(_ kind: FakeKind) async throws {
        try await withFake(kind) { bank, fake in
            try await fake.expectPostsOnce(through: bank, at: "/app/cold")
            #expect(fake.logins.count == 1)
            try await fake.direct("/-fake/expire?at=25")
            try await fake.expectPostsOnce(through: bank, at: "/app/expiry")
            try await fake.direct("/-fake/restart?at=25")
            try await fake.expectPostsOnce(through: bank, at: "/app/restart")
            try await fake.restart()
            try await fake.expectPostsOnce(through: bank, at: "/app/fresh")
            // No server holds a POST back for whoever comes next.
            for number in 40..<50 {
                let answer = try await bank.expect("/app/fresh/\(number)", status: 200)
                #expect(answer.json?["method"]?.string == "GET", "\(answer.summary)")
            }
            #expect(fake.logins.count >= 3 && fake.logins.allSatisfy { $0 == "ann ok" }, "\(fake.logins)")
        }
    }

    @Test(
        "a wrong password reaches the server once, however many callers there are",
        arguments: kinds + [.liberty.with("--no-error-page"), .jetty.with("--no-error-page")])
    func wrongPassword(_ kind: FakeKind) async throws {
        try await withFake(kind, password: "not-it") { bank, fake in
            let codes = try await bank.storm(connections: 20, requests: 1) { number in
                "POST /app/\(number) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\na=b"
            }.map(\.code)
            #expect(codes.contains("login-rejected"), "\(codes)")
            #expect(codes.allSatisfy { ["login-rejected", "login-latched"].contains($0) }, "\(codes)")
            for _ in 0..<2 { try await bank.expect("/app/", status: 503, code: "login-latched") }
            await bank.stopDaemon()
            try await bank.startDaemon()
            try await bank.expect("/app/", status: 503, code: "login-latched")
            #expect(fake.logins == ["ann wrong"] && fake.arrived.isEmpty)
        }
    }

    @Test(
        "what only looks like a challenge passes byte for byte, and nobody logs in",
        arguments: [FakeKind.webSEAL, .webSEALByRedirect, .liberty, .jetty, .undertow])
    func innocent(_ kind: FakeKind) async throws {
        try await withFake(kind) { bank, fake in
            for path in ["/open/mention", "/open/maintenance", "/open/refuse"] {
                try await Self.expectSame(path, bank, fake)
            }
            try await fake.direct("/-fake/maintenance")
            try await Self.expectSame("/app/", bank, fake)
            try await Self.expectSame("/app/transfer", bank, fake, posting: "a=b")
            #expect(fake.logins.isEmpty)
            try await fake.direct("/-fake/maintenance")
            try await bank.expect("/app/", status: 200)
            for page in ["mention", "maintenance", "refuse"] {
                let (inside, outside) = (try await bank.curl("/app/\(page)"), try await fake.direct("/open/\(page)"))
                #expect(inside.status == outside.status && inside.body == outside.body, "\(page): \(inside.summary)")
            }
            try await fake.direct("/-fake/maintenance")
            try await Self.expectSame("/app/", bank, fake)
            try await fake.direct("/-fake/maintenance")
            try await bank.expect("/app/", status: 200)
            #expect(fake.logins == ["ann ok"], "none of it has ended the session")
        }
    }

    private static func expectSame(
        _ path: String, _ bank: Bank, _ fake: FakeServer, posting form: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let options = form.map { ["-d", $0] } ?? []
        let through = try await Curl.run(options + [bank.url(path)], in: bank.folder)
        let direct = try await fake.direct(path, options)
        #expect(
            through.status == direct.status && through.body == direct.body, "\(path): \(through.summary)",
            sourceLocation: sourceLocation)
    }
}

@Suite("A form login that no preset knows: Apache httpd with mod_auth_form")
struct ApacheFormTests {
    private static func challenge(_ more: String = "") -> String {
        """
        name: portal
        upstream: apache
        gateway: none
        credential: portal
        detect: { status: 401, form-fields: [httpd_username, httpd_password] }
        login:
          url: form
          parameters: { httpd_username: "{username}", httpd_password: "{password}" }
          fields: hidden
        \(more)
        """
    }

    private func withApache(
        _ more: String = "", password: String = "demo", _ scenario: (Bank, ApacheForm) async throws -> Void
    ) async throws {
        var configuration = BankConfiguration()
        configuration.challenges = [Self.challenge(more)]
        configuration.environment = [
            "COUNTERSIGN_PORTAL__USERNAME": "ann", "COUNTERSIGN_PORTAL__PASSWORD": password,
        ]
        try await withBank(configuration, startsDaemon: false) { bank in
            let apache = try await ApacheForm(before: bank.upstream.port)
            bank.configure { configuration in
                configuration.listeners = """
                    address: 127.0.0.1:\(bank.port)
                    upstream: apache
                    """
                configuration.upstreams = ["apache: { url: \"http://127.0.0.1:\(apache.port)/\" }"]
            }
            let result = await Result {
                try await bank.startDaemon()
                try await scenario(bank, apache)
            }
            await apache.stop()
            try result.get()
        }
    }

    @Test("the page's own form with its hidden field; the session's cookie stays with the proxy and is sent")
    func principal() async throws {
        try await withApache { bank, apache in
            let first = try await bank.curl("/open/echo", "-d", "hello")
            #expect(first.json?["fields"].map(fields)?["x-remote-user"] == "ann", "\(first.summary)")
            #expect(
                first.json?["sha256"]?.string == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
            #expect(first.field("set-cookie") == nil)
            // Apache logs a little after it has answered.
            #expect(await eventually { apache.submissions >= 1 } && apache.submissions == 1)
            #expect(await eventually { apache.requests.contains("POST /open/echo 200") })
            let before = apache.requests.count
            let second = try await bank.curl("/open/echo")
            #expect(second.json?["fields"].map(fields)?["x-remote-user"] == "ann", "\(second.summary)")
            #expect(second.field("set-cookie") == nil)
            #expect(await eventually { apache.requests.count >= before + 1 })
            #expect(apache.requests.count == before + 1)
        }
    }

    @Test("evidence that the configuration names needs no request more after the form")
    func evidence() async throws {
        try await withApache("success: { cookie: session, redirect-to: /login/welcome }") { bank, apache in
            try await bank.expect("/open/echo", status: 200)
            #expect(await eventually { apache.requests.count >= 6 })
            #expect(
                apache.requests == [
                    "GET /open/echo 401", "GET / 404", "GET /open/echo 401", "POST /login/submit 302",
                    "GET /login/welcome.html 200", "GET /open/echo 200",
                ])
        }
    }

    @Test("a wrong password reaches Apache once")
    func wrongPassword() async throws {
        try await withApache(password: "not-it") { bank, apache in
            try await bank.expect("/open/echo", status: 502, code: "login-rejected")
            for _ in 0..<3 { try await bank.expect("/open/echo", status: 503, code: "login-latched") }
            #expect(await eventually { apache.submissions >= 1 } && apache.submissions == 1)
        }
    }
}

extension Result where Failure == any Error {
    /// Creates the result of `body`: the value it returns, or the error it throws.
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
