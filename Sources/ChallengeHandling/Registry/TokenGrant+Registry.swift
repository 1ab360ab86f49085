// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension TokenGrant {
    /// The token service of a container registry.
    package static let registry = TokenGrant(
        rawValue: "registry", neededFields: { _ in ["username", "password"] }, standsAlone: true
    ) { $0.registry }
}

extension TokenLogins {
    fileprivate var registry: Authenticator? {
        guard let url = token.url else { return nil }
        let service = RegistryService(url: url, registry: upstream.url, name: token.audience)
        let (key, retry, placement) = (latch(at: url.origin), retry, placement)
        let refreshTokens = material.refreshTokens(credential, at: url.origin)
        let base = upstream.url.path.hasSuffix("/") ? String(upstream.url.path.dropLast()) : upstream.url.path
        return authenticator(
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
