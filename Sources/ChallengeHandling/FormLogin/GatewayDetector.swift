// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Finds a gateway's login page among the responses of an upstream.
///
/// Fields, status and redirect are judged at once. The body is asked for only where one of the signs is in it and the rest
/// of them is there: for responses that can be a page, in practice `text/html`.
public struct GatewayDetector: ChallengeDetector {
    /// What tells the login page; any of them.
    public let signs: [ResponseMatcher]
    /// For `explain`.
    public let kind: String
    /// Those that one of the signs could be in.
    public let filter: ResponseFilter

    /// A detector for what `rules` detect; `kind` names the gateway.
    public init(_ rules: GatewayRules, kind: String = "gateway") {
        signs = rules.detect
        filter = ResponseFilter(signs)
        self.kind = kind
    }

    /// A login page, a redirect to it, or neither. Whether the request carried the session does not matter: where the page
    /// is, the session is not (any more).
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        var look = ResponseLook(response)
        return switch look.matchAny(signs) {
        case .matches: .challenged()
        case .needsBody: .needsBody
        case .doesNot: .pass
        }
    }
}
