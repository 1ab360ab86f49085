// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// Why an exchange ends without the upstream's response.
///
/// It carries what happened and what to do; one place in the gateway turns it into a local reply, one into a log level.
package struct ExchangeError: Error, Sendable, Equatable {
    /// The kinds.
    package enum Kind: Sendable, Equatable {
        /// A challenge came for a request whose body is no longer held.
        case bodyNotReplayable
        /// The caller went away; nobody is left to be told.
        case callerGone
        /// A session is needed that is not for this caller.
        case callerNotAllowed
        /// The login that the exchange waited for failed.
        case login(LoginFailure)
        /// The login did not end before the exchange's deadline.
        case loginTimeout
        /// Too many exchanges wait, or too many run.
        case overloaded
        /// The upstream answered with something that is not HTTP as RFC 9112 has it.
        case upstreamProtocol
        /// The TLS handshake with the upstream failed.
        case upstreamTLS
        /// The final response head did not come in time.
        case upstreamTimeout
        /// No connection to the upstream, or it was lost before the head.
        case upstreamUnreachable
    }

    /// The kind.
    package var kind: Kind
    /// One or two sentences for the caller: what happened and what to do. Names the upstream by its name only.
    package var detail: String
    /// What the operator learns beyond that (libcurl's own words), for the log. Never a secret.
    package var cause: String
    /// The error type of RFC 9209 §2.3, where it is known better than by the kind.
    package var proxyError: String?

    /// An error.
    package init(_ kind: Kind, detail: String, cause: String = "") {
        self.kind = kind
        self.detail = detail
        self.cause = cause
    }

    /// A challenge came too late.
    package static let bodyNotReplayable = ExchangeError(
        .bodyNotReplayable,
        detail: """
            The upstream asked for a login after more of the request's body had gone by than is kept for sending it \
            again. Send the request again in a moment: the session is being won meanwhile. To have longer bodies kept, \
            raise `replay` of the upstream, and `limits.replay` where many are under way at once.
            """)

    /// No place is left among those who wait for logins.
    static let tooManyWaiters = ExchangeError(
        .overloaded,
        detail: "Too many requests wait for a login. Try again shortly; `limits.waiters` sets their number.")

    /// What was kept of the body on disk cannot be read back.
    static let bodyLost = ExchangeError(
        .bodyNotReplayable,
        detail: """
            The request was to be sent again after a login, and the part of its body that was kept on disk could not \
            be read back. Send the request again; the daemon's log has the reason.
            """)

    /// libcurl said that the answer is done, and no head came: nothing that HTTP allows.
    static let answerWithoutHead = ExchangeError(
        .upstreamProtocol,
        detail: """
            The upstream ended its answer before it began, or in the middle of its head. It may have failed while it worked: \
            look into its log.
            """)

    /// The server's proof of who it is proves something else (RFC 4559 §5).
    static func unproven(by fault: String, of plan: UpstreamPlan) -> ExchangeError {
        ExchangeError(
            .upstreamProtocol,
            detail: """
                The upstream \(plan.name) answered, but could not prove that it is the server that was asked, so its answer \
                was not passed on. The request may have been carried out. Somebody may stand in between, or the server has \
                another key than the KDC has for it.
                """, cause: fault)
    }

    /// The login that the exchange waited for failed.
    init(_ failure: LoginFailure) {
        self.init(.login(failure), detail: failure.detail)
    }
}
