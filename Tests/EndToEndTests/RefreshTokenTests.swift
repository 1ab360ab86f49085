// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Refresh tokens that a server rotates")
struct RefreshTokenTests {
    /// Runs a scenario with a bank whose credential has a refresh token from a folder that can change under way.
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

@Suite("A server that takes a refresh token's second use for theft")
struct RefreshTokenReuseTests {
    @Test(
        "a token that somebody else uses again ends the line, which is told after one attempt and cured by another token"
    )
    func theft() async throws {
        try await RefreshTokenTests.withRefreshToken { bank, credentials in
            try await bank.expect("/oauth/api/echo", status: 200)
            let stolen = credentials.text(of: "api.refresh-token")
            let thief = try await Curl.run(
                [
                    "-u", "demo:demo%3Asecret%2B%25", "-d", "grant_type=refresh_token", "-d", "refresh_token=\(stolen)",
                    "http://127.0.0.1:\(bank.upstream.port)/oauth/token",
                ], in: bank.folder)
            #expect(thief.json?["error"]?.string == "invalid_grant")
            let before = bank.record.answerCount(to: "oauth")
            try await bank.expect("/oauth/api/echo", status: 502, code: "login-rejected")
            for _ in 0..<3 { try await bank.expect("/oauth/api/echo", status: 503, code: "login-latched") }
            #expect(bank.record.answerCount(to: "oauth") == before + 1)
            credentials.write(bank.upstream.oauth.issueRefreshToken(), to: "api.refresh-token")
            try await bank.expect("/oauth/api/echo", status: 200)
        }
    }

    @Test("no token is used twice when the daemon is killed in the middle of 50 posts, right after a renewal")
    func killed() async throws {
        try await RefreshTokenTests.withRefreshToken { bank, _ in
            try await bank.expect("/oauth/api/echo", status: 200)
            for round in 0..<3 {
                bank.upstream.oauth.revokeTokens()
                async let interrupted = bank.storm(connections: 50, requests: 4) { number in
                    "POST /oauth/api/lost/\(round) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n\(number % 10)"
                }
                // The new token is stored before any request is sent with the access token that came with it.
                let isServed = await eventually {
                    bank.record.count("POST", "/oauth/api/lost/\(round)", status: 200) > 0
                }
                #expect(isServed)
                await bank.killDaemon()
                _ = try? await interrupted
                try await bank.startDaemon()
                try await bank.expectPostsOnce("/oauth/api/kept/\(round)")
            }
            #expect(bank.record.wrongAnswers["oauth"] == nil)
        }
    }

    @Test("a renewal whose answer never came costs one attempt after a restart, and is told")
    func lostAnswer() async throws {
        try await RefreshTokenTests.withRefreshToken { bank, credentials in
            try await bank.expect("/oauth/api/echo", status: 200)
            bank.upstream.oauth.revokeTokens()
            bank.upstream.faults.add(Fault(.hang, at: .oauthToken, times: 1))
            async let waiting = bank.curl("/oauth/api/echo")
            #expect(await eventually { bank.record.answerCount(to: "oauth") == 2 })
            await bank.killDaemon()
            _ = try? await waiting
            try await bank.startDaemon()
            // The client cannot know whether the server has rotated the token; it has, and treats the second use as
            // theft.
            try await bank.expect("/oauth/api/echo", status: 502, code: "login-rejected")
            for _ in 0..<3 { try await bank.expect("/oauth/api/echo", status: 503, code: "login-latched") }
            #expect(bank.record.wrongAnswers["oauth"] == 1)
            credentials.write(bank.upstream.oauth.issueRefreshToken(), to: "api.refresh-token")
            try await bank.expect("/oauth/api/echo", status: 200)
        }
    }
}
