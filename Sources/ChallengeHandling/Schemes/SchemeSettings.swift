// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// Settings of `scheme`: HTTP authentication (RFC 9110 §11) and bearer tokens (RFC 6750).
package struct SchemeSettings: Sendable, Equatable {
    /// Authentication scheme.
    package typealias Scheme = SchemeKind

    /// Schemes in order of preference; at least one, each once.
    package var schemes: [Scheme]
    /// Realm; nil: any.
    package var realm: String?
    /// Service principal for Negotiate; nil: `HTTP@host`.
    package var servicePrincipal: String?
    /// Source of the token, present if and only if `bearer` is one of the schemes.
    package var token: TokenSettings?

    /// Creates the settings of a challenge.
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
    /// True unless Negotiate is the only scheme.
    package var needsCredential: Bool { schemes.contains(where: \.needsCredential) }

    /// Fields of the token's grant, or a name and a password.
    package var neededFields: Set<String> { token.map { $0.grant.neededFields($0) } ?? ["username", "password"] }

    /// Needed fields if every login needs them.
    ///
    /// Negotiate can use a keytab instead, and an issuer may require another client authentication.
    package var requiredFields: Set<String> {
        schemes.allSatisfy(\.needsCredential) && token?.issuers.isEmpty != false ? neededFields : []
    }

    /// Servers of the token.
    package var loginAddresses: [(url: WebURL, key: String)] {
        (token?.url.map { [($0, "token.url")] } ?? []) + (token?.issuers.map { ($0.url, "token.issuers") } ?? [])
    }

    /// TLS of the connections to the token's servers.
    package var loginTLS: (settings: TLSSettings, key: String)? { token?.tls.map { ($0, "token.tls") } }

    /// True if one of the schemes authenticates connections.
    package var authenticatesConnections: Bool { schemes.contains(where: \.authenticatesConnections) }

    /// Returns whether both answer one realm by one scheme.
    package func conflicts(with other: SchemeSettings) -> Bool {
        realm == other.realm && schemes.contains(where: other.schemes.contains)
    }

    /// The realm.
    package var conflictGroup: String { realm ?? "" }

    /// Adds the schemes, the realm, and the source of the token.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("scheme", schemes.map(\.rawValue))
        terms.add("realm", realm)
        terms.add("spn", servicePrincipal)
        token?.add(to: &terms, at: upstream)
    }

    /// Returns the login by HTTP authentication, or for `bearer` alone the login for a token.
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

    /// Returns the login for the token, alone or as one of the schemes.
    private func tokenAuthenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let token, let credential = challenge.credential else { return nil }
        return TokenLogins(challenge: challenge, credential: credential, realm: realm, token: token, site: site).login
    }
}

extension ChallengeSettings {
    /// Returns the address of the challenge, for a login without a response.
    fileprivate func address(at upstream: ProtectedUpstream) -> WebURL {
        if let proof = proofAddress(at: upstream) { return proof }
        guard case .locations(let patterns) = location,
            let pattern = patterns.first(where: { $0.mayCover(upstream.url.origin) })
        else { return upstream.url }
        return pattern.beginning(from: upstream.url)
    }
}

extension SchemeSettings {
    private enum Keys {
        static let schemes = Key<[Scheme]?>(
            required: "scheme",
            .filledList(
                of: ValueForm<Scheme>.choice.described(as: "scheme", plural: names),
                else: "is empty: name at least one scheme"),
            "Schemes in order of preference; the first that the server offers is used.")
        static let realm = Key("realm", .word, without: "any", "Only realm that is answered.")
        static let servicePrincipal = Key(
            "spn", .word, without: "`HTTP@` and the host", "Service principal for `negotiate`.")
        static let token = Key(
            "token", .fields(of: TokenSettings.section), without: "required with `bearer`",
            "Source of tokens for `bearer`.")

        private static let names = Scheme.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
    }

    /// The schemes, and the keys of particular schemes.
    package static let keys: [any SchemaKey] = [Keys.schemes, Keys.realm, Keys.servicePrincipal, Keys.token]

    /// Reads the schemes and their keys.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> SchemeSettings? {
        let elements = fields.written(Keys.schemes)?.listOrOne() ?? []
        let schemes = fields[Keys.schemes] ?? []
        for (index, scheme) in schemes.enumerated()
        where schemes.count == elements.count && schemes[..<index].contains(scheme) {
            elements[index].report("this scheme is already in the list")
        }
        let realm = fields[Keys.realm]
        let spn = fields[Keys.servicePrincipal]
        let tokenValue = fields.written(Keys.token)
        if schemes.contains(.bearer), tokenValue == nil { fields.reportMissing(Keys.token) }
        let token = fields[Keys.token].flatMap { TokenSettings.read($0, context) }
        if schemes.contains(.bearer), Set(schemes).count > 1, token?.grant.standsAlone == true {
            tokenValue?.report(
                "the grant registry cannot be combined with other schemes: write a separate challenge for them")
        }
        if !schemes.isEmpty, !schemes.contains(.bearer) { tokenValue?.report("belongs to the scheme bearer") }
        if !schemes.isEmpty, !schemes.contains(.negotiate) {
            fields.written(Keys.servicePrincipal)?.report("belongs to the scheme negotiate")
        }
        guard !schemes.isEmpty else { return nil }
        return SchemeSettings(schemes: schemes, realm: realm, servicePrincipal: spn, token: token)
    }
}
