// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reason why a login established no session, shared by all exchanges that waited.
public struct LoginFailure: Error, Sendable, Equatable {
    /// Kind of failure; the raw value is the `code` of the local reply.
    public enum Code: String, Sendable {
        /// The server reports that the account or check is locked.
        case accountLocked = "account-locked"
        /// The server reports fewer remaining attempts than are kept.
        case attemptsKept = "attempts-kept"
        /// Unknown: an internal timeout, a lost connection, a 5xx, or an unusable response. No latch closes.
        case failed = "login-failed"
        /// The credential was rejected before and has not changed, so nothing was sent.
        case latched = "login-latched"
        /// The request's body is longer than the kept part, and a signature depends on all of it.
        case bodyTooLong = "body-not-replayable"
        /// No source has the credential, or the credential lacks a field.
        case noCredential = "no-credential"
        /// The server rejected the credential just now; the latch is closed.
        case rejected = "login-rejected"
        /// The request cannot be signed.
        case unsignable = "bad-request"
        /// The server did not answer in time. Unknown; no latch closes.
        case timedOut = "login-timeout"
        /// The TLS handshake with the server failed. Unknown; no latch closes.
        case upstreamTLS = "upstream-tls"
    }

    /// Kind of failure.
    public var code: Code
    /// Name of the challenge in the configuration.
    public var challenge: String
    /// Description and remedy in one or two sentences, without secrets and internals.
    public var detail: String
    /// Earliest time of another attempt in ms since 1970, if the server named one.
    public var retryAt: Int64?
    /// Details for the operator's log, beyond `detail`; may name hosts and files, but no secret.
    public var cause: String
    /// True if a challenge handler chose not to answer: the next exchange may try at once.
    public var isCancelled: Bool

    /// Latch that stopped the login, closed before or just now.
    public var latch: LatchKey?

    /// True if the server refuses the requested scope only, and the login as such is fine.
    public var concernsScope = false

    /// True if the login found no challenge, and was started without one, or with one at an address that it must not
    /// request. Another request with a challenge may lead to a login at once.
    public var lacksChallenge = false

    /// True if nothing was sent, because the value waits after a submission without a clear outcome. Asking again costs nothing.
    package var isHeldBack = false

    /// True if the request that failed certainly did not reach the server.
    var isUnsent = false

    /// Creates a failure.
    public init(
        _ code: Code, challenge: String, detail: String, retryAt: Int64? = nil, cause: String = "",
        isCancelled: Bool = false
    ) {
        self.isCancelled = isCancelled
        self.cause = cause
        self.code = code
        self.challenge = challenge
        self.detail = detail
        self.retryAt = retryAt
    }

    /// True if the credential's state is unknown, so that a later attempt does no harm.
    public var isUnknown: Bool { code == .failed || code == .timedOut || code == .upstreamTLS }
}

extension LoginFailure {
    /// Creates the failure of a login whose request got no response; the credential's state is unknown.
    init(_ error: SideRequestError, step: String, challenge: String) {
        let reason = error.publicReason.isEmpty ? "" : ": \(error.publicReason)"
        let (code, detail): (Code, String)
        switch error.kind {
        case .guarded(let failure):
            self = failure
            isUnsent = true
            return
        case .timedOut:
            (code, detail) = (
                .timedOut,
                "The server did not answer \(step) in time. A later request tries again; check the server."
            )
        case .originNotAllowed:
            (code, detail) = (
                .failed,
                "The address for \(step) is not in the configuration, so nothing was sent. Add it there."
            )
        case .tls:
            (code, detail) = (.upstreamTLS, "The TLS handshake with the server for \(step) failed\(reason).")
        case .unreachable:
            (code, detail) = (
                .failed, "The server could not be reached for \(step), or the connection was lost\(reason)."
            )
        case .badAnswer:
            (code, detail) = (
                .failed,
                "The server's answer to \(step) is too large, or not HTTP. Check the address; the daemon's log has the cause."
            )
        }
        self.init(code, challenge: challenge, detail: detail, cause: error.reason)
        isUnsent = error.isUnsent
    }
}

extension LoginFailure {
    /// Returns the failure of a login of `challenge` that was cancelled while another one ran.
    static func cancelledInQueue(_ challenge: String) -> LoginFailure {
        LoginFailure(
            .timedOut, challenge: challenge, detail: "The login was stopped while it waited for another to end.",
            isCancelled: true)
    }

    /// Returns the failure of a login that another process has kept waiting for too long. Nothing was sent.
    package static func blockedByOtherProcess(_ challenge: String) -> LoginFailure {
        LoginFailure(
            .timedOut, challenge: challenge,
            detail: """
                Another process with the same state directory was logging in for this challenge all the time \
                (`timeouts.login`), so this login sent nothing. Check if a `countersign` process hangs; a later request tries again.
                """)
    }
}
