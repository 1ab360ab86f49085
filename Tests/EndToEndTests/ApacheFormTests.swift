// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

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
