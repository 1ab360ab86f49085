// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Logging
import Secrets
import TestSupport
import Testing

@testable import CountersignDaemon

@Suite("Logins in the log")
struct LoginLogTests {
    private struct Handler: LogHandler {
        let lines: Notes
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let outcome = event.metadata?["outcome"].map { "\($0)" } ?? ""
            lines.add("\(event.level): \(event.message) (\(outcome))")
        }
    }

    private let lines = Notes()
    private let key = SessionKey(origin: Origin(scheme: .https, host: "a"), challenge: "corp", credential: "ann")
    private let field = InjectedField(name: .authorization, value: Secret("x"))

    private func log(isAuditing: Bool) -> LoginLog {
        let lines = lines
        let logger = Logger(label: "x") { _ in Handler(lines: lines) }
        return LoginLog(logger: logger, auditor: logger, isAuditing: isAuditing)
    }

    private func run(_ log: LoginLog, _ result: Result<Session, LoginFailure>, steps: Int) {
        log.loginBegan(key, LoginCause(.request))
        for _ in 0..<steps { log.loginStepped(key, ConversationStep(challenge: "corp", text: "step")) }
        log.loginEnded(key, result, LoginCause(.request), after: .zero)
    }

    private func failure(_ code: LoginFailure.Code) -> Result<Session, LoginFailure> {
        .failure(LoginFailure(code, challenge: "corp", detail: ""))
    }

    @Test("a login that failed is a warning, audited or not", arguments: [true, false])
    func warnings(isAuditing: Bool) {
        for code in [.rejected, .latched, .noCredential, .failed, .accountLocked] as [LoginFailure.Code] {
            run(log(isAuditing: isAuditing), failure(code), steps: 1)
            #expect(lines.all.last == "warning: login failed (\(code.rawValue))")
        }
    }

    @Test("of requests that meet a closed latch the first is logged, the others are counted")
    func repetitions() {
        let log = log(isAuditing: true)
        for _ in 0..<20 { run(log, failure(.latched), steps: 0) }
        #expect(lines.all == ["warning: login failed (login-latched)"])
    }

    @Test("a login is logged as succeeded once, when the server has accepted something")
    func succeeded() {
        let log = log(isAuditing: true)
        let latch = LatchKey(origin: key.origin, challenge: "corp", credential: "ann")
        let use = CredentialUse(key: latch, credential: Credential(name: "ann", fields: [:]))
        run(log, .success(Session(unverified: use, fields: [field])), steps: 0)
        #expect(lines.all.isEmpty)
        log.sessionAccepted(key)
        log.sessionAccepted(key)
        #expect(lines.all == ["notice: login succeeded (succeeded)"])
        run(log, .success(Session(unverified: use, fields: [field])), steps: 0)
        log.loginEnded(
            key, failure(.rejected), LoginCause(.request), after: .zero)
        log.sessionAccepted(key)
        #expect(lines.all.dropFirst() == ["warning: login failed (login-rejected)"])
    }

    @Test("a login without a challenge to answer is logged once")
    func nothingAsked() {
        let log = log(isAuditing: false)
        run(log, .success(Session()), steps: 1)
        run(log, .success(Session()), steps: 1)
        #expect(lines.all == ["info: login without a challenge to answer (not-asked)"])
    }
}
