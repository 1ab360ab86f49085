// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A challenge of a security check for its handler.
public struct SecurityCheckChallenge: Sendable {
    /// Outcome of the previous answer in this conversation.
    public enum PreviousAnswer: Sendable, Equatable {
        /// The answer was accepted, but the check challenges again.
        case accepted
        /// No answer was given.
        case notGiven
        /// The answer was wrong. Its credential is latched by now, as the failure shows; a handler without another
        /// answer can throw it.
        case rejected(LoginFailure)
    }

    /// Number of answers that the server still accepts.
    public enum RemainingAttempts: Sendable, Equatable {
        /// The number.
        case count(Int64)
        /// The server states no number.
        case unknown
        /// The server's value is not a number.
        case unreadable
    }

    /// The security check's name.
    public let securityCheck: String
    /// The value that the check's `createChallenge()` returned: an object, often empty, or `null`.
    public let value: JSONValue
    /// The outcome of the previous answer in this conversation.
    public let previousAnswer: PreviousAnswer
    /// The conversation's ports.
    public let conversation: Conversation

    /// Creates a challenge.
    public init(
        securityCheck: String, value: JSONValue, previousAnswer: PreviousAnswer = .notGiven, conversation: Conversation
    ) {
        self.securityCheck = securityCheck
        self.value = value
        self.previousAnswer = previousAnswer
        self.conversation = conversation
    }

    /// The member `remainingAttempts`, a convention of IBM's samples and not part of the protocol.
    public var remainingAttempts: RemainingAttempts {
        switch value["remainingAttempts"] {
        case nil, .null: .unknown
        case .some(let member): member.integerValue.map { .count($0) } ?? .unreadable
        }
    }
}

/// Result of a handler, besides an error.
public enum ChallengeAnswer: Sendable {
    /// Nothing is sent, not even for the other checks challenged together. The login fails with this reason, which
    /// callers see: one sentence without secrets.
    case cancel(reason: String)
    /// The answer to send. With its credential, a rejection closes that credential's latch.
    case submitChallengeAnswer(SecretJSON, from: CredentialUse? = nil)

    /// Returns an answer made without a stored credential, so that no latch closes.
    public static func submitChallengeAnswer(_ answer: JSONValue) -> ChallengeAnswer {
        .submitChallengeAnswer(SecretJSON(answer), from: nil)
    }
}

/// Handler of the challenges of one security check.
///
/// The names are those of MobileFirst. In contrast, a handler *returns* its answer, so every challenge ends in an
/// answer, a cancellation or an error, and cannot be forgotten.
public protocol SecurityCheckChallengeHandler: Sendable {
    /// The name of the security check at the server, compared case-sensitively.
    var securityCheck: String { get }
    /// The name that messages and failures use; by default the security check's.
    var challengeName: String { get }
    /// The latch of answers made from a stored credential; by default nil. While the latch is closed, a login that
    /// ended there sends nothing to the server.
    var latchKey: LatchKey? { get }

    /// Answers `challenge`. The handler is called again in the conversation if its answer was wrong. Nothing is sent
    /// before the handlers of all checks challenged together have answered.
    ///
    /// Throws a `LoginFailure` to end the conversation with it; any other error ends it as `login-failed`.
    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer
    /// Receives the check's success; `success` is the server's data, often `{}`.
    func handleSuccess(_ success: JSONValue) async
    /// Receives the check's final failure; `failure` is the server's data.
    func handleFailure(_ failure: JSONValue) async
}

extension SecurityCheckChallengeHandler {
    /// The security check's name.
    public var challengeName: String { securityCheck }
    /// No latch.
    public var latchKey: LatchKey? { nil }
    /// Does nothing by default.
    public func handleSuccess(_ success: JSONValue) async {}
    /// Does nothing by default.
    public func handleFailure(_ failure: JSONValue) async {}
}
