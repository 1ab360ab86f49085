// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Retry-After beside a rejection")
struct RetryAfterTests {
    private static let answered = ScriptedStep.preauthorize(answers: ["PinCodeAttempts": ["pin": "1234"]])
    private static let client = Credential(name: "api-client", fields: ["client-secret": Secret("wrong")])

    private func use(_ retry: Duration?) -> CredentialUse {
        CredentialUse(key: TokenScript.key, credential: Self.client, retryRejectedAfter: retry)
    }

    @Test(
        "Retry-After opens no latch of a rejected value, however it is written",
        arguments: [
            "0", "1", "3600", "99999999999999999999", "Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:59 GMT",
        ])
    func opensNothing(wait: String) async throws {
        let refusal = TokenScript.asked().replying(401, [.retryAfter: wait], #"{"error":"invalid_client"}"#)
        let world = World.tokens([refusal])
        let login = TokenScript.login(try TokenScript.configuration())
        #expect(await world.lose(login).code == .rejected)
        #expect(world.latches.all == [Latch(reason: .rejected, closedAt: World.now)])
        // The script is over: one that sends again would fail the test.
        #expect(await world.lose(login).code == .latched)
    }

    @Test("a server's wait postpones what retry-rejected opens, and never brings it forward")
    func postpones() {
        let world = World()
        for (wait, opensAt) in [(0, 1_800_000), (1_000, 1_800_000), (3_600_000, 3_600_000)] as [(Int64, Int64)] {
            let failure = use(.seconds(1800)).reject(
                .rejected, serverWait: World.now + wait, in: world.conversation)
            #expect(failure.retryAt == World.now + opensAt)
            #expect(world.latches.all.map(\.opensAt) == [World.now + opensAt])
        }
    }

    @Test("a locked account is tried again at the time that the server names, a minute from now at the least")
    func locked() async throws {
        let world = World()
        for (wait, opensAt) in [(0, 60_000), (-5_000, 60_000), (90_000, 90_000)] as [(Int64, Int64)] {
            let failure = use(.seconds(1800)).reject(.locked, serverWait: World.now + wait, in: world.conversation)
            #expect(failure.retryAt == World.now + opensAt)
        }
        #expect(use(nil).reject(.locked, serverWait: nil, in: world.conversation).retryAt == nil)
        let asked = World(.challenged() + [Self.answered.failing(["PinCodeAttempts": "locked"], [.retryAfter: "10"])])
        _ = await asked.lose(try Bank.login([Bank.pin(retryRejectedAfter: .seconds(1800))]))
        #expect(asked.latches.all.first?.opensAt == World.now + 60_000)
    }

    @Test("without Retry-After a latch opens after retry-rejected, or never")
    func configured() {
        let world = World()
        #expect(
            use(.seconds(60)).reject(.rejected, serverWait: nil, in: world.conversation).retryAt == World.now + 60_000)
        #expect(use(nil).reject(.rejected, serverWait: World.now, in: world.conversation).retryAt == nil)
        let endless = Duration(secondsComponent: .max, attosecondsComponent: 0)
        #expect(use(endless).reject(.rejected, serverWait: 0, in: world.conversation).retryAt == nil)
    }

    @Test(
        "a security check that is blocked is asked about again after five seconds, not at once, whatever Retry-After says"
    )
    func blocked() {
        var table = SessionTable<Int>()
        let key = SessionKey(origin: TokenScript.origin, challenge: "api", credential: "api-client")
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        let failure = LoginFailure(.accountLocked, challenge: "api", detail: "", retryAt: 0)
        _ = table.finish(key, with: .failure(failure), now: 0, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 4_999) == .no(failure))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 5_000) == .go)
    }
}
