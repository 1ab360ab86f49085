// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
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

@Suite("Outcomes that say nothing about a credential")
struct UnknownOutcomeTests {
    @Test(
        "a lost answer to a security check latches nothing",
        arguments: [
            (.timedOut, .timedOut), (.unreachable, .failed), (.tls, .upstreamTLS), (.badAnswer, .failed),
            (.originNotAllowed, .failed),
        ] as [(SideRequestError.Kind, LoginFailure.Code)])
    func lost(kind: SideRequestError.Kind, code: LoginFailure.Code) async throws {
        let step = RejectionTests.answered.replying(.failure(SideRequestError(kind, reason: "as the test says")))
        let rig = LoginRig(.challenged() + [step])
        let failure = await rig.lose(try Bank.login())
        #expect(failure.code == code && failure.isUnknown && rig.latches.all.isEmpty)
        #expect(!failure.detail.contains("as the test says"))
        #expect(rig.steps.contains { $0.contains("as the test says") })
    }

    @Test(
        "the reason of a failed connection is reported as far as a caller may know",
        arguments: [SideRequestError.Kind.tls, .unreachable])
    func told(kind: SideRequestError.Kind) async throws {
        let lost = SideRequestError(kind, reason: "for the log", publicReason: "its certificate has expired")
        let failure = await LoginRig(.challenged() + [RejectionTests.answered.replying(.failure(lost))]).lose(
            try Bank.login())
        #expect(failure.detail.hasSuffix(": its certificate has expired."))
        #expect(!failure.detail.contains("for the log"))
    }

    @Test(
        "a server in trouble latches nothing, and its Retry-After is obeyed",
        arguments: [
            (500, nil, nil), (503, "120", LoginRig.now + 120_000),
            (429, "Sat, 21 Nov 2026 16:01:00 GMT", LoginRig.now + 60_000),
            (408, nil, nil), (503, "soon", nil), (200, nil, nil), (302, nil, nil),
        ] as [(Int, String?, Int64?)])
    func trouble(status: Int, wait: String?, retryAt: Int64?) async throws {
        let fields: HTTPFields = wait.map { [.retryAfter: $0] } ?? [:]
        let rig = LoginRig(.challenged() + [RejectionTests.answered.replying(status, fields, "<html>1234</html>")])
        let failure = await rig.lose(try Bank.login())
        #expect(failure.isUnknown && failure.retryAt == retryAt && rig.latches.all.isEmpty)
    }

    @Test("after a lost answer the next conversation asks first, and does not use the last attempt")
    func afterwards() async throws {
        let client = try Bank.client()
        let lost = RejectionTests.answered.replying(.failure(SideRequestError(.timedOut, reason: "")))
        let first = LoginRig(.challenged(["PinCodeAttempts": ["remainingAttempts": 2]]) + [lost])
        _ = await first.lose(client.login(scope: ["PinCodeAttempts"], handlers: [try Bank.pin()]))
        let second = LoginRig([.preauthorize().challenging(["PinCodeAttempts": ["remainingAttempts": 1]])])
        let failure = await second.lose(client.login(scope: ["PinCodeAttempts"], handlers: [try Bank.pin()]))
        #expect(failure.code == .attemptsKept)
    }

    @Test(
        "the last attempts of a security check are not used",
        arguments: [
            (3, 1, true), (2, 1, true), (1, 1, false), (0, 1, false), (-1, 1, false), ("1", 1, false), ("2", 1, true),
            (2, 2, false), (1, 0, true), (0, 0, false), (nil, 5, true), ("many", 1, false), (.double(1.5), 1, false),
            (true, 0, true),
        ] as [(JSONValue, Int, Bool)])
    func keepAttempts(remaining: JSONValue, kept: Int, isSent: Bool) async throws {
        let rig = LoginRig(
            .challenged(["PinCodeAttempts": ["remainingAttempts": remaining]]) + (isSent ? .granted : []))
        let login = try Bank.login([Bank.pin(keepAttempts: kept)])
        if isSent {
            _ = try await rig.logIn(login)
        } else {
            let failure = await rig.lose(login)
            #expect(failure.code == .attemptsKept && failure.detail.contains("keep-attempts"))
            #expect(rig.latches.all.isEmpty)
        }
    }

    @Test("without a credential or one of its fields no answer is sent")
    func noCredential() async throws {
        let none = LoginRig(.challenged(), credentials: [])
        let failure = await none.lose(try Bank.login())
        #expect(failure.code == .noCredential && failure.detail.contains("\"bank-pin\""))

        let lacking = LoginRig(
            .challenged(), credentials: [Credential(name: "bank-pin", fields: ["key": Secret("s3cret")])])
        #expect(await lacking.lose(try Bank.login()).code == .noCredential)
    }

    @Test("a source that cannot be read says nothing about the credential")
    func unreadableSource() async throws {
        let rig = LoginRig(.challenged())
        let conversation = Conversation(
            sideRequests: rig.requests,
            credentials: Credentials([], failure: CredentialError(reason: "the keyring is locked")),
            attempts: rig.latches, state: rig.store, now: { LoginRig.now })
        let error = await #expect(throws: LoginFailure.self) { try await Bank.login().logIn(conversation) }
        #expect(error?.code == .failed && error?.detail == "the keyring is locked")
    }
}
