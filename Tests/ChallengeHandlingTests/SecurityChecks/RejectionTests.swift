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
        let world = World(.challenged() + [Self.answered.challenging(hint)])
        let failure = await world.lose(try Bank.login())
        #expect(failure.code == .rejected && failure.challenge == "bank-pin-challenge")
        #expect(failure.detail.contains("countersign unlatch bank-pin-challenge"))
        #expect(world.latches.all == [Latch(reason: .rejected, closedAt: World.now)])
        #expect(
            world.latches.keys == [
                LatchKey(origin: Bank.origin, challenge: "bank-pin-challenge", credential: "bank-pin")
            ])
    }

    @Test("a closed latch keeps the credential at home, also after a restart")
    func latched() async throws {
        let first = World(.challenged() + [Self.answered.challenging(["PinCodeAttempts": [:]])])
        _ = await first.lose(try Bank.login())
        // Another client, as after a restart, sees the challenge first.
        let latch = try #require(first.latches.all.first)
        let second = World(.challenged())
        second.latches.close(try Bank.pin().key, for: .bankPIN, latch)
        let failure = await second.lose(try Bank.login())
        #expect(failure.code == .latched)
        #expect(failure.detail.contains("2026-11-21 16:00:00 UTC"))
        #expect(failure.detail.contains("countersign unlatch bank-pin-challenge"))
    }

    @Test("a changed credential opens the latch")
    func changed() async throws {
        let world = World(.challenged() + .granted)
        let old = Credential(name: "bank-pin", fields: ["pin": Secret("9999")])
        world.latches.close(try Bank.pin().key, for: old, Latch(reason: .rejected, closedAt: 0))
        _ = try await world.win(try Bank.login())
    }

    @Test("where one of two checks is latched, nothing is sent for either")
    func oneOfTwo() async throws {
        let world = World(
            .challenged(["PinCodeAttempts": ["remainingAttempts": 3], "UserLogin": [:]]), credentials: [.bankPIN, .ann])
        world.latches.close(
            try Bank.user().key, for: .ann, Latch(reason: .rejected, closedAt: 0, opensAt: World.now + 5))
        let failure = await world.lose(try Bank.login([Bank.pin(), Bank.user()]))
        #expect(failure.code == .latched && failure.challenge == "bank-user" && failure.retryAt == World.now + 5)
    }

    @Test("of two answers only the one that is challenged again is latched")
    func oneOfTwoWrong() async throws {
        let both = ScriptedStep.preauthorize(answers: [
            "PinCodeAttempts": ["pin": "1234"],
            "UserLogin": ["username": "ann-u", "password": "pass\"word", "rememberMe": true],
        ])
        let world = World(
            .challenged(["PinCodeAttempts": [:], "UserLogin": [:]]) + [
                both.challenging(["UserLogin": [:]], successes: ["PinCodeAttempts": [:]])
            ],
            credentials: [.bankPIN, .ann])
        #expect(await world.lose(try Bank.login([Bank.pin(), Bank.user()])).challenge == "bank-user")
        #expect(world.latches.keys == [try Bank.user().key])
    }

    @Test("a server that counts one attempt and forgets at once is not asked twice: fresh 401 with the full count")
    func defaultConfiguration() async throws {
        let challenge: JSONValue = ["PinCodeAttempts": ["remainingAttempts": 1]]
        let world = World(.challenged(challenge) + [Self.answered.challenging(challenge)])
        #expect(await world.lose(try Bank.login([Bank.pin(keepAttempts: 0)])).code == .rejected)
        #expect(world.latches.all.count == 1)
    }

    @Test(
        "a failure after the answer is a rejection, or a lock where its text says so",
        arguments: [
            (["failure": "Account blocked"], .accountLocked, .locked),
            (["message": ["Your user is LOCKED."]], .accountLocked, .locked),
            (["failure": "no"], .rejected, .rejected), (nil, .rejected, .rejected),
            (["clock": "clock"], .rejected, .rejected),
        ] as [(JSONValue, LoginFailure.Code, Latch.Reason)])
    func failureAfterAnswer(failure: JSONValue, code: LoginFailure.Code, reason: Latch.Reason) async throws {
        let world = World(.challenged() + [Self.answered.failing(["PinCodeAttempts": failure])])
        #expect(await world.lose(try Bank.login()).code == code)
        #expect(world.latches.all == [Latch(reason: reason, closedAt: World.now)])
    }

    @Test("a failure of another check says nothing about the answer given")
    func failureOfAnother() async throws {
        let world = World(.challenged() + [Self.answered.failing(["UserLogin": ["failure": "Account blocked"]])])
        let failure = await world.lose(try Bank.login())
        #expect(failure.code == .accountLocked && world.latches.all.isEmpty)
    }

    @Test("of two failures the one that was answered decides")
    func twoFailures() async throws {
        let failures: JSONValue = ["AnotherCheck": ["failure": "x"], "PinCodeAttempts": ["failure": "x", "extra": 1]]
        let world = World(.challenged() + [Self.answered.failing(failures)])
        #expect(await world.lose(try Bank.login()).code == .rejected)
        #expect(world.latches.all.count == 1)
    }

    @Test("a block before any answer is told, latches nothing, and nothing is looked up")
    func blocked() async throws {
        let step = ScriptedStep.preauthorize().failing(
            ["PinCodeAttempts": ["failure": "Account blocked"]], [.retryAfter: "60"])
        let world = World([.register, step])
        let failure = await world.lose(try Bank.login())
        #expect(failure.code == .accountLocked && failure.challenge == "bank-pin-challenge")
        #expect(failure.retryAt == World.now + 60_000)
        #expect(world.latches.all.isEmpty && world.credentials.count == 0)
    }

    @Test("status 222 stands for 403, as with web clients")
    func status222() async throws {
        let step = ScriptedStep.preauthorize().replying(222, [:], #"{"failures":{"PinCodeAttempts":{}}}"#)
        #expect(await World([.register, step]).lose(try Bank.login()).code == .accountLocked)
    }

    @Test("an application that was disabled is told with the administrator's words, on one line")
    func applicationDisabled() async throws {
        let step = ScriptedStep.preauthorize().failing([
            "wl_remoteDisableRealm": ["message": "Use\nthe new one", "downloadLink": "http://x"]
        ])
        let failure = await World([.register, step]).lose(try Bank.login())
        #expect(failure.code == .failed && failure.detail.contains("Use the new one"))
    }
}
