// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Answers a security check from a stored credential, as the configuration says (`security-check`, `credential`,
/// `answer`, `keep-attempts`).
///
/// It answers at most once in a conversation, never with a value that was rejected before, and never with the last
/// attempts.
public struct CredentialChallengeHandler: SecurityCheckChallengeHandler {
    /// The security check's name.
    public let securityCheck: String
    /// The challenge, the credential, and the upstream's origin.
    public let key: LatchKey
    /// What the answer is made of.
    public let answer: AnswerTemplate
    /// So many attempts are never used, where the server tells how many remain.
    public let keepAttempts: Int
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?

    /// A handler.
    public init(
        securityCheck: String, key: LatchKey, answer: AnswerTemplate, keepAttempts: Int = 1,
        retryRejectedAfter: Duration? = nil
    ) {
        self.securityCheck = securityCheck
        self.key = key
        self.answer = answer
        self.keepAttempts = keepAttempts
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// The challenge's name in the configuration.
    public var challengeName: String { key.challenge }
    /// The latch of the credential for this challenge.
    public var latchKey: LatchKey? { key }

    /// The answer, made of the credential as it is now. Throws a `LoginFailure` where it must not or cannot be sent.
    public func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        try requireFirstAnswer(challenge)
        let conversation = challenge.conversation
        let use = try await CredentialUse.look(up: key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        let refusal = conversation.attempts.refusal(
            of: use, remaining: challenge.remainingAttempts, keeping: keepAttempts, now: conversation.now())
        if let refusal { throw refusal.failure }
        do {
            return .submitChallengeAnswer(try answer.render(use.credential), from: use)
        } catch {
            throw error.loginFailure(challenge: key.challenge)
        }
    }

    /// The same value again could only use up another attempt.
    private func requireFirstAnswer(_ challenge: SecurityCheckChallenge) throws(LoginFailure) {
        switch challenge.previousAnswer {
        case .notGiven:
            return
        case .accepted:
            throw LoginFailure(
                .failed, challenge: key.challenge,
                detail:
                    "The server accepted the credential \"\(key.credential)\" and asked for it again at once; it was "
                    + "not sent twice.")
        case .rejected(let failure):
            throw failure
        }
    }
}
