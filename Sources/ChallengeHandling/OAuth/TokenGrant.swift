// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Synchronization

/// A way to get a token, named by `grant`. Each has its folder and a line in `allCases`.
package struct TokenGrant: Sendable {
    /// The name in the configuration.
    package let rawValue: String
    /// The credential's fields that the grant uses.
    let neededFields: @Sendable (TokenSettings) -> Set<String>
    /// True for OAuth 2 grants, whose endpoint `issuers` may name and which can revoke tokens.
    var isOfOAuth = false
    /// True if no server is asked for the token.
    var asksNobody = false
    /// True if the grant cannot be one of several schemes.
    var standsAlone = false
    /// The upstream's default endpoint, used if no other is configured.
    var endpoint: @Sendable (ProtectedUpstream) -> WebURL? = { _ in nil }
    /// Makes the authenticator; `nil` if the settings name no server.
    let make: @Sendable (TokenLogins) -> Authenticator?
}

extension TokenGrant: CaseIterable {
    /// All grants.
    package static let allCases: [TokenGrant] = [
        .clientCredentials, .mobileFirst, .password, .refreshToken, .registry, .static,
    ]
}

extension TokenGrant: RawRepresentable, Hashable {
    /// Creates the grant of that name.
    package init?(rawValue: String) {
        guard let grant = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = grant
    }
}

/// Factory of authenticators for `scheme: bearer` with its `token:`.
struct TokenLogins {
    let challenge: ChallengeSettings
    let credential: String
    let realm: String?
    let token: TokenSettings
    let site: LoginSite

    /// The authenticator; `nil` if the settings name no server.
    var login: Authenticator? { token.grant.make(self) }

    var upstream: ProtectedUpstream { site.upstream }
    var material: TokenMaterial { site.material.tokens }
    var retry: Duration? { challenge.retryRejected }
    var placement: TokenPlacement { TokenPlacement(field: token.field, prefix: token.prefix) }
    private var scope: Scope { Scope(token.scope) }
    private var detector: BearerDetector { BearerDetector(realm: realm, markers: token.detect) }

    /// Returns the key of the credential's latch at a server.
    func latch(at origin: Origin) -> LatchKey {
        LatchKey(origin: origin, challenge: challenge.name, credential: credential)
    }

    /// Returns an authenticator of this challenge, whose login sends requests to `servers`.
    func authenticator(
        _ detector: any ChallengeDetector, scope: Scope? = nil,
        scopeOfRoute: (@Sendable (_ method: String, _ path: String) -> Scope?)? = nil,
        logout: (any SessionLogout)? = nil, servers: [WebURL] = [],
        makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin
    ) -> Authenticator {
        let lifetime = token.lifetime
        return Authenticator(
            name: challenge.name, trigger: .detected(detector), isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(
                origin: upstream.url.origin, challenge: challenge.name, credential: credential,
                scope: (scope ?? self.scope).description),
            credentials: [credential], scopeOfRoute: scopeOfRoute, logout: logout,
            makeLogin: { occasion in
                let login = makeLogin(occasion)
                return lifetime.map { LimitedTokenLogin(login, lifetime: $0) } ?? login
            }
        ).sending(to: Set((servers + [token.revocation].compactMap(\.self)).map(\.origin)))
    }

    /// Returns the authenticator of an OAuth 2 grant, with the configured endpoint.
    fileprivate func endpoint(_ grant: TokenConfiguration.Grant) -> Authenticator? {
        guard let url = token.url else { return discovered(grant) }
        let revocation = token.revocation.map {
            TokenRevocation(url: $0, configuration(grant, at: url), key: latch(at: url.origin), keys: material.keys)
        }
        return authenticator(detector, logout: revocation, servers: [url]) { occasion in
            tokenLogin(configuration(grant, at: url), scope: occasion.scope)
        }
    }

