// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Wins a token by one request to a token endpoint (RFC 6749 §4.3, §4.4, §6).
public struct TokenLogin: SessionLogin {
    /// The endpoint, and how it is asked.
    public let configuration: TokenConfiguration
    /// The challenge, the credential, and the endpoint's origin.
    public let key: LatchKey
    /// What is asked for; empty: nothing is, and the server gives what it thinks fit.
    public private(set) var scope: Scope
    /// What the configuration asks for; more is asked for where a resource has named it.
    private let configuredScope: Scope
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?
    private let keys: any SigningKeys
    private let refreshTokens: RefreshTokens

    /// A login. All logins that use one refresh token share one `refreshTokens`. `configuredScope`: the scope of the configuration, if
    /// `scope` may be more.
    public init(
        _ configuration: TokenConfiguration, key: LatchKey, scope: Scope = .empty, configuredScope: Scope? = nil,
        retryRejectedAfter: Duration? = nil, keys: any SigningKeys, refreshTokens: RefreshTokens
    ) {
        self.configuredScope = configuredScope ?? scope
        self.configuration = configuration
        self.key = key
        self.scope = scope
        self.retryRejectedAfter = retryRejectedAfter
        self.keys = keys
        self.refreshTokens = refreshTokens
    }

    /// Wins a session, or says why not.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        guard configuration.grant == .refreshToken else { return try await win(conversation, by: nil) }
        // A refresh token sent twice at once looks stolen to the server.
        return try await refreshTokens.turnstile.inTurn(of: key.challenge) { () async throws(LoginFailure) in
            try await win(conversation, by: refreshTokens)
        }
    }

    private func win(
        _ conversation: Conversation, by refreshTokens: RefreshTokens?
    ) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.look(up: key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        let endpoint = TokenEndpoint(name: key.challenge, conversation: conversation)
        let sentAt = conversation.now()
        let response: SideResponse
        switch try await ask(endpoint, for: scope, use, refreshTokens) {
        case .accepted(let accepted): response = accepted
        case .refused(let retryAt):
            let isGrown = scope != configuredScope
            throw try await endpoint.end(
                refused: scope, retryAt: retryAt, of: use,
                confirm: isGrown
                    ? { () async throws(LoginFailure) in
                        try await ask(endpoint, for: configuredScope, use, refreshTokens)
                    } : nil)
        }
        let token = try endpoint.token(in: TokenAnswer(response.body), status: response.status)
        use.accept(in: conversation)
        return Session(
            fields: [configuration.placement.field(carrying: token.value)],
            expiresAt: token.expiresAt(sentAt: sentAt))
    }

    /// Asks for a token once, and keeps the refresh token that comes with it.
    private func ask(
        _ endpoint: TokenEndpoint, for scope: Scope, _ use: CredentialUse, _ refreshTokens: RefreshTokens?
    ) async throws(LoginFailure) -> TokenEndpoint.Answer {
        let conversation = endpoint.conversation
        let refreshToken = try refreshTokens?.current(for: use, in: conversation)
        var login = self
        login.scope = scope
        let request = try TokenRequest(
            login, use, refreshToken: refreshToken, keys: keys, now: conversation.now()
        ).sideRequest
        let answer = try await endpoint.ask(request, isGrown: scope != configuredScope)
        if case .accepted(let response) = answer, let refreshTokens,
            let next = TokenAnswer(response.body).refreshToken, next != refreshToken
        {
            // Before anything else: the one that was sent may be good no more.
            try refreshTokens.keep(next, for: use, in: conversation)
            endpoint.report("token: the next refresh token is kept")
        }
        return answer
    }
}
