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

    @Test("a handler is called again after a wrong answer, and notified of the success")
    func calledAgain() async throws {
        let handler = RecordingHandler("PinCodeAttempts") { challenge in
            .submitChallengeAnswer(challenge.previousAnswer == .notGiven ? ["pin": "0"] : ["pin": "1"])
        }
        let rig = LoginRig(
            .challenged() + [
                Self.again("0").challenging(["PinCodeAttempts": ["remainingAttempts": 2]]), Self.again("1"),
                .authorization,
                .token,
            ])
        _ = try await rig.logIn(try Bank.login([handler]))
        #expect(handler.told == ["challenge", "challenge", "success"])
        #expect(rig.latches.all.isEmpty)
    }

    @Test("the latch is closed before the handler is notified of the rejection")
    func latchFirst() async throws {
        let rig = LoginRig(.challenged() + [Self.again("1234").challenging(["PinCodeAttempts": [:]])])
        let key = try Bank.pin().key
        let handler = RecordingHandler("PinCodeAttempts") { challenge in
            guard case .rejected(let failure) = challenge.previousAnswer else {
                let use = try await CredentialUse.lookUp(key, in: challenge.conversation)
                return .submitChallengeAnswer(SecretJSON(["pin": "1234"]), from: use)
            }
            #expect(rig.latches.keys == [key])
            throw failure
        }
        #expect(await rig.lose(try Bank.login([handler])).code == .rejected)
        #expect(handler.told == ["challenge", "challenge"])
    }

    @Test("a handler cannot send a latched credential, even if it does not check the latch")
    func careless() async throws {
        let use = CredentialUse(key: try Bank.pin().key, credential: .bankPIN)
        let rig = LoginRig(.challenged() + [Self.again("1234").challenging(["PinCodeAttempts": [:]])])
        let handler = RecordingHandler("PinCodeAttempts") { _ in
            .submitChallengeAnswer(SecretJSON(["pin": "1234"]), from: use)
        }
        #expect(await rig.lose(try Bank.login([handler])).code == .latched)
        #expect(rig.requests.sent.count == 3)
    }

    @Test("cancelling one security check sends nothing for any")
    func cancel() async throws {
        let cancelling = RecordingHandler("UserLogin") { _ in .cancel(reason: "Nobody is there.") }
        let rig = LoginRig(.challenged(["PinCodeAttempts": [:], "UserLogin": [:]]))
        let failure = await rig.lose(try Bank.login([Bank.pin(), cancelling]))
        #expect(
            failure
                == LoginFailure(.failed, challenge: "UserLogin", detail: "Nobody is there.", isCancelled: true))
    }

    @Test("another error of a handler ends the login, and its text is not disclosed")
    func otherError() async throws {
        struct Leak: Error { let pin = "1234" }
        let handler = RecordingHandler("PinCodeAttempts") { _ in throw Leak() }
        let failure = await LoginRig(.challenged()).lose(try Bank.login([handler]))
        #expect(failure.code == .failed && failure.detail.contains("Leak"))
    }

    @Test("a handler is notified of a failure after the latch is closed")
    func failure() async throws {
        let handler = RecordingHandler("PinCodeAttempts") { _ in .submitChallengeAnswer(["pin": "0"]) }
        let rig = LoginRig(
            .challenged() + [Self.again("0").failing(["PinCodeAttempts": ["failure": "Account blocked"]])])
        let failure = await rig.lose(try Bank.login([handler]))
        #expect(failure.code == .accountLocked && failure.challenge == "PinCodeAttempts")
        #expect(handler.told == ["challenge", "failure"])
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a credential that was accepted and is asked for again at once is neither sent nor latched")
    func acceptedAndAsked() async throws {
        let rig = LoginRig(
            .challenged() + [
                Self.again("1234").challenging(["UserLogin": [:]], successes: ["PinCodeAttempts": [:]]),
                .preauthorize(answers: [
                    "UserLogin": ["username": "ann-u", "password": "pass\"word", "rememberMe": true]
                ]).challenging(["PinCodeAttempts": [:]], successes: ["UserLogin": [:]]),
            ], credentials: [.bankPIN, .ann])
        let failure = await rig.lose(try Bank.login([Bank.pin(), Bank.user()]))
        #expect(failure.code == .failed && rig.latches.all.isEmpty)
    }

    @Test("of two handlers for one security check the first counts")
    func first() async throws {
        let second = RecordingHandler("PinCodeAttempts") { _ in .cancel(reason: "not me") }
        let rig = LoginRig(.challenged() + .granted)
        _ = try await rig.logIn(try Bank.login([Bank.pin(), second]))
        #expect(second.told.isEmpty)
    }
}
