// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

extension ExchangeError {
    /// The error for a transfer that failed.
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
