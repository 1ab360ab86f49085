// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Logging

/// Logs each login once, at its end; its steps only for who asked for `debug`.
struct LoginLog: LoginObserver {
    let logger: Logger

    func loginBegan(_ key: SessionKey, isRenewal: Bool) {
        logger.debug("login begins", metadata: metadata(key, ["renewal": "\(isRenewal)"]))
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        logger.debug("login step", metadata: metadata(key, ["step": "\(step.text)"]))
    }

    func loginEnded(_ key: SessionKey, _ result: Result<Session, LoginFailure>, after duration: Duration) {
        // Fields that need no challenge are looked up every few seconds: no news.
        let milliseconds = duration / .milliseconds(1)
        let took: Logger.Metadata = ["took_ms": "\(Int(milliseconds))"]
        switch result {
        case .success:
            logger.info("login won", metadata: metadata(key, took))
        case .failure(let failure):
            let level: Logger.Level = failure.code == .latched ? .info : .warning
            logger.log(
                level: level, "login failed",
                metadata: metadata(
                    key,
                    took.merging(["code": "\(failure.code.rawValue)", "reason": "\(failure.detail)"]) { $1 }))
        }
    }

    func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) {
        guard let failure else {
            logger.info("logged out", metadata: metadata(key, [:]))
            return
        }
        logger.warning("logout failed", metadata: metadata(key, ["reason": "\(failure.detail)"]))
    }

    private func metadata(_ key: SessionKey, _ more: Logger.Metadata) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["challenge": "\(key.challenge)"]
        if !key.credential.isEmpty { metadata["credential"] = "\(key.credential)" }
        if !key.scope.isEmpty { metadata["scope"] = "\(key.scope)" }
        return metadata.merging(more) { $1 }
    }
}
