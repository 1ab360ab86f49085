// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Key of a latch: one challenge's use of one credential at one origin.
public struct LatchKey: Sendable, Hashable {
    /// Origin of the upstream.
    public var origin: Origin
    /// Name of the challenge in the configuration.
    public var challenge: String
    /// Name of the credential.
    public var credential: String

    /// Creates a key.
    public init(origin: Origin, challenge: String, credential: String) {
        self.origin = origin
        self.challenge = challenge
        self.credential = credential
    }
}

/// Record that a credential was rejected and must not be sent again.
public struct Latch: Sendable, Equatable {
    /// Reason for closing.
    public enum Reason: String, Sendable {
        /// The server locked the account or blocked the check.
        case locked
        /// The server rejected the value.
        case rejected
    }

    /// Reason for closing.
    public var reason: Reason
    /// Time of closing in ms since 1970.
    public var closedAt: Int64
    /// Time of opening in ms since 1970; nil if only a changed credential or an operator opens the latch.
    public var opensAt: Int64?
    /// Statement that decided, as a part of a sentence: "it is the login page again". Empty if unknown.
    public var evidence: String

    /// Creates a latch.
    public init(reason: Reason, closedAt: Int64, opensAt: Int64? = nil, evidence: String = "") {
        self.evidence = evidence
        self.reason = reason
        self.closedAt = closedAt
        self.opensAt = opensAt
    }

    /// True if the latch is still closed at `now`, in ms since 1970.
    func isClosed(at now: Int64) -> Bool { opensAt.map { $0 > now } ?? true }
}

/// Record that a server accepted a value, so that a later refusal at some address does not reject the value.
public struct Acceptance: Sendable, Equatable {
    /// Maximum length of a stored path, in bytes.
    public static let longestPath = 1024

    /// Path of an accepted request, without a query; nil if unknown or too long.
    public var path: String?
    /// True if the request was challenged without the value, because an open address accepts anything.
    public var wasAsked: Bool
    /// Time of the acceptance in ms since 1970.
    public var at: Int64
    /// The form with which the value was accepted; nil if it was not accepted by a page's form.
    public var form: AcceptedForm?

    /// Creates a record.
    public init(path: String?, at: Int64, wasAsked: Bool = true, form: AcceptedForm? = nil) {
        self.form = form
        self.wasAsked = wasAsked
        self.path = path.flatMap { $0.utf8.count <= Self.longestPath ? $0 : nil }
        self.at = at
    }
}
