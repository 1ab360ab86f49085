// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a response means to one login.
public enum ChallengeVerdict: Sendable, Equatable {
    /// It asks for this login's session, or for a new one in the place of that which the request carried.
    case challenge
    /// MobileFirst asks to send the same again.
    case conflict
    /// The session is good and lacks these scope words.
    case insufficientScope([String])
    /// Ask again with the beginning of the body.
    case needsBody
    /// None of this login's concerns.
    case notAChallenge
    /// The session that the request carried was refused, and another login would only send the same credential in the
    /// same way again.
    case refused
    /// The session that the request carried was right and is too old: a new one may be won, and nothing speaks against
    /// the credential (`stale` of Digest, RFC 7616 §3.3).
    case stale
}

/// Looks at responses for the challenge that one login answers. Without I/O.
public protocol ChallengeDetector: Sendable {
    /// What it answers, in a word or two, for `explain`.
    var kind: String { get }
    /// Whether it is shown responses of any status, rather than those with 401, 403 and 409 only.
    var looksAtPages: Bool { get }
    /// What `response` means. `hasSession`: the request carried this login's session.
    func examine(_ response: ExaminedResponse, hasSession: Bool) -> ChallengeVerdict
}

extension ChallengeDetector {
    /// Most challenges have a status of their own.
    public var looksAtPages: Bool { false }
}
