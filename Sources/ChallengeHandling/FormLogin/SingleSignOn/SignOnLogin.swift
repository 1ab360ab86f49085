// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Login at an identity provider for an upstream that sends its users there (`login.through`).
///
/// It follows redirects and forms that submit themselves, as a browser would, and fills in the login form of the
/// provider. The session consists of the upstream's cookies only; the provider's cookies are used by the next login
/// there.
package struct SignOnLogin: SessionLogin {
    /// Number of visits that begin anew because a provider showed a form in the session of the login before.
    ///
    /// After the first, the session of another login may be there. The last begins without any.
    private static let restartLimit = 2

    private let gateway: GatewayLogin
    private let route: SignOnRoute
    private let sessions: SignOnSessions

    /// Creates the login of `gateway`, which has the rules, the addresses and the credential of the upstream.
    package init(_ gateway: GatewayLogin, on route: SignOnRoute, _ sessions: SignOnSessions) {
        self.gateway = gateway
        self.route = route
        self.sessions = sessions
    }

    /// Establishes a session. The credential is sent once, and only if the provider asks for it.
    package func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use: CredentialUse
        do throws(LoginFailure) {
            use = try await CredentialUse.lookUp(
                gateway.key, retryRejectedAfter: gateway.retryRejectedAfter, in: conversation)
            try sessions.requireOpenLatches(for: use, in: conversation)
            try use.requireBudget(in: conversation)
            try await gateway.requireFields(of: use)
        } catch {
            // A waiting request may continue if certainly no login is needed.
            var client = upstreamClient(conversation)
            if gateway.target != nil, !gateway.isPageConfigured,
                case .nothingAsked(let session, isCertain: true) = try await gateway.findLoginPage(&client)
            {
                return session
            }
            throw error
        }
        var restarts = 0
        while true {
            var visit = SignOnVisit(
                gateway, use, route, sessions, conversation, usesSession: restarts < Self.restartLimit
            ) { upstreamClient(conversation) }
            if let session = try await visit.run() { return session }
            restarts += 1
        }
    }

    /// Requests `prove-at` or the upstream's address with the session: a redirect to the provider ends it.
    package func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        await GatewayConfirmation(
            address: gateway.proof ?? gateway.base, isVerifying: gateway.proof != nil, name: gateway.key.challenge,
            isChallenge: asksForLogin
        ).run(held, conversation)
    }

    private func upstreamClient(_ conversation: Conversation) -> GatewayClient {
        GatewayClient(
            name: gateway.key.challenge, conversation: conversation, timeout: gateway.timeout,
            asksForLogin: asksForLogin)
    }

    private func asksForLogin(_ response: ExaminedResponse) -> Bool {
        route.leadsToProvider(response) || gateway.asksForLogin(response)
    }
}

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
