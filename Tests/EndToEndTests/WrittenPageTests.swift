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
