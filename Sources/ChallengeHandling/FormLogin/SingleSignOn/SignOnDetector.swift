// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Detector of an upstream's demand for single sign-on.
///
/// A redirect to a provider is the challenge, with any method of the request: the upstream has executed nothing. A form
/// that submits itself there is one as well, and so is a 401, with which upstreams answer programs.
package struct SignOnDetector: ChallengeDetector {
    /// The name that `explain` shows.
    package let kind: String
    /// Filter of redirects, pages, and all responses that the gateway's own matchers need.
    package let filter: ResponseFilter
    private let route: SignOnRoute
    private let gateway: GatewayDetector

    /// Creates a detector for `route` and for the matchers of `rules`.
    package init(_ route: SignOnRoute, _ rules: GatewayRules, kind: String) {
        self.route = route
        self.kind = kind
        gateway = GatewayDetector(rules, kind: kind)
        filter = gateway.filter.union(ResponseFilter([Self.redirect, Self.request]))
    }

    /// Returns a challenge for a response that leads to a provider.
    package func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard !route.providers.isEmpty else { return .pass }
        if response.status == 401 || route.redirectToProvider(in: response) != nil { return .challenged() }
        if !(300...399).contains(response.status) {
            // A browser shows no page of a redirect.
            var inspection = ResponseInspection(response)
            switch inspection.match(Self.request) {
            case .matches: if route.leadsToProvider(response) { return .challenged() }
            case .needsBody: return .needsBody
            case .doesNot: break
            }
        }
        return gateway.examine(response, hasSession: hasSession)
    }

    /// Returns true if a page of the gateway, or one that leads to a provider, may be behind the response.
    package func mayConceal(_ response: ExaminedResponse) -> Bool {
        guard !route.providers.isEmpty else { return false }
        return gateway.mayConceal(response) || ResponseInspection(response).mayConceal([Self.request])
    }

    private static let redirect = ResponseMatcher(statuses: [301, 302, 303, 307, 308])
    /// A page with a form of SAML's POST binding.
    private static let request = ResponseMatcher(formFields: ["SAMLRequest"])
}
