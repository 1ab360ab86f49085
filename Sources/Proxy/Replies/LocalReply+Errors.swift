// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
internal import ChallengeHandling
package import HTTPWire

// The one place that maps errors to replies.
extension LocalReply {
    /// The reply for an exchange that brought no response. `now` in milliseconds since 1970.
    package init(_ error: ExchangeError, upstream: String, now: Int64) {
        var members = ["upstream": upstream]
        var retryAfter: Int64?
        let code: Code
        switch error.kind {
        case .bodyNotReplayable: code = .bodyNotReplayable
        case .callerGone: code = .badRequest
        case .callerNotAllowed: code = .callerNotAllowed
        case .login(let failure):
            members["challenge"] = failure.challenge
            // Rounded up: a caller that obeys must not come a moment too early.
            retryAfter = failure.retryAt.map { max(1, $0.saturatingSubtract(now).saturatingAdd(999) / 1000) }
            self.init(
                Code(failure), detail: failure.detail, retryAfter: retryAfter, members: members)
            return
        case .loginTimeout: code = .loginTimeout
        case .overloaded:
            code = .overloaded
            retryAfter = 1
        case .upstreamProtocol: code = .upstreamProtocol
        case .upstreamTLS: code = .upstreamTLS
        case .upstreamTimeout: code = .upstreamTimeout
        case .upstreamUnreachable: code = .upstreamUnreachable
        }
        self.init(code, detail: error.detail, retryAfter: retryAfter, members: members, proxyError: error.proxyError)
    }

    /// The reply for a request that breaks a rule of HTTP.
    package init(_ error: WireError) {
        self.init(
            .badRequest, status: error.status,
            detail: "\(error.detail) The program that sent the request has to be mended.")
    }
}

extension LocalReply {
    /// The drain is over before the exchange was.
    static let cutOffByDrain = LocalReply(
        .draining,
        detail:
            "The daemon stops, and this exchange was not over in the time for that. The request may have "
            + "reached the upstream: send it again where that does no harm, once the daemon serves again.",
        retryAfter: 1)
}
