// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Scopes that a token server refuses")
struct RefusedScopeTests {
    /// A login for `scope` at an endpoint of which the configuration asks for `read`.
    private func login(_ scope: String, _ grant: TokenConfiguration.Grant = .clientCredentials) throws -> TokenLogin {
        TokenLogin(
            try TokenScript.configuration(grant), key: TokenScript.key, scope: Scope(text: scope),
            configuredScope: Scope(text: "read"), keys: ScriptedKeys(),
            refreshTokens: RefreshTokens(credential: "api-client", origin: TokenScript.origin))
    }

    private func asked(for scope: String, _ status: Int = 200, _ error: String = "") -> ScriptedStep {
        let step = TokenScript.asked { $0.form("scope") == scope }
        return status == 200 ? step : step.replying(status, [:], #"{"error":"\#(error)"}"#)
    }

    private func accepted(_ steps: [ScriptedStep]) -> World {
        let world = World.tokens(steps)
        world.latches.accept(TokenScript.key, TokenScript.client, Acceptance(path: nil, at: 0))
        return world
    }

    @Test("a token leaves the mark that its credential was accepted")
    func mark() async throws {
        let world = World.tokens([asked(for: "read")])
        _ = try await world.win(try login("read"))
        #expect(world.latches.acceptance(TokenScript.key, of: TokenScript.client)?.at == World.now)
    }

    @Test(
        "more scope that is refused to an accepted credential is that scope's alone: less is asked for once, and nothing latches",
        arguments: [
            (400, "invalid_grant"), (400, "invalid_client"), (401, "invalid_client"), (401, "unauthorized_client"),
            (401, ""),
        ])
    func grown(status: Int, error: String) async throws {
        let world = accepted([asked(for: "admin read", status, error), asked(for: "read")])
        let failure = await world.lose(try login("admin read"))
        #expect(failure.code == .failed && failure.concernsScope && failure.detail.contains("admin read"))
        #expect(failure.retryAt == World.now + 30_000 && world.latches.all.isEmpty)
    }

    @Test(
        "words about the scope latch nothing, and ask no further", arguments: ["invalid_scope", "unauthorized_client"])
    func words(error: String) async throws {
        let world = World.tokens([asked(for: "admin read", 400, error)])
        let failure = await world.lose(try login("admin read"))
        #expect(failure.code == .failed && failure.concernsScope && world.latches.all.isEmpty)
        #expect(failure.retryAt == World.now + 30_000)
    }

    @Test("a secret that is refused for less scope as well is rejected, after two requests")
    func changedAtServer() async throws {
        let world = accepted([
            asked(for: "admin read", 401, "invalid_client"), asked(for: "read", 401, "invalid_client"),
        ])
        #expect(await world.lose(try login("admin read")).code == .rejected)
        #expect(await world.lose(try login("read")).code == .latched)
    }

    @Test("a secret that is refused for the configured scope is rejected at once, accepted before or not")
    func configured() async throws {
        for world in [
            accepted([asked(for: "read", 400, "invalid_grant")]),
            World.tokens([asked(for: "read", 400, "invalid_grant")]),
        ] { #expect(await world.lose(try login("read")).code == .rejected) }
    }

    @Test("a secret that no server ever accepted is rejected at its first refusal, for whatever scope")
    func neverAccepted() async throws {
        let world = World.tokens([asked(for: "admin read", 401, "invalid_client")])
        #expect(await world.lose(try login("admin read")).code == .rejected)
    }

    @Test("the refresh token that comes with the smaller scope is kept")
    func rotated() async throws {
        let refused = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-1" }
            .replying(401, [:], #"{"error":"invalid_client"}"#)
        let taken = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-1" }
            .replying(200, [:], #"{"access_token":"t","refresh_token":"refresh-2"}"#)
        let next = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-2" }
        let world = accepted([refused, taken, next])
        await #expect(throws: LoginFailure.self) {
            try await login("admin read", .refreshToken).win(world.conversation)
        }
        #expect(world.latches.all.isEmpty)
        _ = try await world.win(try login("read", .refreshToken))
    }

    @Test("a refused scope makes no upstream unready, and is not tried again unasked")
    func standing() {
        var table = SessionTable<Int>()
        let key = SessionKey(
            origin: TokenScript.origin, challenge: "api", credential: "api-client", scope: "admin read")
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        var failure = LoginFailure(.failed, challenge: "api", detail: "", retryAt: 30_000)
        failure.concernsScope = true
        _ = table.finish(key, with: .failure(failure), now: 0, chance: 0)
        #expect(table.standing(of: key, now: 100) == .cold)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 29_999) == .no(failure))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 30_000) == .go)
    }
}
