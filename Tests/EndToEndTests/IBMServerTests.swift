// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("WebSEAL's own pages, by a faithful fake")
struct WebSEALServerTests {
    @Test(
        "an account that is locked is told as such, after one attempt",
        arguments: [FakeKind.webSEAL, .webSEALByRedirect])
    func locked(_ kind: FakeKind) async throws {
        try await withFake(kind, user: "locked") { bank, fake in
            for _ in 0..<3 { try await bank.expect("/app/", status: 503, code: "account-locked") }
            #expect(fake.logins == ["locked acct_locked"])
        }
    }

    @Test("an expired password is told as such, after one attempt", arguments: [FakeKind.webSEAL, .webSEALByRedirect])
    func expired(_ kind: FakeKind) async throws {
        try await withFake(kind, user: "expired") { bank, fake in
            let first = try await bank.expect("/app/", status: 502, code: "login-rejected")
            #expect(first.detail.contains("expired"))
            for _ in 0..<2 { try await bank.expect("/app/", status: 503, code: "login-latched") }
            #expect(fake.logins == ["expired passwd_exp"])
        }
    }

    @Test(
        "too many sessions latch nothing, and the login works as soon as there is room",
        arguments: [FakeKind.webSEAL, .webSEALByRedirect])
    func tooManySessions(_ kind: FakeKind) async throws {
        try await withFake(kind, user: "busy") { bank, fake in
            let first = try await bank.expect("/app/", status: 502, code: "login-failed")
            #expect(first.detail.contains("session"))
            // No request is repeated at once, whatever the answer.
            for _ in 0..<5 { try await bank.expect("/app/", code: "login-failed") }
            #expect(Set(fake.logins) == ["busy too_many_sessions"] && fake.logins.count < 6)
            try await fake.direct("/-fake/expire")
            #expect(try await eventually { try await bank.curl("/app/").status == 200 })
            #expect(try await bank.curl("/app/").json?["principal"]?.string == "busy")
            #expect(fake.logins.last == "busy ok")
        }
    }

    @Test("a caller who logs out ends the session, and the next request wins another")
    func logout() async throws {
        try await withFake(.webSEAL) { bank, fake in
            try await bank.expect("/app/", status: 200)
            let page = try await bank.expect("/pkmslogout", status: 200)
            #expect(page.text.contains("has logged out"))
            #expect(try await bank.expect("/app/", status: 200).json?["principal"]?.string == "ann")
            #expect(fake.logins == ["ann ok", "ann ok"])
        }
    }

    @Test("a caller's own cookie of that name does not take the session's place")
    func foreignCookie() async throws {
        try await withFake(.webSEAL) { bank, fake in
            for _ in 0..<2 {
                let answer = try await bank.expect(
                    "/app/", "-H", "Cookie: PD-H-SESSION-ID=forged; mine=1", status: 200)
                #expect(answer.json?["cookies"]?.string == "PD-H-SESSION-ID; mine")
            }
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("who asks for JSON first gets WebSEAL's answer in JSON, which the configuration can tell")
    func contentAware() async throws {
        var kind = FakeKind.webSEAL.with("--content-aware")
        try await withFake(kind) { bank, fake in
            let answer = try await bank.expect("/app/", "-H", "Accept: application/json", status: 401)
            #expect(answer.text == #"{"operation": "login", "error": ""}"# && fake.logins.isEmpty)
        }
        kind.challenge += """

            detect:
              - { form-action: pkmslogin.form }
              - { status: 401, content-type: application/json, body-contains: '"operation": "login"' }
            """
        try await withFake(kind) { bank, fake in
            for _ in 0..<2 {
                let answer = try await bank.expect(
                    "/app/", "-H", "Accept: application/json", "--json", "{}", status: 200)
                #expect(answer.json?["principal"]?.string == "ann")
                try await fake.direct("/-fake/expire")
            }
            #expect(fake.logins == ["ann ok", "ann ok"])
        }
    }

    @Test("the command login shows how a session is established, and nothing of it")
    func command() async throws {
        try await withFake(.webSEAL) { bank, fake in
            await bank.stopDaemon()
            let login = try await bank.countersign("login", "portal")
            #expect(login.exit == 0, "\(login.errors)")
            for step in ["page: 200", "form: 302", "session established in ", ": it sends cookies"] {
                #expect(login.output.contains(step), "\(login.output)")
            }
            #expect(!login.output.contains("SESSION-ID") && !login.output.contains("demo"))
            #expect(fake.logins == ["ann ok"])
        }
    }
}

@Suite("LTPA tokens of Liberty and WebSphere, by a faithful fake")
struct LibertyServerTests {
    @Test("outlive a restart of the server, which no caller notices and no login follows")
    func restart() async throws {
        try await withFake(.liberty) { bank, fake in
            try await fake.expectPostsOnce(through: bank, at: "/app/before")
            try await fake.restart()
            try await fake.expectPostsOnce(through: bank, at: "/app/after")
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("end after their time, which no cookie tells and no caller notices")
    func life() async throws {
        try await withFake(.liberty.with("--life", "2")) { bank, fake in
            let hasEnded = try await goingOn(until: { fake.logins.count >= 2 }) { _ in
                let answer = try await bank.expect("/app/", status: 200)
                #expect(answer.json?["principal"]?.string == "ann")
            }
            #expect(hasEnded && fake.logins.count < fake.arrived.count)
        }
    }
}