    /// Returns the authenticator with a discovered endpoint.
    private func discovered(_ grant: TokenConfiguration.Grant) -> Authenticator? {
        guard !token.issuers.isEmpty else { return nil }
        // A refresh token's scope comes from its grant (RFC 6749 §6).
        let discovery = TokenDiscovery(
            name: challenge.name, resource: upstream.url, servers: token.issuers,
            takesScope: scope.isEmpty && grant != .refreshToken,
            usesCertificate: token.clientAuthentication == .tls)
        return authenticator(detector, servers: token.issuers.map(\.url)) { occasion in
            DiscoveredTokenLogin(discovery, challenge: occasion.challenge, target: occasion.target) { found in
                tokenLogin(configuration(grant, at: found), scope: occasion.scope.union(found.scope))
            }
        }
    }

    private func tokenLogin(_ configuration: TokenConfiguration, scope: Scope) -> TokenLogin {
        let origin = configuration.url.origin
        return TokenLogin(
            configuration, key: latch(at: origin), scope: scope, configuredScope: self.scope, retryRejectedAfter: retry,
            keys: material.keys, refreshTokens: material.refreshTokens(credential, at: origin))
    }

    private func configuration(_ grant: TokenConfiguration.Grant, at url: WebURL) -> TokenConfiguration {
        TokenConfiguration(
            url: url, grant: grant, clientAuthentication: token.clientAuthentication ?? .basic,
            audience: token.audience,
            parameters: token.parameters, placement: placement)
    }

    private func configuration(_ grant: TokenConfiguration.Grant, at found: DiscoveredEndpoint) -> TokenConfiguration {
        TokenConfiguration(
            found, grant: grant, clientAuthentication: token.clientAuthentication, audience: token.audience,
            parameters: token.parameters, placement: placement)
    }
}

extension TokenGrant {
    /// RFC 6749 §4.4.
    package static let clientCredentials = TokenGrant(
        rawValue: "client-credentials",
        neededFields: { Set(["client-id"] + ($0.clientAuthentication ?? .basic).proofFields) },
        isOfOAuth: true
    ) { $0.endpoint(.clientCredentials) }

    /// RFC 6749 §4.3.
    package static let password = TokenGrant(
        rawValue: "password", neededFields: { _ in ["username", "password"] }, isOfOAuth: true
    ) { $0.endpoint(.password) }

    /// RFC 6749 §6.
    package static let refreshToken = TokenGrant(
        rawValue: "refresh-token", neededFields: { _ in ["refresh-token"] }, isOfOAuth: true
    ) { $0.endpoint(.refreshToken) }
}

/// Keys and refresh tokens that token logins share, even across a reload.
final class TokenMaterial: Sendable {
    /// The keys for assertions.
    let keys: any SigningKeys
    private let known = Mutex<[String: RefreshTokens]>([:])

    init(keys: any SigningKeys) { self.keys = keys }

    /// Returns the refresh tokens of a credential at an endpoint's origin. All their users share one object.
    func refreshTokens(_ credential: String, at origin: Origin) -> RefreshTokens {
        known.withLock { known in
            let name = "\(credential) \(origin)"
            if let there = known[name] { return there }
            let made = RefreshTokens(credential: credential, origin: origin)
            known[name] = made
            return made
        }
    }
}

/// A login whose sessions end after a time if the server states no lifetime.
package struct LimitedTokenLogin: SessionLogin {
    private let login: any SessionLogin
    private let lifetime: Duration

    /// Limits the sessions of `login`.
    package init(_ login: any SessionLogin, lifetime: Duration) {
        self.login = login
        self.lifetime = lifetime
    }

    /// Logs in, and limits the session.
    package func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        // The lifetime begins with the request, so that the session never outlives the token.
        let start = conversation.now()
        var session = try await login.logIn(conversation)
        session.expiresAt = session.expiresAt ?? start.saturatingAdd(lifetime.milliseconds)
        return session
    }

    /// Asks the login.
    package func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        await login.confirm(held, conversation)
    }
}
