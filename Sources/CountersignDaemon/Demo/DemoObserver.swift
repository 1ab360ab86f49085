// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling

/// A line per conversation on the demo's terminal.
struct DemoObserver: LoginObserver {
    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        Process.say("proxy: login at \(key.challenge) begins\(cause.isRenewal ? " ahead of the session's end" : "")")
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        Process.say("proxy: \(step.text)")
    }

    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        let milliseconds = Int(duration / .milliseconds(1))
        switch result {
        case .success(let session):
            let made = session.isProven ? "won a session" : "made a session, which the next request tries,"
            Process.say("proxy: login at \(key.challenge) \(made) in \(milliseconds) ms")
        case .failure(let failure):
            Process.say("proxy: login at \(key.challenge): \(failure.code.rawValue): \(failure.detail)")
        }
    }
}
