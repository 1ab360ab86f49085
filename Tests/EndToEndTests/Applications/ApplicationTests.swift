// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Real web applications, by the recipe of the documentation")
struct ApplicationTests {
    private static let all: [Application] = [.django, .dokuWiki, .jupyterHub, .mediaWiki]

    /// 20 requests at once, none of them with a session of its own.
    private func storm(_ application: Application, _ bank: Bank) async throws -> [Curl] {
        try await withThrowingTaskGroup(of: Curl.self) { group in
            for _ in 0..<20 { group.addTask { try await bank.curl(application.page.path) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test(
        "20 cold requests log in once and get the user's page, and so do 20 after the application ended the session",
        arguments: all)
    func once(_ application: Application) async throws {
        try await withFake(try application.kind()) { bank, fake in
            try await bank.expect(application.openPage, status: 200)
            #expect(fake.logins.isEmpty, "a page for everybody needs no login")
            for round in 1...2 {
                let answers = try await storm(application, bank)
                let wrong = answers.filter { $0.status != 200 || !$0.text.contains(application.page.text) }
                #expect(answers.count == 20 && wrong.isEmpty, "\(wrong.first?.summary ?? "")")
                #expect(fake.logins.count == round)
                try await fake.direct(application.expiry)
            }
        }
    }

    @Test("a wrong password is sent once for 20 requests, and pages for everybody still pass", arguments: all)
    func wrongPassword(_ application: Application) async throws {
        try await withFake(try application.kind(), password: "not-it") { bank, fake in
            let codes = try await storm(application, bank).map { $0.code ?? "\($0.status)" }
            #expect(codes.contains("login-rejected"), "\(codes)")
            #expect(codes.allSatisfy { ["login-rejected", "login-latched"].contains($0) }, "\(codes)")
            try await bank.expect(application.page.path, status: 503, code: "login-latched")
            #expect(fake.logins == ["ann"])
            try await bank.expect(application.openPage, status: 200)
        }
    }

    @Test(
        "a page that the user may not see passes as it came, and changes nothing", arguments: all, ["prove-at", nil])
    func refused(_ application: Application, without left: String?) async throws {
        try await withFake(try application.kind(without: left)) { bank, fake in
            for _ in 0..<3 { try await bank.expect(application.refused.path, status: application.refused.status) }
            for _ in 0..<3 {
                let page = try await bank.expect(application.page.path, status: 200)
                #expect(page.text.contains(application.page.text))
                try await bank.expect(application.refused.path, status: application.refused.status)
            }
            // Without an address that proves the session, a second login may find out that it would be the same.
            #expect(left == nil ? fake.logins == ["ann"] : fake.logins.count <= 2, "\(fake.logins)")
        }
    }
}
