// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Answers the challenges of one security check.
///
/// The names are those of MobileFirst. What differs: a handler *returns* its answer, so that every challenge ends in an
/// answer, a cancellation or an error, and none can be forgotten.
public protocol SecurityCheckChallengeHandler: Sendable {
    /// The name of the security check at the server, compared to the letter.
    var securityCheck: String { get }
    /// The name that messages and failures use; by default the security check's.
    var challengeName: String { get }
    /// The latch that guards the answers, where they are made of a stored credential; by default none. While it is
    /// closed, a login that ended at it does not trouble the server again.
    var latchKey: LatchKey? { get }

    /// Answers `challenge`. Called again in the same conversation when the answer was wrong. Nothing is sent before the
    /// handlers of all checks challenged together have answered.
    ///
    /// Throws a `LoginFailure` to end the conversation with it; any other error ends it as `login-failed`.
    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer
    /// The check succeeded; `success` is what the server tells of it, often `{}`.
    func handleSuccess(_ success: JSONValue) async
    /// The check failed for good; `failure` is what the server tells of it.
    func handleFailure(_ failure: JSONValue) async
}

extension SecurityCheckChallengeHandler {
    /// The security check's name.
    public var challengeName: String { securityCheck }
    /// None.
    public var latchKey: LatchKey? { nil }
    /// Does nothing.
    public func handleSuccess(_ success: JSONValue) async {}
    /// Does nothing.
    public func handleFailure(_ failure: JSONValue) async {}
}
