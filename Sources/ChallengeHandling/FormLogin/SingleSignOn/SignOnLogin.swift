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
