// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Looks at responses for the challenge that one login answers. Without I/O.
public protocol ChallengeDetector: Sendable {
    /// What it answers, in a word or two, for `explain`.
    var kind: String { get }
    /// The responses that it is shown.
    var filter: ResponseFilter { get }
    /// What `response` asks of the login. `hasSession`: the request carried this login's session.
    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge
}

extension ChallengeDetector {
    /// Most challenges have a status of their own.
    public var filter: ResponseFilter { .statusesOfChallenges }
}
