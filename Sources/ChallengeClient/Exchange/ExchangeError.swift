// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Curl
internal import HTTPWire

/// The reason why an exchange ends without the upstream's response.
///
/// Holds the problem and its remedy. The proxy turns it into a local reply in one place, and into a log level in
/// another.
package struct ExchangeError: Error, Sendable, Equatable {
    /// The kinds of errors.
    package enum Kind: Sendable, Equatable {
        /// A challenge came for a request whose body is no longer held.
        case bodyNotReplayable
        /// The caller went away; no reply is sent.
        case callerGone
        /// The needed session is not available to this caller.
        case callerNotAllowed
        /// The login that the exchange waited for failed.
        case login(LoginFailure)
        /// The login did not end before the exchange's deadline.
        case loginTimeout
        /// Too many exchanges wait, or too many run.
        case overloaded
        /// The request has no single place for a value of a credential.
        case requestUnfit
        /// The upstream's answer is not valid HTTP (RFC 9112).
        case upstreamProtocol
        /// The TLS handshake with the upstream failed.
        case upstreamTLS
        /// The final response head did not come in time.
        case upstreamTimeout
        /// No connection to the upstream, or lost before the head.
        case upstreamUnreachable
    }

    /// The kind.
    package var kind: Kind
    /// One or two sentences for the caller: the problem and its remedy. Refers to the upstream only by its configured
    /// name.
    package var detail: String
    /// Additional text for the operator's log, such as libcurl's own. Never a secret.
    package var cause: String
    /// The error type of RFC 9209 §2.3, if more exact than the kind's.
    package var proxyError: String?

    /// Creates an error.
    package init(_ kind: Kind, detail: String, cause: String = "") {
        self.kind = kind
        self.detail = detail
        self.cause = cause
    }

    /// A challenge that came too late.
    package static let bodyNotReplayable = ExchangeError(
        .bodyNotReplayable,
        detail: """
            The upstream asked for a login after more of the request's body had gone by than is kept for sending it \
            again. Send the request again in a moment: the session is being established meanwhile. To allow longer \
            bodies, raise `replay` of the upstream, and `limits.replay` if many are under way at once.
            """)

    /// No slot left for another waiter.
    static let tooManyWaiters = ExchangeError(
        .overloaded,
        detail: "Too many requests wait for a login. Try again shortly; `limits.waiters` sets their number.")

    /// Each session of the request ended while a connection for it was made.
    static let outrun = ExchangeError(
        .overloaded,
        detail: """
            Other requests replaced the session of this one each time before it could be sent, so nothing of it was \
            sent. Send it again; if that recurs, send fewer requests at once.
            """)

    /// The part of the body on disk cannot be read back.
    static let bodyLost = ExchangeError(
        .bodyNotReplayable,
        detail: """
            The request was to be sent again after a login, and the part of its body that was kept on disk could not \
            be read back. Send the request again; the daemon's log has the reason.
            """)

    /// libcurl reported a complete answer without a head, which HTTP does not allow.
    static let answerWithoutHead = ExchangeError(
        .upstreamProtocol,
        detail: """
            The upstream ended its answer before it began, or in the middle of its head. It may have crashed: check \
            its log.
            """)

    /// Creates the error for an `aws-chunked` body that cannot be decoded.
    init(_ fault: AWSChunkDecoder.Fault) {
        self.init(
            .requestUnfit,
            detail: fault == .length
                ? "The data in the `aws-chunked` body is not as long as x-amz-decoded-content-length says. Send the request again."
                : "The `aws-chunked` body is not made of chunks. Check the client, or have it send the body as it is.")
    }

    /// Returns the error for an auth request that would need more than fields.
    static func onlyFields(_ challenge: String) -> ExchangeError {
        ExchangeError(
            LoginFailure(
                .failed, challenge: challenge,
                detail: """
                    A challenge with `inject` puts values into queries, paths or bodies here, but the other proxy sends the \
                    request, and only fields reach it. Use an ordinary listener for such requests.
                    """))
    }

    /// Returns the error for a session of `login` that was over before it could be used.
    static func expiredAtOnce(_ login: String) -> ExchangeError {
        ExchangeError(
            LoginFailure(
                .failed, challenge: login,
                detail: """
                    The login \(login) established a session that has expired already. Check the clocks of this machine and \
                    the server.
                    """))
    }

    /// Returns the error for a server that failed to authenticate itself (RFC 4559 §5).
    static func unverified(by fault: String, of plan: UpstreamPlan) -> ExchangeError {
        ExchangeError(
            .upstreamProtocol,
            detail: """
                The upstream \(plan.name) answered, but could not prove that it is the server that was asked, so its answer \
                was not passed on. The request may have been carried out. Someone may intercept the connection, or the \
                server's key differs from the KDC's.
                """, cause: fault)
    }

    /// Creates the error for a failed login.
    init(_ failure: LoginFailure) {
        self.init(failure.code == .bodyTooLong ? .bodyNotReplayable : .login(failure), detail: failure.detail)
    }
}

extension ExchangeError {
    /// Creates the error for a failed transfer.
    init(_ failure: TransferFailure, upstream plan: UpstreamPlan) {
        let meaning = FailureMeaning(failure)
        let (kind, words): (Kind, String) =
            switch meaning.kind {
            case .protocolError: (.upstreamProtocol, ": \(meaning.words).")
            case .timedOut: (.upstreamTimeout, ": \(meaning.words).")
            case .tls: (.upstreamTLS, ": the TLS handshake failed: \(meaning.words).")
            case .unreachable where meaning.isUnsent: (.upstreamUnreachable, " cannot be reached: \(meaning.words).")
            case .unreachable:
                (
                    .upstreamUnreachable,
                    ": \(meaning.words). Whether it took the request is not known, so it was not sent again."
                )
            }
        let advice = meaning.remedy.isEmpty ? "" : " \(meaning.remedy)."
        self.init(kind, detail: "Upstream \(plan.name)\(words)\(advice)", cause: failure.cause)
        proxyError = meaning.proxyError
    }

    /// Creates the error for an answer that breaks a rule.
    init(_ fault: WireError, upstream plan: UpstreamPlan) {
        self.init(
            .upstreamProtocol,
            detail:
                "Upstream \(plan.name) sent a response that cannot be passed on: \(fault.detail) It has to be fixed there.",
            cause: fault.code.rawValue)
    }

    /// Creates the error for a transfer that could not be started.
    init(_ error: CurlError, upstream plan: UpstreamPlan) {
        self.init(TransferFailure(error), upstream: plan)
    }

    /// Returns the error for secrets that would leave this machine unencrypted.
    static func plaintext(of plan: UpstreamPlan) -> ExchangeError {
        let detail = """
            Secrets for upstream \(plan.name) would be sent to another machine in the clear, so nothing was sent: use \
            https://, or set `plaintext: allow`.
            """
        return ExchangeError(LoginFailure(.failed, challenge: plan.name, detail: detail))
    }

    /// Returns the error for an exchange whose time limit has passed.
    static func deadline(of plan: UpstreamPlan, isWaiting: Bool) -> ExchangeError {
        if isWaiting {
            return ExchangeError(
                .loginTimeout,
                detail: """
                    The login at upstream \(plan.name) took longer than \(plan.timeouts.login) (`timeouts.login`). Try again \
                    shortly, check what delays it, or raise the limit.
                    """)
        }
        return ExchangeError(
            .upstreamTimeout,
            detail: """
                Upstream \(plan.name) sent no answer within its time limit. Check what delays it, or raise the limit \
                (`timeouts.response`, `timeouts.idle`).
                """
        )
    }
}
