// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl

/// What libcurl's result means, for an exchange and for a side request alike.
private enum TransferFault {
    case protocolError(String)
    case timedOut(String)
    case tls
    case unreachable(String)

    init(_ error: CurlError) {
        switch error {
        case .couldNotResolveHost: self = .unreachable("its name cannot be resolved")
        case .couldNotResolveProxy: self = .unreachable("the name of the proxy on the way cannot be resolved")
        case .couldNotConnect: self = .unreachable("it refuses the connection, or nothing listens there")
        case .operationTimedOut: self = .timedOut("no connection came about in time")
        case .gotNothing: self = .unreachable("it closed the connection without an answer")
        case .partialFile: self = .unreachable("the connection was lost in the middle of the answer")
        case .receiveError, .sendError, .sendFailRewind, .abortedByCallback:
            self = .unreachable("the connection was lost before the answer was complete")
        case .weirdServerReply, .unsupportedProtocol, .http2, .http2Stream, .writeError:
            self = .protocolError("its answer is not HTTP as the standard has it")
        case .sslConnectError, .peerFailedVerification, .sslCertificateProblem, .sslCAFile, .sslIssuerError,
            .sslPinnedKeyMismatch, .sslCipher, .sslInvalidCertificateStatus, .sslClientCertificate:
            self = .tls
        default: self = .unreachable("the transfer failed")
        }
    }
}

extension ExchangeError {
    init(_ error: CurlError, upstream plan: UpstreamPlan, cause: String = "") {
        let cause = cause.isEmpty ? error.description : cause
        switch TransferFault(error) {
        case .protocolError(let reason):
            self.init(.upstreamProtocol, detail: "Upstream \(plan.name): \(reason).", cause: cause)
        case .timedOut(let reason):
            self.init(.upstreamTimeout, detail: "Upstream \(plan.name): \(reason).", cause: cause)
        case .tls:
            self.init(
                .upstreamTLS,
                detail: """
                    Upstream \(plan.name): the TLS handshake failed (name, expiry, authority or key of the certificate). \
                    The daemon's log has the reason; `tls` of the upstream sets what is trusted.
                    """,
                cause: cause)
        case .unreachable(let reason):
            self.init(
                .upstreamUnreachable,
                detail: "Upstream \(plan.name) cannot be reached: \(reason). The request was not sent again.",
                cause: cause)
        }
    }

    /// The exchange's deadline passed.
    static func deadline(of plan: UpstreamPlan, isWaiting: Bool) -> ExchangeError {
        if isWaiting {
            return ExchangeError(
                .loginTimeout,
                detail: """
                    The login at upstream \(plan.name) took longer than \(plan.timeouts.response) \
                    (`timeouts.response`). It goes on; try again shortly.
                    """)
        }
        return ExchangeError(
            .upstreamTimeout,
            detail: "Upstream \(plan.name) sent no answer within its time limit (`timeouts.response`, `timeouts.idle`)."
        )
    }
}

extension SideRequestError {
    init(_ error: CurlError, origin: Origin, text: String) {
        let text = text.isEmpty ? error.description : text
        switch TransferFault(error) {
        case .protocolError(let reason): self.init(.badAnswer, reason: "\(origin): \(reason) (\(text))")
        case .timedOut: self.init(.timedOut, reason: "\(origin) did not answer in time (\(text))")
        case .tls: self.init(.tls, reason: "\(origin): the TLS handshake failed (\(text))")
        case .unreachable(let reason): self.init(.unreachable, reason: "\(origin): \(reason) (\(text))")
        }
    }
}
