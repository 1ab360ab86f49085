// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import Testing

@testable import ChallengeClient

@Suite("Logins whose last one ended at a latch")
struct ClosedLatchTests {
    private static let origin = Origin(scheme: .https, host: "bank.example")
    private static let key = SessionKey(origin: origin, challenge: "bank", credential: "", scope: "accounts")
    private static let latch = LatchKey(origin: origin, challenge: "bank-pin", credential: "pin")

    /// Asks the server for a challenge, and has its answer 9999 rejected.
    private final class Login: SessionLogin {
        private let asked = Atomic<Int>(0)

        var questions: Int { asked.load(ordering: .relaxed) }

        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            asked.wrappingAdd(1, ordering: .relaxed)
            let use = try await CredentialUse.lookUp(latch, in: conversation)
            if use.credential["pin"] == Secret("9999") {
                throw await use.reject(.rejected, serverWait: nil, in: conversation)
            }
            return Session()
        }
    }

    private final class PIN: CredentialProvider {
        let value = Mutex("9999")

        func credential(named name: String) async throws(CredentialError) -> Credential? {
            Credential(name: name, fields: ["pin": Secret(value.withLock { $0 })])
        }
    }

    private struct Silence: LoginObserver {
        func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
        func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
        func loginEnded(
            _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
        ) {}
    }

    private let login = Login()
    private let pin = PIN()
    private let services: ClientServices

    init() {
        services = ClientServices(
            gate: SharedAttemptGate(now: { 1_000 }), credentials: pin, state: MemoryState(), wallClock: { 1_000 },
            observer: Silence())
    }

    private func run() async -> LoginFailure.Code? {
        let (result, _) = await services.run(login, for: Self.key, sideRequests: NoSideRequests())
        _ = services.gate.finish(Self.key, with: result)
        if case .failure(let failure) = result { return failure.code }
        return nil
    }

    @Test("as long as the latch is closed the server is not even asked; a changed credential has it asked again")
    func notAsked() async {
        #expect(await run() == .rejected)
        for _ in 0..<3 { #expect(await run() == .latched) }
        #expect(login.questions == 1)
        pin.value.withLock { $0 = "1234" }
        #expect(await run() == nil)
        #expect(login.questions == 2)
    }

    @Test("an operator who opens the latch has the server asked again")
    func unlatched() async {
        #expect(await run() == .rejected)
        #expect(services.gate.unlatch("bank-pin") == 1)
        #expect(await run() == .rejected)
        #expect(login.questions == 2)
    }
}
