// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Assertions whose time a token endpoint refuses")
struct TokenAssertionTests {
    private static let stale = #"{"error":"invalid_client","error_description":"The client_assertion is expired."}"#

    private static func login(_ grant: TokenConfiguration.Grant = .clientCredentials) throws -> TokenLogin {
        TokenScript.login(try TokenScript.configuration(grant) { $0.clientAuthentication = .privateKeyJWT })
    }

    private static func claims(_ request: SideRequest) -> JSONValue? {
        let parts = request.form("client_assertion")?.split(separator: ".") ?? []
        return parts.count == 3 ? Base64.decode(parts[1]).flatMap { JSONValue(parsing: $0) } : nil
    }

    @Test("another assertion is made, of the time that the server tells, and the key is not latched")
    func again() async throws {
        // 90 s ahead of the rig's clock.
        let refused = TokenScript.asked().replying(401, [.date: "Sat, 21 Nov 2026 16:01:30 GMT"], Self.stale)
        let rig = LoginRig.tokens([refused, TokenScript.asked()])
        _ = try await rig.logIn(try Self.login())
        let claims = rig.requests.sent.map(Self.claims)
        let now = LoginRig.now / 1000
        #expect(claims.map { $0?["iat"] } == [.integer(now), .integer(now + 90)])
        #expect(Set(claims.map { $0?["jti"] }).count == 2)
        #expect(rig.latches.all.isEmpty)
    }

    @Test(
        "a second refusal ends the login, and the failure names the clocks",
        arguments: [
            ("Sat, 21 Nov 2026 16:01:30 GMT", "90 s ahead of"), ("Sat, 21 Nov 2026 15:59:00 GMT", "60 s behind"),
            ("Sat, 21 Nov 2026 16:00:01 GMT", "is this machine's time"), ("", "does not tell its time"),
        ])
    func twice(date: String, clocks: String) async throws {
        let fields: HTTPFields = date.isEmpty ? [:] : [.date: date]
        let refused = TokenScript.asked().replying(401, fields, Self.stale)
        let rig = LoginRig.tokens([refused, refused])
        let failure = await rig.lose(try Self.login())
        #expect(failure.code == .failed && failure.detail.contains(clocks) && failure.detail.contains("invalid_client"))
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a wrong key is sent once, also after a refused time")
    func wrongKey() async throws {
        let wrong = TokenScript.asked().replying(401, [:], #"{"error":"invalid_client"}"#)
        for steps in [[wrong], [TokenScript.asked().replying(401, [:], Self.stale), wrong]] {
            let rig = LoginRig.tokens(steps)
            #expect(await rig.lose(try Self.login()).code == .rejected)
            #expect(await rig.lose(try Self.login()).code == .latched)
            #expect(rig.requests.sent.count == steps.count)
        }
    }

    @Test("a secret is not sent twice, whatever the text of its refusal says of time")
    func secret() async throws {
        let rig = LoginRig.tokens([TokenScript.asked().replying(401, [:], Self.stale)])
        #expect(await rig.lose(TokenScript.login(try TokenScript.configuration())).code == .rejected)
    }

    @Test("a refresh token goes with the second assertion unchanged, and its successor is saved")
    func refreshToken() async throws {
        let asked = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-1" }
        let next = TokenScript.answering(#"{"access_token":"t","refresh_token":"refresh-2"}"#)
        let store = MemoryStore()
        let rig = LoginRig.tokens([asked.replying(401, [:], Self.stale), asked.replying(next)], store: store)
        _ = try await rig.logIn(try Self.login(.refreshToken))
        let later = LoginRig.tokens(
            [TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-2" }], store: store)
        _ = try await later.logIn(try Self.login(.refreshToken))
    }
}
