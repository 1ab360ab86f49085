// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Refresh tokens that a server rotates")
struct RefreshTokenTests {
    /// A bank whose credential has a refresh token from a folder that can change under way.
    static func withRefreshToken(
        _ scenario: (_ bank: Bank, _ credentials: Folder) async throws -> Void
    ) async throws {
        let credentials = try Folder()
        var configuration = BankConfiguration.oauth("grant: refresh-token")
        configuration.sources = ["systemd"]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        credentials.write("demo", to: "api.client-id")
        credentials.write("demo:secret+%", to: "api.client-secret")
        try await withBank(configuration, startsDaemon: false) { bank in
            credentials.write(bank.upstream.oauth.issueRefreshToken(), to: "api.refresh-token")
            try await bank.startDaemon()
            try await scenario(bank, credentials)
        }
    }

    @Test("are each used once, also over restarts, and are nowhere on disk in the clear")
    func rotates() async throws {
        try await Self.withRefreshToken { bank, credentials in
            for _ in 0..<2 {
                try await bank.expect("/oauth/api/echo", status: 200)
                bank.upstream.oauth.revokeTokens()
                try await bank.expect("/oauth/api/echo", status: 200)
                await bank.killDaemon()
                try await bank.startDaemon()
            }
            try await bank.expect("/oauth/api/echo", status: 200)
            #expect(bank.record.tokens.count == 5 && bank.record.wrongAnswers["oauth"] == nil)
            for file in bank.folder.files where !file.hasSuffix("/countersign.yaml") {
                #expect(!String(decoding: readFile(file), as: UTF8.self).contains("refresh-"), "\(file)")
            }
        }
    }

    @Test("are sent no more when the server has revoked them, until the credential has another")
    func revoked() async throws {
        try await Self.withRefreshToken { bank, credentials in
            try await bank.expect("/oauth/api/echo", status: 200)
            let first = credentials.text(of: "api.refresh-token")
            bank.upstream.oauth.revoke(lineOf: first)
            try await bank.expect("/oauth/api/echo", status: 502, code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/oauth/api/echo", status: 503, code: "login-latched") }
            #expect(bank.record.answerCount(to: "oauth") == 2)
            credentials.write(bank.upstream.oauth.issueRefreshToken(), to: "api.refresh-token")
            try await bank.expect("/oauth/api/echo", status: 200)
        }
    }

    @Test("stay in one line when 50 posts meet their end at once")
    func underTraffic() async throws {
        try await Self.withRefreshToken { bank, _ in
            try await bank.expect("/oauth/api/echo", status: 200)
            for round in 0..<3 {
                bank.upstream.oauth.revokeTokens()
                try await bank.expectPostsOnce("/oauth/api/transfer/\(round)")
            }
            #expect(bank.record.tokens.count == 4 && bank.record.wrongAnswers["oauth"] == nil)
        }
    }
}
