// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Rejected credentials")
struct RejectionTests {
    static let answered = ScriptedStep.preauthorize(answers: ["PinCodeAttempts": ["pin": "1234"]])

    @Test("a wrong PIN is sent once, and the latch is closed")
    func wrong() async throws {
        let hint: JSONValue = [
            "PinCodeAttempts": ["errorMsg": "Pin code is not valid. Hint: 1234", "remainingAttempts": 2]
        ]
        let rig = LoginRig(.challenged() + [Self.answered.challenging(hint)])
        let failure = await rig.lose(try Bank.login())
        #expect(failure.code == .rejected && failure.challenge == "bank-pin-challenge")
        #expect(failure.detail.contains("countersign unlatch bank-pin-challenge"))
        #expect(rig.latches.all == [Latch(reason: .rejected, closedAt: LoginRig.now)])
        #expect(
            rig.latches.keys == [
                LatchKey(origin: Bank.origin, challenge: "bank-pin-challenge", credential: "bank-pin")
            ])
    }

    @Test("a closed latch withholds the credential, even after a restart")
    func latched() async throws {
        let first = LoginRig(.challenged() + [Self.answered.challenging(["PinCodeAttempts": [:]])])
        _ = await first.lose(try Bank.login())
        // Another client, as after a restart, sees the challenge first.
        let latch = try #require(first.latches.all.first)
        let second = LoginRig(.challenged())
        await second.latches.close(try Bank.pin().key, for: .bankPIN, latch)
        let failure = await second.lose(try Bank.login())
        #expect(failure.code == .latched)
        #expect(failure.detail.contains("2026-11-21 16:00:00 UTC"))
        #expect(failure.detail.contains("countersign unlatch bank-pin-challenge"))
    }

    @Test("a changed credential opens the latch")
    func changed() async throws {
        let rig = LoginRig(.challenged() + .granted)
        let old = Credential(name: "bank-pin", fields: ["pin": Secret("9999")])
        await rig.latches.close(try Bank.pin().key, for: old, Latch(reason: .rejected, closedAt: 0))
        _ = try await rig.logIn(try Bank.login())
    }

    @Test("if one of two checks is latched, nothing is sent for either")
    func oneOfTwo() async throws {
        let rig = LoginRig(
            .challenged(["PinCodeAttempts": ["remainingAttempts": 3], "UserLogin": [:]]), credentials: [.bankPIN, .ann])
        await rig.latches.close(
            try Bank.user().key, for: .ann, Latch(reason: .rejected, closedAt: 0, opensAt: LoginRig.now + 5))
        let failure = await rig.lose(try Bank.login([Bank.pin(), Bank.user()]))
        #expect(failure.code == .latched && failure.challenge == "bank-user" && failure.retryAt == LoginRig.now + 5)
    }

    @Test("of two answers to checks only the one that is challenged again is latched")
    func oneOfTwoWrong() async throws {
        let both = ScriptedStep.preauthorize(answers: [
            "PinCodeAttempts": ["pin": "1234"],
            "UserLogin": ["username": "ann-u", "password": "pass\"word", "rememberMe": true],
        ])
        let rig = LoginRig(
            .challenged(["PinCodeAttempts": [:], "UserLogin": [:]]) + [
                both.challenging(["UserLogin": [:]], successes: ["PinCodeAttempts": [:]])
            ],
            credentials: [.bankPIN, .ann])
        #expect(await rig.lose(try Bank.login([Bank.pin(), Bank.user()])).challenge == "bank-user")
        #expect(rig.latches.keys == [try Bank.user().key])
    }

    @Test("a server that counts one attempt and forgets at once is not asked twice: fresh 401 with the full count")
    func defaultConfiguration() async throws {
        let challenge: JSONValue = ["PinCodeAttempts": ["remainingAttempts": 1]]
        let rig = LoginRig(.challenged(challenge) + [Self.answered.challenging(challenge)])
        #expect(await rig.lose(try Bank.login([Bank.pin(keepAttempts: 0)])).code == .rejected)
        #expect(rig.latches.all.count == 1)
    }

    @Test(
        "a check's failure after the answer is a rejection, or a lock if its text says so",
        arguments: [
            (["failure": "Account blocked"], .accountLocked, .locked),
            (["message": ["Your user is LOCKED."]], .accountLocked, .locked),
            (["failure": "no"], .rejected, .rejected), (nil, .rejected, .rejected),
            (["clock": "clock"], .rejected, .rejected),
        ] as [(JSONValue, LoginFailure.Code, Latch.Reason)])
    func failureAfterAnswer(failure: JSONValue, code: LoginFailure.Code, reason: Latch.Reason) async throws {
        let rig = LoginRig(.challenged() + [Self.answered.failing(["PinCodeAttempts": failure])])
        #expect(await rig.lose(try Bank.login()).code == code)
        #expect(rig.latches.all == [Latch(reason: reason, closedAt: LoginRig.now)])
    }

    @Test("a failure of another check says nothing about the answer given")
    func failureOfAnother() async throws {
        let rig = LoginRig(.challenged() + [Self.answered.failing(["UserLogin": ["failure": "Account blocked"]])])
        let failure = await rig.lose(try Bank.login())
        #expect(failure.code == .accountLocked && rig.latches.all.isEmpty)
    }

    @Test("of two failed checks the one that was answered decides")
    func twoFailures() async throws {
        let failures: JSONValue = ["AnotherCheck": ["failure": "x"], "PinCodeAttempts": ["failure": "x", "extra": 1]]
        let rig = LoginRig(.challenged() + [Self.answered.failing(failures)])
        #expect(await rig.lose(try Bank.login()).code == .rejected)
        #expect(rig.latches.all.count == 1)
    }

    @Test("a check blocked before any answer is reported, latches nothing, and nothing is looked up")
    func blocked() async throws {
        let step = ScriptedStep.preauthorize().failing(
            ["PinCodeAttempts": ["failure": "Account blocked"]], [.retryAfter: "60"])
        let rig = LoginRig([.register, step])
        let failure = await rig.lose(try Bank.login())
        #expect(failure.code == .accountLocked && failure.challenge == "bank-pin-challenge")
        #expect(failure.retryAt == LoginRig.now + 60_000)
        #expect(rig.latches.all.isEmpty && rig.credentials.count == 0)
    }

    @Test("status 222 means 403, as with web clients")
    func status222() async throws {
        let step = ScriptedStep.preauthorize().replying(222, [:], #"{"failures":{"PinCodeAttempts":{}}}"#)
        #expect(await LoginRig([.register, step]).lose(try Bank.login()).code == .accountLocked)
    }

    @Test("a disabled application is reported with the administrator's words, on one line")
    func applicationDisabled() async throws {
        let step = ScriptedStep.preauthorize().failing([
            "wl_remoteDisableRealm": ["message": "Use\nthe new one", "downloadLink": "http://x"]
        ])
        let failure = await LoginRig([.register, step]).lose(try Bank.login())
        #expect(failure.code == .failed && failure.detail.contains("Use the new one"))
    }
}

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
        #expect(rig.latches.all.map(\.reason) == [.rejected] && rig.latches.all.first?.opensAt == nil)
        // The script has ended: another request would fail the test.
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
