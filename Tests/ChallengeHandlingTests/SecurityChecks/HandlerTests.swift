// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import TestSupport
import Testing

@Suite("Security-check challenge handlers")
struct HandlerTests {
    private static func again(_ pin: String) -> ScriptedStep {
        .preauthorize(answers: ["PinCodeAttempts": ["pin": .string(pin)]])
    }

    @Test("a handler is called again on a wrong answer, and told of the success")
    func calledAgain() async throws {
        let handler = RecordingHandler("PinCodeAttempts") { challenge in
            .submitChallengeAnswer(challenge.previousAnswer == .notGiven ? ["pin": "0"] : ["pin": "1"])
        }
        let world = World(
            .challenged() + [
                Self.again("0").challenging(["PinCodeAttempts": ["remainingAttempts": 2]]), Self.again("1"),
                .authorization,
                .token,
            ])
        _ = try await world.win(try Bank.login([handler]))
        #expect(handler.told == ["challenge", "challenge", "success"])
        #expect(world.latches.all.isEmpty)
    }

    @Test("the latch is closed before the handler hears of the rejection")
    func latchFirst() async throws {
        let world = World(.challenged() + [Self.again("1234").challenging(["PinCodeAttempts": [:]])])
        let key = try Bank.pin().key
        let handler = RecordingHandler("PinCodeAttempts") { challenge in
            guard case .rejected(let failure) = challenge.previousAnswer else {
                let use = try await CredentialUse.look(up: key, in: challenge.conversation)
                return .submitChallengeAnswer(SecretJSON(["pin": "1234"]), from: use)
            }
            #expect(world.latches.keys == [key])
            throw failure
        }
        #expect(await world.lose(try Bank.login([handler])).code == .rejected)
        #expect(handler.told == ["challenge", "challenge"])
    }

    @Test("a handler cannot send a latched credential, even if it does not look")
    func careless() async throws {
        let use = CredentialUse(key: try Bank.pin().key, credential: .bankPIN)
        let world = World(.challenged() + [Self.again("1234").challenging(["PinCodeAttempts": [:]])])
        let handler = RecordingHandler("PinCodeAttempts") { _ in
            .submitChallengeAnswer(SecretJSON(["pin": "1234"]), from: use)
        }
        #expect(await world.lose(try Bank.login([handler])).code == .latched)
        #expect(world.requests.sent.count == 3)
    }

    @Test("cancelling sends nothing for any check")
    func cancel() async throws {
        let cancelling = RecordingHandler("UserLogin") { _ in .cancel(reason: "Nobody is there.") }
        let world = World(.challenged(["PinCodeAttempts": [:], "UserLogin": [:]]))
        let failure = await world.lose(try Bank.login([Bank.pin(), cancelling]))
        #expect(
            failure
                == LoginFailure(.failed, challenge: "UserLogin", detail: "Nobody is there.", isCancelled: true))
    }

    @Test("another error ends the login, and what it holds is not told")
    func otherError() async throws {
        struct Leak: Error { let pin = "1234" }
        let handler = RecordingHandler("PinCodeAttempts") { _ in throw Leak() }
        let failure = await World(.challenged()).lose(try Bank.login([handler]))
        #expect(failure.code == .failed && failure.detail.contains("Leak"))
    }

    @Test("a failure is told to the handler, after the latch")
    func failure() async throws {
        let handler = RecordingHandler("PinCodeAttempts") { _ in .submitChallengeAnswer(["pin": "0"]) }
        let world = World(
            .challenged() + [Self.again("0").failing(["PinCodeAttempts": ["failure": "Account blocked"]])])
        let failure = await world.lose(try Bank.login([handler]))
        #expect(failure.code == .accountLocked && failure.challenge == "PinCodeAttempts")
        #expect(handler.told == ["challenge", "failure"])
        #expect(world.latches.all.isEmpty)
    }

    @Test("a credential that was accepted and is asked for again at once is neither sent nor latched")
    func acceptedAndAsked() async throws {
        let world = World(
            .challenged() + [
                Self.again("1234").challenging(["UserLogin": [:]], successes: ["PinCodeAttempts": [:]]),
                .preauthorize(answers: [
                    "UserLogin": ["username": "ann-u", "password": "pass\"word", "rememberMe": true]
                ]).challenging(["PinCodeAttempts": [:]], successes: ["UserLogin": [:]]),
            ], credentials: [.bankPIN, .ann])
        let failure = await world.lose(try Bank.login([Bank.pin(), Bank.user()]))
        #expect(failure.code == .failed && world.latches.all.isEmpty)
    }

    @Test("of two handlers for one check the first counts")
    func first() async throws {
        let second = RecordingHandler("PinCodeAttempts") { _ in .cancel(reason: "not me") }
        let world = World(.challenged() + .granted)
        _ = try await world.win(try Bank.login([Bank.pin(), second]))
        #expect(second.told.isEmpty)
    }
}
