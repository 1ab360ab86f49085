// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

extension ExchangeError {
    /// The error for a transfer that failed.
    init(_ failure: TransferFailure, upstream plan: UpstreamPlan) {
        let name = plan.name
        let cause = failure.cause
        switch TransferFault(failure) {
        case .protocolError(let reason):
            self.init(.upstreamProtocol, detail: "Upstream \(name): \(reason).", cause: cause)
        case .timedOut(let reason):
            self.init(.upstreamTimeout, detail: "Upstream \(name): \(reason).", cause: cause)
        case .tls(let reason):
            self.init(.upstreamTLS, detail: "Upstream \(name): the TLS handshake failed: \(reason).", cause: cause)
        case .unreachable(let reason):
            self.init(
                .upstreamUnreachable,
                detail: "Upstream \(name) cannot be reached: \(reason). The request was not sent again.", cause: cause)
        }
    }

    /// The upstream's answer breaks a rule.
    init(_ fault: WireError, upstream plan: UpstreamPlan) {
        self.init(
            .upstreamProtocol,
            detail: "The upstream \(plan.name) sent a response that cannot be passed on: \(fault.detail)",
            cause: fault.code.rawValue)
    }

    /// The error for a transfer that did not come about.
    init(_ error: CurlError, upstream plan: UpstreamPlan) {
        self.init(TransferFailure(error), upstream: plan)
    }

    /// What a session injects would leave this machine in the clear.
    static func plaintext(of plan: UpstreamPlan) -> ExchangeError {
        let detail = """
            Secrets for upstream \(plan.name) would go to another machine in the clear, so nothing was sent: use https://, or \
            say `plaintext: allow`.
            """
        return ExchangeError(LoginFailure(.failed, challenge: plan.name, detail: detail))
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
