// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// `scheme`: HTTP authentication (RFC 9110 §11) and bearer tokens (RFC 6750).
package struct SchemeSettings: Sendable, Equatable {
    /// A scheme.
    package typealias Scheme = SchemeKind

    /// In the order in which they are tried; at least one, each once.
    package var schemes: [Scheme]
    /// The realm; `nil` is any.
    package var realm: String?
    /// The service principal for Negotiate; `nil` is `HTTP@host`.
    package var servicePrincipal: String?
    /// The source of the token; there if and only if `bearer` is among the schemes.
    package var token: TokenSettings?

    /// The schemes of a challenge.
    package init(
        schemes: [Scheme], realm: String? = nil, servicePrincipal: String? = nil, token: TokenSettings? = nil
    ) {
        self.schemes = schemes
        self.realm = realm
        self.servicePrincipal = servicePrincipal
        self.token = token
    }
}

extension SchemeSettings: ChallengeKind {
    /// `scheme`.
    package static let key = "scheme"
    /// The keys that some of the schemes take.
    package static let keys = ["realm", "spn", "token"]

    /// All but Negotiate alone.
    package var needsCredential: Bool { schemes.contains(where: \.needsCredential) }

    /// The token's, or a name and a password.
    package var neededFields: Set<String> { token.map { $0.grant.neededFields($0) } ?? ["username", "password"] }

    /// The same, if there is no other way: Negotiate does with a keytab, and a server may ask for another proof of who the client is.
    package var requiredFields: Set<String> {
        schemes.allSatisfy(\.needsCredential) && token?.issuers.isEmpty != false ? neededFields : []
    }

    /// The servers of the token.
    package var loginAddresses: [(url: WebURL, key: String)] {
        (token?.url.map { [($0, "token.url")] } ?? []) + (token?.issuers.map { ($0.url, "token.issuers") } ?? [])
    }

    /// True if one of the schemes does.
    package var authenticatesConnections: Bool { schemes.contains(where: \.authenticatesConnections) }

    /// One realm has one answer by each scheme.
    package func rivals(_ other: SchemeSettings) -> Bool {
        realm == other.realm && schemes.contains(where: other.schemes.contains)
    }

    /// The schemes, the realm, and the source of the token.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("scheme", schemes.map(\.rawValue))
        terms.add("realm", realm)
        terms.add("spn", servicePrincipal)
        token?.add(to: &terms, at: upstream)
    }

    /// The login by HTTP authentication; for `bearer` alone that for a token.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        let token = tokenAuthenticator(of: challenge, at: site)
        if schemes == [.bearer] { return token }
        let schemes = schemes.compactMap { $0.make(self, site, token) }
        guard !schemes.isEmpty else { return nil }
        let origin = site.upstream.url.origin
        let plan = SchemePlan(
            name: challenge.name, schemes: schemes, realm: realm,
            key: challenge.credential.map { LatchKey(origin: origin, challenge: challenge.name, credential: $0) },
            retryRejectedAfter: challenge.retryRejected, address: challenge.address(at: site.upstream),
            isProof: challenge.proofPath != nil, spaces: realm == nil ? nil : site.realms)
        return Authenticator(
            name: challenge.name, trigger: .detected(SchemeDetector(plan)), isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(
                origin: origin, challenge: challenge.name, credential: challenge.credential ?? "",
                scope: token?.key.scope ?? ""),
            credentials: [challenge.credential].compactMap(\.self),
            bindsConnections: schemes.contains(where: \.bindsConnections), isShareable: false,
            codec: plan.codec,
            makeLogin: { SchemeLogin(plan, challenge: $0.challenge, scope: $0.scope, target: $0.target) }
        ).sending(to: token?.origins ?? [])
    }

    /// The login for the token, alone or as one of the schemes.
    private func tokenAuthenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let token, let credential = challenge.credential else { return nil }
        return TokenLogins(challenge: challenge, credential: credential, realm: realm, token: token, site: site).login
    }
}

extension ChallengeSettings {
    /// The address at which the challenge is met, for a login that no response led to.
    fileprivate func address(at upstream: ProtectedUpstream) -> WebURL {
        if let proof = proofAddress(at: upstream) { return proof }
        guard case .locations(let patterns) = place,
            let pattern = patterns.first(where: { $0.mayCover(upstream.url.origin) })
        else { return upstream.url }
        return pattern.beginning(from: upstream.url)
    }
}
