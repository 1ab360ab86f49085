// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

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
