// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// The attempt gate as logins use it: asked before a value is sent, told once what came of it.
///
/// A value is what a credential holds at the moment; the gate knows it by digests alone.
public protocol AttemptControl: Sendable {
    /// Asks if the value of `use` may be sent now, by an answer of which the server says that `remaining` attempts remain and of which
    /// `keeping` are never used. Returns why not; `nil`: go.
    func refusal(
        of use: CredentialUse, remaining: SecurityCheckChallenge.RemainingAttempts, keeping: Int, now: Int64
    ) -> AttemptRefusal?
    /// Tells what came of the value of `use`. Kept durably before it returns, if that can be.
    func note(_ outcome: AttemptOutcome, of use: CredentialUse)
    /// The mark of the value of `use`; `nil` if no server is known to have accepted it.
    func acceptance(of use: CredentialUse) -> Acceptance?
    /// Uses up the step of a one-time password that ends at `end` (milliseconds since 1970); `isUsed: false` only asks. Returns the end of
    /// the last step used if that is not before it: then the step must not be used.
    func use(code seed: String, stepEnding end: Int64, isUsed: Bool, now: Int64) -> Int64?
    /// Asks if an answer that comes from no stored credential may be sent. Returns why not; `nil`: go.
    func refusal(of answer: Secret, to challenge: String) -> AttemptRefusal?
    /// Tells what came of an answer that comes from no stored credential. `address`: where the server accepted it; `nil`: it was rejected.
    func note(_ answer: Secret, to challenge: String, acceptedAt address: WebURL?)
    /// The address at which the server accepted `answer` last; `nil` if it never did.
    func address(accepting answer: Secret, to challenge: String) -> WebURL?
}

extension AttemptControl {
    /// Asks if the value of `use` may be sent now. Returns why not; `nil`: go.
    public func refusal(of use: CredentialUse, now: Int64) -> AttemptRefusal? {
        refusal(of: use, remaining: .unknown, keeping: 0, now: now)
    }

    /// Throws if `answer` was rejected before.
    package func requireNew(_ answer: Secret, to challenge: String) throws(LoginFailure) {
        if let refusal = refusal(of: answer, to: challenge) { throw refusal.failure }
    }
}

/// The outcome of an attempt.
public enum AttemptOutcome: Sendable, Equatable {
    /// The server accepted it.
    case accepted(Acceptance)
    /// The server refused it in a way that may not be about it: the next refusal counts.
    case forbidden
    /// The server rejected it: this latch closes.
    case rejected(Latch)
}

/// The digests by which a gate knows a credential's value.
public struct AttemptDigests: Sendable, Equatable {
    /// This node's, by its `AttemptStore`.
    public var own: [UInt8]
    /// Those under the keys that nodes share, the current key's first; none where nothing is shared.
    public var shared: [String]

    /// Digests.
    public init(own: [UInt8], shared: [String] = []) {
        self.own = own
        self.shared = shared
    }
}
