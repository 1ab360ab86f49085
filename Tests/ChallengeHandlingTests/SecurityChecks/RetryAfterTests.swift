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
        let rig = LoginRig.tokens([refusal])
        let login = TokenScript.login(try TokenScript.configuration())
        #expect(await rig.lose(login).code == .rejected)
        #expect(rig.latches.all == [Latch(reason: .rejected, closedAt: LoginRig.now)])
        // The script is over: one that sends again would fail the test.
        #expect(await rig.lose(login).code == .latched)
    }

    @Test("a server's wait postpones what retry-rejected opens, and never brings it forward")
    func postpones() async {
        let rig = LoginRig()
        for (wait, opensAt) in [(0, 1_800_000), (1_000, 1_800_000), (3_600_000, 3_600_000)] as [(Int64, Int64)] {
            let failure = await use(.seconds(1800)).reject(
                .rejected, serverWait: LoginRig.now + wait, in: rig.conversation)
            #expect(failure.retryAt == LoginRig.now + opensAt)
            #expect(rig.latches.all.map(\.opensAt) == [LoginRig.now + opensAt])
        }
    }

    @Test("a locked account is tried again at the time that the server names, a minute from now at the least")
    func locked() async throws {
        let rig = LoginRig()
        for (wait, opensAt) in [(0, 60_000), (-5_000, 60_000), (90_000, 90_000)] as [(Int64, Int64)] {
            let failure = await use(.seconds(1800)).reject(
                .locked, serverWait: LoginRig.now + wait, in: rig.conversation)
            #expect(failure.retryAt == LoginRig.now + opensAt)
        }
        #expect(await use(nil).reject(.locked, serverWait: nil, in: rig.conversation).retryAt == nil)
        let asked = LoginRig(
            .challenged() + [Self.answered.failing(["PinCodeAttempts": "locked"], [.retryAfter: "10"])])
        _ = await asked.lose(try Bank.login([Bank.pin(retryRejectedAfter: .seconds(1800))]))
        #expect(asked.latches.all.first?.opensAt == LoginRig.now + 60_000)
    }

    @Test("without Retry-After a latch opens after retry-rejected, or never")
    func configured() async {
        let rig = LoginRig()
        #expect(
            await use(.seconds(60)).reject(.rejected, serverWait: nil, in: rig.conversation).retryAt == LoginRig.now
                + 60_000)
        #expect(await use(nil).reject(.rejected, serverWait: LoginRig.now, in: rig.conversation).retryAt == nil)
        let endless = Duration(secondsComponent: .max, attosecondsComponent: 0)
        #expect(await use(endless).reject(.rejected, serverWait: 0, in: rig.conversation).retryAt == nil)
    }

    @Test(
        "a blocked security check is requested again after five seconds, whatever Retry-After says"
    )
    func blocked() {
        var table = SessionTable<Int>()
        let key = SessionKey(origin: TokenScript.origin, challenge: "api", credential: "api-client")
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        let failure = LoginFailure(.accountLocked, challenge: "api", detail: "", retryAt: 0)
        _ = table.finish(key, with: .failure(failure), now: 0, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 4_999) == .refuse(failure))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 5_000) == .logIn)
    }
}
