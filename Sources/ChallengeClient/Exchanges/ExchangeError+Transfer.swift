// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

extension ExchangeError {
    /// The error for a transfer that failed.
    init(_ failure: TransferFailure, upstream plan: UpstreamPlan) {
        let name = plan.name
        let advice = failure.remedy.isEmpty ? "" : " \(failure.remedy)."
        let (kind, words): (Kind, String)
        switch TransferFault(failure) {
        case .protocolError(let reason): (kind, words) = (.upstreamProtocol, ": \(reason).\(advice)")
        case .timedOut(let reason): (kind, words) = (.upstreamTimeout, ": \(reason).\(advice)")
        case .tls(let reason): (kind, words) = (.upstreamTLS, ": the TLS handshake failed: \(reason).\(advice)")
        case .unreachable(let reason) where failure.isUnsent:
            (kind, words) = (.upstreamUnreachable, " cannot be reached: \(reason).\(advice)")
        case .unreachable(let reason):
            (kind, words) = (
                .upstreamUnreachable,
                ": \(reason). Whether it took the request is not known, so it was not sent again.\(advice)"
            )
        }
        self.init(kind, detail: "Upstream \(name)\(words)", cause: failure.cause)
        proxyError = failure.proxyError
    }

    /// The upstream's answer breaks a rule.
    init(_ fault: WireError, upstream plan: UpstreamPlan) {
        self.init(
            .upstreamProtocol,
            detail:
                "Upstream \(plan.name) sent a response that cannot be passed on: \(fault.detail) It has to be mended there.",
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
                    The login at upstream \(plan.name) took longer than \(plan.timeouts.login) (`timeouts.login`). Try again \
                    shortly, look at what keeps it, or raise the limit.
                    """)
        }
        return ExchangeError(
            .upstreamTimeout,
            detail: """
                Upstream \(plan.name) sent no answer within its time limit. Look at what keeps it, or raise the limit \
                (`timeouts.response`, `timeouts.idle`).
                """
        )
    }
}
