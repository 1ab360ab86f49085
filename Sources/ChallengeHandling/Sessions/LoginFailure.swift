// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Why a login won no session. Shared by all exchanges that waited for it.
public struct LoginFailure: Error, Sendable, Equatable {
    /// The kinds; the raw value is the `code` of the local reply.
    public enum Code: String, Sendable {
        /// The server says that the account or the check is locked.
        case accountLocked = "account-locked"
        /// The server tells that fewer attempts remain than are kept.
        case attemptsKept = "attempts-kept"
        /// Unknown: a time-out elsewhere, a lost connection, a 5xx, an answer that cannot be used. Nothing latches.
        case failed = "login-failed"
        /// The credential was rejected before and has not changed: nothing was sent.
        case latched = "login-latched"
        /// No source knows the credential, or it lacks a field.
        case noCredential = "no-credential"
        /// The server rejected the credential just now; the latch is closed.
        case rejected = "login-rejected"
        /// The server did not answer in time. Unknown; nothing latches.
        case timedOut = "login-timeout"
        /// The TLS handshake with the server failed. Unknown; nothing latches.
        case upstreamTLS = "upstream-tls"
    }

    /// The kind.
    public var code: Code
    /// The challenge it concerns, by its name in the configuration.
    public var challenge: String
    /// One or two sentences: what happened and what to do. No secret, nothing internal.
    public var detail: String
    /// When another try makes sense, in milliseconds since 1970, where the server said so.
    public var retryAt: Int64?
    /// What the operator learns beyond `detail`, for the log: it may name hosts and files. No secret.
    public var cause: String
    /// Whether a challenge handler chose to give no answer: then whoever comes next may try at once.
    public var isCancelled: Bool

    /// The latch at which the login ended, closed before or just now.
    public var latch: LatchKey?

    /// True if the server refuses the one scope that was asked for, and nothing is wrong with the login as such.
    public var concernsScope = false

    /// A failure.
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

    /// Whether nothing is known about the credential, so that a later try by itself does no harm.
    public var isUnknown: Bool { code == .failed || code == .timedOut || code == .upstreamTLS }
}
