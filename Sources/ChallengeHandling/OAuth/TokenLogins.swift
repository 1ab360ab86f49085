// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// `scheme: bearer` with its `token:`.
struct TokenLogins {
    let challenge: ChallengeSettings
    let credential: String
    let realm: String?
    let token: TokenSettings
    let site: LoginSite

    /// The authenticator; `nil` where the settings name no server.
    var login: Authenticator? { token.grant.make(self) }

    var upstream: ProtectedUpstream { site.upstream }
    var material: TokenMaterial { site.material.tokens }
    var retry: Duration? { challenge.retryRejected }
    var placement: TokenPlacement { TokenPlacement(field: token.field, prefix: token.prefix) }
    private var scope: Scope { Scope(token.scope) }

    /// The latch of the credential at a server.
    func latch(at origin: Origin) -> LatchKey {
        LatchKey(origin: origin, challenge: challenge.name, credential: credential)
    }

    /// An authenticator of this challenge, whose login sends requests to `servers`.
    func authenticator(
        _ detector: any ChallengeDetector, scope: Scope? = nil,
        scopeOfRoute: (@Sendable (_ method: String, _ path: String) -> Scope?)? = nil,
        logout: (any SessionLogout)? = nil, servers: [WebURL] = [],
        makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin
    ) -> Authenticator {
        Authenticator(
            name: challenge.name, trigger: .detected(detector), isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(
                origin: upstream.url.origin, challenge: challenge.name, credential: credential,
                scope: (scope ?? self.scope).description),
            credentials: [credential], scopeOfRoute: scopeOfRoute, logout: logout, makeLogin: makeLogin
        ).sending(to: Set((servers + [token.revocation].compactMap(\.self)).map(\.origin)))
    }

    /// That of a grant of OAuth 2, by the endpoint of the settings.
    fileprivate func endpoint(_ grant: TokenConfiguration.Grant) -> Authenticator? {
        guard let url = token.url else { return discovered(grant) }
        let revocation = token.revocation.map {
            TokenRevocation(url: $0, configuration(grant, at: url), key: latch(at: url.origin), keys: material.keys)
        }
        return authenticator(BearerDetector(realm: realm), logout: revocation, servers: [url]) { occasion in
            tokenLogin(configuration(grant, at: url), scope: occasion.scope)
        }
    }

    /// By the endpoint that the resource's own words lead to.
    private func discovered(_ grant: TokenConfiguration.Grant) -> Authenticator? {
        guard !token.issuers.isEmpty else { return nil }
        // A refresh token has its scope from whoever granted it (RFC 6749 §6).
        let discovery = TokenDiscovery(
            name: challenge.name, resource: upstream.url, servers: token.issuers,
            takesScope: scope.isEmpty && grant != .refreshToken)
        return authenticator(BearerDetector(realm: realm), servers: token.issuers.map(\.url)) { occasion in
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
        neededFields: { ["client-id", $0.clientAuthentication == .privateKeyJWT ? "private-key" : "client-secret"] },
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

/// The keys and refresh tokens that logins for tokens share, also over a reload.
final class TokenMaterial: Sendable {
    /// Keys for assertions.
    let keys: any SigningKeys
    private let known = Mutex<[String: RefreshTokens]>([:])

    init(keys: any SigningKeys) { self.keys = keys }

    /// The refresh tokens of a credential at the origin of a token endpoint: the same for all who use them.
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
