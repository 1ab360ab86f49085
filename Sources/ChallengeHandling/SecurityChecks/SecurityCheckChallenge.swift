// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A challenge of a security check, as its handler meets it.
public struct SecurityCheckChallenge: Sendable {
    /// What became of the answer that was given earlier in this conversation.
    public enum PreviousAnswer: Sendable, Equatable {
        /// It was accepted; the check challenges anew all the same.
        case accepted
        /// None was given.
        case notGiven
        /// It was wrong. Whatever credential it was made of is latched by now; the failure says so, for a handler that
        /// has no other answer to throw.
        case rejected(LoginFailure)
    }

    /// How many answers the server says it will still look at.
    public enum RemainingAttempts: Sendable, Equatable {
        /// So many.
        case count(Int64)
        /// It says nothing.
        case unknown
        /// It says something that is no number.
        case unreadable
    }

    /// The security check's name.
    public let securityCheck: String
    /// Whatever the check's `createChallenge()` returned: an object, often empty, or `null`.
    public let value: JSONValue
    /// What became of the answer that was given earlier in this conversation.
    public let previousAnswer: PreviousAnswer
    /// The world, as the conversation has it.
    public let conversation: Conversation

    /// A challenge.
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

/// The only ways out of a challenge, besides throwing.
public enum ChallengeAnswer: Sendable {
    /// Nothing is sent, also not for the other checks challenged together; the login fails with this reason, which
    /// callers see: one sentence without secrets.
    case cancel(reason: String)
    /// This is sent. With the credential that it was made of, a rejection closes that credential's latch.
    case submitChallengeAnswer(SecretJSON, from: CredentialUse? = nil)

    /// This is sent; it was made of no stored credential, so nothing latches.
    public static func submitChallengeAnswer(_ answer: JSONValue) -> ChallengeAnswer {
        .submitChallengeAnswer(SecretJSON(answer), from: nil)
    }
}
