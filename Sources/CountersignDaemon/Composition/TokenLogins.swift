// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Settings
internal import Synchronization

/// `scheme: bearer` with its `token:`.
struct TokenLogins {
    let challenge: ChallengeSettings
    let credential: String
    let scheme: SchemeSettings
    let token: TokenSettings
    let upstream: UpstreamSettings
    let material: TokenMaterial

    /// The login, and the origins of its token endpoints; `nil` where the settings name none.
    var login: (login: Authenticator, tokenOrigins: [Origin])? {
        switch token.grant {
        case .clientCredentials: endpoint(.clientCredentials)
        case .mobileFirst: mobileFirst
        case .password: endpoint(.password)
        case .refreshToken: endpoint(.refreshToken)
        case .registry: registry
        case .static: fixed
        }
    }

    private var retry: Duration? { challenge.retryRejected }
    private var placement: TokenPlacement { TokenPlacement(field: token.field, prefix: token.prefix) }
    private var scope: Scope { Scope(token.scope) }

    private func latch(at origin: Origin) -> LatchKey {
        LatchKey(origin: origin, challenge: challenge.name, credential: credential)
    }

    private func standing(
        _ detector: any ChallengeDetector, scope: Scope? = nil,
        scopeOfRoute: (@Sendable (_ method: String, _ path: String) -> Scope?)? = nil,
        logout: (any SessionLogout)? = nil,
        makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin
    ) -> Authenticator {
        Authenticator(
            name: challenge.name, trigger: .detected(detector), isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(
                origin: upstream.url.origin, challenge: challenge.name, credential: credential,
                scope: (scope ?? self.scope).description),
            credentials: [credential], scopeOfRoute: scopeOfRoute, logout: logout, makeLogin: makeLogin)
    }

    private var mobileFirst: (login: Authenticator, tokenOrigins: [Origin]) {
        let api = upstream.mobileFirst?.api ?? WebURL(origin: upstream.url.origin, path: "/mfp/api")
        let url = token.url ?? api.appending(path: "az/v1/token")
        let (key, retry) = (latch(at: url.origin), retry)
        let login = standing(BearerDetector(realm: scheme.realm)) { occasion in
            ConfidentialClientLogin(tokenURL: url, key: key, scope: occasion.scope, retryRejectedAfter: retry)
        }
        return (login, [url.origin])
    }

    private var fixed: (login: Authenticator, tokenOrigins: [Origin]) {
        let login = StaticTokenLogin(
            key: latch(at: upstream.url.origin), placement: placement, retryRejectedAfter: retry,
            proof: challenge.proofAddress(at: upstream), realm: scheme.realm)
        return (standing(BearerDetector(realm: scheme.realm, canGrow: false), scope: .empty) { _ in login }, [])
    }

    private func endpoint(_ grant: TokenConfiguration.Grant) -> (login: Authenticator, tokenOrigins: [Origin])? {
        guard let url = token.url else { return discovered(grant) }
        let revocation = token.revocation.map {
            TokenRevocation(url: $0, configuration(grant, at: url), key: latch(at: url.origin), keys: material.keys)
        }
        let login = standing(BearerDetector(realm: scheme.realm), logout: revocation) { occasion in
            tokenLogin(configuration(grant, at: url), scope: occasion.scope)
        }
        return (login, [url.origin])
    }

    /// By the endpoint that the resource's own words lead to.
    private func discovered(_ grant: TokenConfiguration.Grant) -> (login: Authenticator, tokenOrigins: [Origin])? {
        guard !token.issuers.isEmpty else { return nil }
        // A refresh token has its scope from whoever granted it (RFC 6749 §6).
        let discovery = TokenDiscovery(
            name: challenge.name, resource: upstream.url, servers: token.issuers,
            takesScope: scope.isEmpty && grant != .refreshToken)
        let login = standing(BearerDetector(realm: scheme.realm)) { occasion in
            DiscoveredTokenLogin(discovery, challenge: occasion.challenge, target: occasion.target) { found in
                tokenLogin(configuration(grant, at: found), scope: occasion.scope.union(found.scope))
            }
        }
        return (login, token.issuers.map(\.url.origin))
    }

    private func tokenLogin(_ configuration: TokenConfiguration, scope: Scope) -> TokenLogin {
        let origin = configuration.url.origin
        return TokenLogin(
            configuration, key: latch(at: origin), scope: scope, configuredScope: self.scope, retryRejectedAfter: retry,
            keys: material.keys, refreshTokens: material.refreshTokens(credential, at: origin))
    }

    private var clientAuthentication: TokenConfiguration.ClientAuthentication? {
        token.clientAuthentication.map { TokenConfiguration.ClientAuthentication($0) }
    }
    private var parameters: [TokenConfiguration.Parameter] {
        token.parameters.map { .init(name: $0.name, value: $0.value) }
    }

    private func configuration(_ grant: TokenConfiguration.Grant, at url: WebURL) -> TokenConfiguration {
        TokenConfiguration(
            url: url, grant: grant, clientAuthentication: clientAuthentication ?? .basic, audience: token.audience,
            parameters: parameters, placement: placement)
    }

    private func configuration(_ grant: TokenConfiguration.Grant, at found: DiscoveredEndpoint) -> TokenConfiguration {
        TokenConfiguration(
            found, grant: grant, clientAuthentication: clientAuthentication, audience: token.audience,
            parameters: parameters, placement: placement)
    }

    private var registry: (login: Authenticator, tokenOrigins: [Origin])? {
        guard let url = token.url else { return nil }
        let service = RegistryService(url: url, registry: upstream.url, name: token.audience)
        let (key, retry, placement) = (latch(at: url.origin), retry, placement)
        let refreshTokens = material.refreshTokens(credential, at: url.origin)
        let base = upstream.url.path.hasSuffix("/") ? String(upstream.url.path.dropLast()) : upstream.url.path
        let login = standing(
            RegistryDetector(realm: scheme.realm),
            scopeOfRoute: { method, path in
                path.hasPrefix(base)
                    ? RegistryScope.needed(method: method, path: String(path.dropFirst(base.count))) : nil
            }
        ) { occasion in
            RegistryLogin(
                service, key: key, scope: occasion.scope,
                challenge: occasion.challenge.flatMap { RegistryChallenge(status: $0.status, fields: $0.fields) },
                placement: placement, retryRejectedAfter: retry, refreshTokens: refreshTokens)
        }
        return (login, [url.origin])
    }
}

/// What logins for tokens share, and what outlives a reload.
final class TokenMaterial: Sendable {
    /// Keys for assertions.
    let keys = RSASigningKeys()
    private let known = Mutex<[String: RefreshTokens]>([:])

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

extension TokenConfiguration.ClientAuthentication {
    fileprivate init(_ settings: TokenSettings.ClientAuthentication) {
        switch settings {
        case .basic: self = .basic
        case .body: self = .body
        case .privateKeyJWT: self = .privateKeyJWT
        }
    }
}
