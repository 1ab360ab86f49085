// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// The attempt gate as logins use it: asked before a value is sent, and informed once of the outcome.
///
/// A value is the current content of a credential, which the gate identifies by digests only.
public protocol AttemptControl: Sendable {
    /// Returns the reason why the value of `use` must not be sent at `now`; `nil` if it may.
    ///
    /// `remaining` is the number of attempts that the server states, and `keeping` the number that must never be used.
    func refusal(
        of use: CredentialUse, remaining: SecurityCheckChallenge.RemainingAttempts, keeping: Int, now: Int64
    ) -> AttemptRefusal?
    /// Records the outcome of sending the value of `use`.
    ///
    /// The outcome counts at once, and is on disk before the call returns, if it can be stored.
    func record(_ outcome: AttemptOutcome, of use: CredentialUse) async
    /// Returns the reason why a value that no server has accepted waits, after a submission without a clear outcome.
    func pause(of use: CredentialUse, now: Int64) -> AttemptRefusal?
    /// Counts a submission of the value of `use` at `now` (ms since 1970), unless a server has accepted the value before.
    ///
    /// Called before the value is sent, and with `isSent: false` if it certainly was not. The count is on disk before the call
    /// returns, if it can be stored: a process that dies before the answer has spent a submission.
    func recordSubmission(of use: CredentialUse, isSent: Bool, now: Int64) async
    /// Returns the forms with which values of the credential of that name were accepted, the oldest first.
    func acceptedForms(ofCredential name: String) -> [(key: LatchKey, form: AcceptedForm)]
    /// Returns the acceptance of the value of `use`; `nil` if no server is known to have accepted it.
    func acceptance(of use: CredentialUse) -> Acceptance?
    /// Uses the step of a one-time password that ends at `end`, or only asks if `isUsed` is false.
    ///
    /// Returns the end of the last used step if it is not before `end`: the step must not be used then. Times are in ms since 1970.
    /// The used step is on disk before the call returns, if it can be stored.
    func use(code seed: String, stepEnding end: Int64, isUsed: Bool, now: Int64) async -> Int64?
    /// Returns the reason why an answer from no stored credential must not be sent; `nil` if it may.
    func refusal(of answer: Secret, to challenge: String) -> AttemptRefusal?
    /// Records the outcome of an answer from no stored credential.
    ///
    /// `address` accepted the answer; `nil` if the answer was rejected.
    func record(_ answer: Secret, to challenge: String, acceptedAt address: WebURL?)
    /// Returns the address at which the server last accepted `answer`; `nil` if it was never accepted.
    func address(accepting answer: Secret, to challenge: String) -> WebURL?
}

extension AttemptControl {
    /// Returns the reason why the value of `use` must not be sent at `now`; `nil` if it may.
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
    /// The server accepted the value.
    case accepted(Acceptance)
    /// The server refused the request for a reason that may not concern the value; the next refusal counts.
    case forbidden
    /// The server rejected the value, so this latch closes.
    case rejected(Latch)
}

/// The digests that identify a credential's value.
public struct AttemptDigests: Sendable, Equatable {
    /// The digest of this node, by its `AttemptStore`.
    public var own: [UInt8]
    /// The digests with the shared keys of the nodes, the current key first; empty if nothing is shared.
    public var shared: [String]

    /// Creates digests.
    public init(own: [UInt8], shared: [String] = []) {
        self.own = own
        self.shared = shared
    }
}
