// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Curl
internal import Kerberos
internal import Settings

/// From `scheme:` to logins by HTTP authentication; `bearer` alone is `token:`'s.
extension LoginComposition {
    /// The login of a challenge at an upstream, and where it may have tokens from; `nil` where none of its schemes is known
    /// here. `spaces`: where several realms are told apart at the upstream.
    func schemeLogin(
        _ challenge: ChallengeSettings, _ settings: SchemeSettings, at upstream: UpstreamSettings, spaces: RealmSpaces?
    ) -> (login: Authenticator, tokenOrigins: [Origin])? {
        guard settings.schemes != [.bearer] else { return nil }
        let token = challenge.credential.flatMap { tokenLogin(challenge, $0, settings, at: upstream) }
        let schemes = settings.schemes.compactMap { scheme -> (any AuthenticationScheme)? in
            switch scheme {
            case .basic: BasicScheme()
            case .digest: DigestScheme(digests: CryptoDigests())
            case .negotiate:
                NegotiateScheme(
                    office: SystemTicketOffice { try startThread($0) }, host: upstream.url.origin.host,
                    servicePrincipal: settings.servicePrincipal)
            case .ntlm: NTLMScheme(isSupported: CurlFeatures.installed.features.contains(.ntlm))
            case .bearer: token.map { token in BearerScheme { token.login.login($0) } }
            }
        }
        guard !schemes.isEmpty else { return nil }
        let origin = upstream.url.origin
        let plan = SchemePlan(
            name: challenge.name, schemes: schemes, realm: settings.realm,
            key: challenge.credential.map { LatchKey(origin: origin, challenge: challenge.name, credential: $0) },
            retryRejectedAfter: challenge.retryRejected, address: Self.address(of: challenge, at: upstream),
            isProof: challenge.proofPath != nil, spaces: settings.realm == nil ? nil : spaces)
        let login = Authenticator(
            name: challenge.name, trigger: .detected(SchemeDetector(plan)), isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(
                origin: origin, challenge: challenge.name, credential: challenge.credential ?? "",
                scope: token?.login.key.scope ?? ""),
            credentials: [challenge.credential].compactMap(\.self),
            bindsConnections: schemes.contains(where: \.bindsConnections), isShareable: false,
            makeLogin: { SchemeLogin(plan, challenge: $0.challenge, scope: $0.scope, target: $0.target) })
        return (login, token?.tokenOrigins ?? [])
    }

    /// What tells the realms of an upstream apart, where several challenges name one.
    func realmSpaces(of upstream: UpstreamSettings) -> RealmSpaces? {
        let named = settings.challenges.filter { challenge in
            guard case .scheme(let scheme) = challenge.kind, scheme.realm != nil else { return false }
            switch challenge.place {
            case .upstream(let name): return name == upstream.name
            case .locations(let patterns): return patterns.contains { $0.mayCover(upstream.url.origin) }
            }
        }
        return named.count > 1 ? RealmSpaces() : nil
    }

    /// Where the challenge is met, for a login that no response led to.
    private static func address(of challenge: ChallengeSettings, at upstream: UpstreamSettings) -> WebURL {
        if let proof = challenge.proofAddress(at: upstream) { return proof }
        guard case .locations(let patterns) = challenge.place,
            let pattern = patterns.first(where: { $0.mayCover(upstream.url.origin) })
        else { return upstream.url }
        return pattern.beginning(from: upstream.url)
    }
}
