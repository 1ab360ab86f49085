// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// An upstream and the challenges of the configuration, from which authenticators are made.
package struct LoginSite: Sendable {
    /// Upstream.
    package let upstream: ProtectedUpstream
    /// Challenges that may be met at the upstream or at its MobileFirst server, in the order of the file.
    let challenges: [ChallengeSettings]
    /// Material of logins.
    package let material: LoginMaterial
    /// Protection spaces of the upstream's realms; nil if fewer than two challenges name a realm there.
    let realms: RealmSpaces?
    private let index: ChallengeIndex
    private let credentials: [String: String]

    /// Creates the site of an upstream. `credentials` has those of the site's callers, by challenge.
    package init(
        _ upstream: ProtectedUpstream, _ index: ChallengeIndex, credentials: [String: String] = [:],
        _ material: LoginMaterial
    ) {
        self.upstream = upstream
        self.index = index
        self.credentials = credentials
        self.material = material
        challenges = index.positions(at: upstream).map { index.all[$0].choosing(credentials) }
        let named = challenges.filter { $0.kind.realm != nil && $0.location.mayCover(upstream) }
        realms = named.count > 1 ? RealmSpaces(realms: named.count) : nil
    }

    /// Creates the site of an upstream.
    package init(_ upstream: ProtectedUpstream, _ challenges: [ChallengeSettings], _ material: LoginMaterial) {
        self.init(upstream, ChallengeIndex(challenges), material)
    }

    /// Returns the authenticators of the upstream, and the origins of their login requests.
    package func authenticators() -> (logins: Authenticators, origins: Set<Origin>) {
        var logins = Authenticators()
        var origins: Set<Origin> = [upstream.url.origin]
        for (login, pattern) in securityCheckLogins() {
            let login = addingTerms(to: login)
            if let pattern { logins.add(login, at: pattern) } else { logins.add(login) }
            origins.formUnion(login.origins)
        }
        for challenge in challenges where challenge.location.mayCover(upstream) {
            guard var login = challenge.kind.authenticator(of: challenge, at: self) else { continue }
            login = addingTerms(to: login)
            origins.formUnion(login.origins)
            if challenge.lacksCredential { login = login.refusing(challenge.refusal) }
            switch challenge.location {
            case .upstream: logins.add(login)
            case .locations(let patterns):
                // A pattern that covers nothing here would only slow down the lookup of every path.
                for pattern in patterns where pattern.mayCover(upstream.url.origin) { logins.add(login, at: pattern) }
            }
        }
        return (logins, expanded(origins))
    }

    /// Adds the origins of logins that protect these origins, until no more are added.
    private func expanded(_ origins: Set<Origin>) -> Set<Origin> {
        var all = origins
        var next = Array(origins)
        var seen = Set(index.positions(at: upstream.url.origin))
        while let origin = next.popLast() {
            for position in index.positions(at: origin) where seen.insert(position).inserted {
                let challenge = index.all[position].choosing(credentials)
                let login = challenge.kind.authenticator(of: challenge, at: self)
                for origin in login?.origins ?? [] where all.insert(origin).inserted { next.append(origin) }
            }
        }
        return all
    }

    /// Returns `login` with the terms of its challenges and the fields that their credentials need.
    ///
    /// The terms are sorted, so they do not depend on the order of the file.
    private func addingTerms(to login: Authenticator) -> Authenticator {
        var login = login
        var head = LoginTerms()
        head.add("countersign-login", "\(LoginTerms.version)")
        head.add("origin", "\(upstream.url.origin)")
        let client = login.isOfUpstream ? upstream.mobileFirst?.terms.text : nil
        let names = login.isOfUpstream ? login.asks : [login.name] + login.asks
        let answered = index.positions(named: names).map { index.all[$0].choosing(credentials) }
        login.terms = head.text + (client ?? "") + answered.map { $0.terms(at: upstream).text }.sorted().joined()
        for challenge in answered {
            // A one-time password is computed from its seed.
            let fields = challenge.kind.requiredFields.map { $0 == "totp" ? "totp-seed" : $0 }
            if let credential = challenge.credential { login.requiredFields[credential, default: []].formUnion(fields) }
        }
        return login
    }
}

