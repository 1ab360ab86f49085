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
    var login: Authenticator? {
        switch token.grant {
        case .clientCredentials: endpoint(.clientCredentials)
        case .mobileFirst: mobileFirst
        case .password: endpoint(.password)
        case .refreshToken: endpoint(.refreshToken)
        case .registry: registry
        case .static: fixed
        }
    }

    private var upstream: ProtectedUpstream { site.upstream }
    private var material: TokenMaterial { site.material.tokens }
    private var retry: Duration? { challenge.retryRejected }
    private var placement: TokenPlacement { TokenPlacement(field: token.field, prefix: token.prefix) }
    private var scope: Scope { Scope(token.scope) }

    private func latch(at origin: Origin) -> LatchKey {
        LatchKey(origin: origin, challenge: challenge.name, credential: credential)
    }

    private func standing(
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

    private var mobileFirst: Authenticator {
        let url = token.url ?? upstream.tokenEndpoint
        let (key, retry) = (latch(at: url.origin), retry)
        return standing(BearerDetector(realm: realm), servers: [url]) { occasion in
            ConfidentialClientLogin(tokenURL: url, key: key, scope: occasion.scope, retryRejectedAfter: retry)
        }
    }

    private var fixed: Authenticator {
        let login = StaticTokenLogin(
            key: latch(at: upstream.url.origin), placement: placement, retryRejectedAfter: retry,
            proof: challenge.proofAddress(at: upstream), realm: realm)
        return standing(BearerDetector(realm: realm, canGrow: false), scope: .empty) { _ in login }
    }

    private func endpoint(_ grant: TokenConfiguration.Grant) -> Authenticator? {
        guard let url = token.url else { return discovered(grant) }
        let revocation = token.revocation.map {
            TokenRevocation(url: $0, configuration(grant, at: url), key: latch(at: url.origin), keys: material.keys)
        }
        return standing(BearerDetector(realm: realm), logout: revocation, servers: [url]) { occasion in
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
        return standing(BearerDetector(realm: realm), servers: token.issuers.map(\.url)) { occasion in
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

    private var registry: Authenticator? {
        guard let url = token.url else { return nil }
        let service = RegistryService(url: url, registry: upstream.url, name: token.audience)
        let (key, retry, placement) = (latch(at: url.origin), retry, placement)
        let refreshTokens = material.refreshTokens(credential, at: url.origin)
        let base = upstream.url.path.hasSuffix("/") ? String(upstream.url.path.dropLast()) : upstream.url.path
        return standing(
            RegistryDetector(realm: realm),
            scopeOfRoute: { method, path in
                path.hasPrefix(base)
                    ? RegistryScope.needed(method: method, path: String(path.dropFirst(base.count))) : nil
            }, servers: [url]
        ) { occasion in
            RegistryLogin(
                service, key: key, scope: occasion.scope,
                challenge: occasion.challenge.flatMap { RegistryChallenge(status: $0.status, fields: $0.fields) },
                placement: placement, retryRejectedAfter: retry, refreshTokens: refreshTokens)
        }
    }
}

/// What logins for tokens share, and what outlives a reload.
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
