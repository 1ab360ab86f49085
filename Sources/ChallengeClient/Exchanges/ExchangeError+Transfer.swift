// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

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

    /// The upstream's answer breaks a rule.
    init(_ fault: WireError, upstream plan: UpstreamPlan) {
        self.init(
            .upstreamProtocol,
            detail: "The upstream \(plan.name) sent a response that cannot be passed on: \(fault.detail)",
            cause: fault.code.rawValue)
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
