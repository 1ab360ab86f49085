// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reason why a request that tried a session showed nothing about its credential.
///
/// The server may have counted the request as an attempt, so the next one waits (CONTRIBUTING, rule 3: unknown).
public enum UnansweredTrial: Sendable, Equatable {
    /// The caller left before the answer.
    case abandoned
    /// The connection was lost, or the answer is unusable.
    case lost
    /// The server was unable to check the credential: 429 or 5xx. `retryAt`: its `Retry-After` in ms since 1970.
    case status(Int, retryAt: Int64? = nil)
    /// No answer came in time.
    case timedOut

    /// Returns the failure for all who ask for the session during the pause.
    func failure(of challenge: String) -> LoginFailure {
        let counted = "and the server may have counted it as an attempt"
        switch self {
        case .abandoned:
            return LoginFailure(
                .failed, challenge: challenge,
                detail: "The caller of the request that tried the credential left before the answer, \(counted). "
                    + "A later request tries again.")
        case .lost:
            return LoginFailure(
                .failed, challenge: challenge,
                detail: "The request that tried the credential got no usable answer, \(counted). "
                    + "A later request tries again; check the server.")
        case .status(let status, let retryAt):
            return LoginFailure(
                .failed, challenge: challenge,
                detail:
                    "The server answered the request that tried the credential with \(status), which does not show if "
                    + "it accepts the credential. A later request tries again; check the server.", retryAt: retryAt)
        case .timedOut:
            return LoginFailure(
                .timedOut, challenge: challenge,
                detail: "The request that tried the credential got no answer in time, \(counted). "
                    + "A later request tries again; check the server.")
        }
    }

    /// True if each further one in a row doubles the pause. Callers who leave early must not lengthen it for others.
    var doublesPause: Bool { self != .abandoned }
}
