// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The use that a latch is closed for: one challenge's use of one credential at one origin.
public struct LatchKey: Sendable, Hashable {
    /// The upstream's origin.
    public var origin: Origin
    /// The name of the challenge in the configuration.
    public var challenge: String
    /// The name of the credential.
    public var credential: String

    /// A key.
    public init(origin: Origin, challenge: String, credential: String) {
        self.origin = origin
        self.challenge = challenge
        self.credential = credential
    }
}

/// "This credential was rejected: do not send it again."
public struct Latch: Sendable, Equatable {
    /// The reason why it closed.
    public enum Reason: String, Sendable {
        /// The server locked the account or blocked the check.
        case locked
        /// The server rejected the value.
        case rejected
    }

    /// The reason why it closed.
    public var reason: Reason
    /// The time at which it closed, in milliseconds since 1970.
    public var closedAt: Int64
    /// The time at which it opens by itself, in milliseconds since 1970; `nil`: only by a changed credential or an operator.
    public var opensAt: Int64?

    /// A latch.
    public init(reason: Reason, closedAt: Int64, opensAt: Int64? = nil) {
        self.reason = reason
        self.closedAt = closedAt
        self.opensAt = opensAt
    }

    /// True if it has not opened by itself at `now` (milliseconds since 1970).
    func isClosed(at now: Int64) -> Bool { opensAt.map { $0 > now } ?? true }
}

/// The mark of a value that a server has accepted: a refusal at some address does not reject it by itself.
public struct Acceptance: Sendable, Equatable {
    /// The longest path that is kept, in bytes.
    public static let longestPath = 1024

    /// The path of a request that was accepted with the value, without a query. `nil` if none is known, or if it is too long.
    public var path: String?
    /// True if that request was challenged without the value: an open address takes anything.
    public var wasAsked: Bool
    /// The time of the acceptance, in milliseconds since 1970.
    public var at: Int64

    /// A mark.
    public init(path: String?, at: Int64, wasAsked: Bool = true) {
        self.wasAsked = wasAsked
        self.path = path.flatMap { $0.utf8.count <= Self.longestPath ? $0 : nil }
        self.at = at
    }
}
