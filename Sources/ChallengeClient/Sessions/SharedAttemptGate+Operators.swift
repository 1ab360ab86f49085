// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

// Operators.
extension SharedAttemptGate {
    /// Returns the values that are not sent at `now` (ms since 1970).
    ///
    /// Leaves out values that were replaced according to `credentialVersions`.
    package func closed(now: Int64, replacedIn credentialVersions: CredentialVersions?) -> [ClosedLatch] {
        read { $0.closed(now: now) { credentialVersions?.isReplaced($0, of: $1) ?? false } }
    }

    /// Forgets the submissions of a challenge, or of all for `nil`, so that its values may be sent at once.
    package func renewBudget(of challenge: String?) {
        let now = now()
        _ = applyAndQueue { ((), $0.renewBudget(of: challenge, now: now)) }
    }

    /// Opens the latches of a challenge, or all for `nil`, and returns their numbers; see `AttemptGate.unlatch`.
    ///
    /// Calls `whenStored` when the change is on disk, or could not be stored.
    @discardableResult
    package func unlatch(
        _ challenge: String?, replacedIn credentialVersions: CredentialVersions? = nil,
        whenStored: @escaping @Sendable () -> Void = {}
    ) -> OpenedLatches {
        let now = now()
        let (opened, ticket) = applyAndQueue { gate -> (OpenedLatches, AttemptChange?) in
            gate.unlatch(challenge, now: now) { credentialVersions?.isReplaced($0, of: $1) ?? false }
        }
        self.whenStored(ticket, whenStored)
        return opened
    }
}
