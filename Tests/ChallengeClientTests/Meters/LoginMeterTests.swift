// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@testable import ChallengeClient

@Suite("Counted logins")
struct LoginMeterTests {
    private struct Nobody: LoginObserver {
        func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
        func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
        func loginEnded(
            _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
        ) {}
    }

    private let meter = LoginMeter(next: Nobody())
    private let key = SessionKey(origin: Origin(scheme: .https, host: "a"), challenge: "corp", credential: "ann")
    private let field = InjectedField(name: .authorization, value: Secret("x"))
    private let rejected = LoginFailure(.rejected, challenge: "corp", detail: "")

    private var unverified: Session {
        let latch = LatchKey(origin: key.origin, challenge: "corp", credential: "ann")
        return Session(
            unverified: CredentialUse(key: latch, credential: Credential(name: "ann", fields: [:])), fields: [field])
    }

    private func run(_ result: Result<Session, LoginFailure>, steps: Int = 1) {
        meter.loginBegan(key, LoginCause(.request))
        for _ in 0..<steps { meter.loginStepped(key, ConversationStep(challenge: "corp", text: "step")) }
        meter.loginEnded(key, result, LoginCause(.request), after: .zero)
    }

    /// The counts by outcome; a session that was established is "succeeded".
    private var counts: [String: UInt64] {
        Dictionary(
            meter.reading.counts.map { ($0.key.failure?.rawValue ?? "succeeded", $0.value) },
            uniquingKeysWith: { $0 + $1 })
    }

    @Test("an unverified session counts as a login when a server accepts it, and once")
    func accepted() {
        run(.success(unverified), steps: 0)
        #expect(counts.isEmpty)
        meter.sessionAccepted(key)
        meter.sessionAccepted(key)
        #expect(counts == ["succeeded": 1])
    }

    @Test("an unverified session that is refused counts as a rejection, and never as a login")
    func refused() {
        run(.success(unverified), steps: 0)
        meter.loginEnded(key, .failure(rejected), LoginCause(.request), after: .zero)
        #expect(counts == ["login-rejected": 1])
        // That of a session which served before is no login.
        meter.loginEnded(key, .failure(rejected), LoginCause(.request), after: .zero)
        #expect(counts == ["login-rejected": 1])
    }

    @Test("a login that was asked for nothing, and fixed fields, count neither as success nor as failure")
    func nothingAsked() {
        run(.success(Session()))
        run(.success(Session(fields: [field])), steps: 0)
        #expect(counts.isEmpty)
        run(.success(Session(fields: [field])))
        run(.failure(rejected))
        #expect(counts == ["succeeded": 1, "login-rejected": 1])
    }
}
