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
    public let scope: Scope
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?
    private let keys: any SigningKeys
    private let refreshTokens: RefreshTokens

    /// A login. All logins that use one refresh token share one `refreshTokens`.
    public init(
        _ configuration: TokenConfiguration, key: LatchKey, scope: Scope = .empty, retryRejectedAfter: Duration? = nil,
        keys: any SigningKeys, refreshTokens: RefreshTokens
    ) {
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
        let refreshToken = try refreshTokens?.current(for: use, in: conversation)
        let endpoint = TokenEndpoint(name: key.challenge, conversation: conversation)
        let sentAt = conversation.now()
        let request = try TokenRequest(self, use, refreshToken: refreshToken, keys: keys, now: sentAt).sideRequest
        let response = try await endpoint.send(request, rejecting: use)
        let answer = TokenAnswer(response.body)
        if let refreshTokens, let next = answer.refreshToken, next != refreshToken {
            // Before anything else: the one that was sent may be good no more.
            try refreshTokens.keep(next, for: use, in: conversation)
            endpoint.report("token: the next refresh token is kept")
        }
        let token = try endpoint.token(in: answer, status: response.status)
        return Session(
            fields: [configuration.placement.field(carrying: token.value)],
            expiresAt: token.expiresAt(sentAt: sentAt))
    }
}