extension ChallengeSettings {
    /// Returns a copy with the credential that `credentials` has for the challenge, if any.
    package func choosing(_ credentials: [String: String]) -> ChallengeSettings {
        guard let credential = credentials[name] else { return self }
        var challenge = self
        challenge.credential = credential
        return challenge
    }
}

extension ChallengeLocation {
    /// Returns whether the location may cover part of the upstream.
    fileprivate func mayCover(_ upstream: ProtectedUpstream) -> Bool {
        switch self {
        case .upstream(let name): name == upstream.name
        case .locations(let patterns): patterns.contains { $0.mayCover(upstream.url.origin) }
        }
    }
}

extension MobileFirstConfiguration {
    /// Terms of the upstream's own client.
    fileprivate var terms: LoginTerms {
        var terms = LoginTerms()
        terms.add("kind", "mobilefirst")
        terms.add("mobilefirst.api", "\(api)")
        terms.add("mobilefirst.application", application)
        terms.add("mobilefirst.platform", platform.rawValue)
        terms.add("mobilefirst.version", version)
        terms.add("mobilefirst.scope", scope.words)
        return terms
    }
}

/// Services and state of logins, which are shared and survive a reload.
package final class LoginMaterial: Sendable {
    /// Computes digests.
    package let digests: any MessageDigests
    /// Loads keys for message signatures.
    package let messageKeys: any MessageKeys
    /// Issues Kerberos tickets.
    package let tickets: any TicketProvider
    /// Runs login helpers.
    package let helpers: any LoginHelpers
    /// True if NTLM can authenticate connections.
    package let hasNTLM: Bool
    /// The program's own handlers.
    let ownHandlers: any OwnHandlerSource
    /// Keys and refresh tokens.
    let tokens: TokenMaterial
    /// Sessions at identity providers.
    let providerSessions = ProviderSessions()
    private let clients = Mutex(Clients())

    /// A client, which lives as long as a plan has it.
    private struct KnownClient {
        weak var client: MobileFirstClient?
    }

    private struct Clients {
        var known: [String: KnownClient] = [:]
        /// Number of clients from which those that are gone are removed.
        var most = 16
    }

    /// Creates the material of a process.
    package init(
        digests: any MessageDigests, keys: any SigningKeys, messageKeys: any MessageKeys, tickets: any TicketProvider,
        hasNTLM: Bool,
        helpers: any LoginHelpers = NoLoginHelpers(), ownHandlers: any OwnHandlerSource = NoOwnHandlers()
    ) {
        self.helpers = helpers
        self.digests = digests
        self.messageKeys = messageKeys
        self.tickets = tickets
        self.hasNTLM = hasNTLM
        self.ownHandlers = ownHandlers
        tokens = TokenMaterial(keys: keys)
    }

    /// Returns the client of an upstream's MobileFirst server, one per upstream and identity.
    ///
    /// A client is kept over a reload if its configuration has not changed. One that no plan has any more is gone.
    func client(named name: String, identity: String, _ configuration: MobileFirstConfiguration) -> MobileFirstClient {
        clients.withLock { clients in
            let place = "\(name) \(identity)"
            if let known = clients.known[place]?.client, known.configuration == configuration { return known }
            let client = MobileFirstClient(
                name: name, identity: identity, configuration: configuration, keys: tokens.keys)
            clients.known[place] = KnownClient(client: client)
            // Not at each client: there may be one for each of many upstreams.
            if clients.known.count > clients.most {
                clients.known = clients.known.filter { $0.value.client != nil }
                clients.most = max(16, clients.known.count * 2)
            }
            return client
        }
    }
}
