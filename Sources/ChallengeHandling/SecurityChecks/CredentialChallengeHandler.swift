// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Handler that answers a security check with a stored credential (`security-check`, `credential`, `answer`,
/// `keep-attempts`).
///
/// It answers at most once in a conversation, never with a value that was rejected before, and never with the last
/// attempts.
public struct CredentialChallengeHandler: SecurityCheckChallengeHandler {
    /// The number of attempts that are kept unused by default.
    public static let standardKeptAttempts = 1

    /// The security check's name.
    public let securityCheck: String
    /// The challenge, the credential, and the upstream's origin.
    public let key: LatchKey
    /// The template of the answer.
    public let answer: AnswerTemplate
    /// The number of attempts that are never used, if the server states how many remain.
    public let keepAttempts: Int
    /// Time after which a latch closed by a rejection opens by itself; `nil` if it never does.
    public let retryRejectedAfter: Duration?

    /// Creates a handler.
    public init(
        securityCheck: String, key: LatchKey, answer: AnswerTemplate, keepAttempts: Int = standardKeptAttempts,
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

    /// Returns the answer, made of the current credential. Throws a `LoginFailure` if it must not or cannot be sent.
    public func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        try requireFirstAnswer(challenge)
        let conversation = challenge.conversation
        let use = try await CredentialUse.lookUp(key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        let refusal = conversation.attempts.refusal(
            of: use, remaining: challenge.remainingAttempts, keeping: keepAttempts, now: conversation.now())
        if let refusal { throw use.failure(of: refusal) }
        do {
            return .submitChallengeAnswer(try await answer.render(use.credential), from: use)
        } catch {
            throw error.loginFailure(challenge: key.challenge)
        }
    }

    /// Throws if an answer was given before: sending the value again could only use up another attempt.
    private func requireFirstAnswer(_ challenge: SecurityCheckChallenge) throws(LoginFailure) {
        switch challenge.previousAnswer {
        case .notGiven:
            return
        case .accepted:
            throw LoginFailure(
                .failed, challenge: key.challenge,
                detail:
                    "The server accepted the credential \"\(key.credential)\" and asked for it again at once. "
                    + "The credential was not sent twice.")
        case .rejected(let failure):
            throw failure
        }
    }
}
