// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An upstream with all challenges of the configuration: where authenticators are made.
package struct LoginSite: Sendable {
    /// The upstream.
    package let upstream: ProtectedUpstream
    /// The challenges, in the order of the file.
    package let challenges: [ChallengeSettings]
    /// The means that logins are made with.
    package let material: LoginMaterial
    /// The memory that tells the realms of the upstream apart; `nil` if fewer than two challenges name one there.
    let realms: RealmSpaces?

    /// The challenges of a configuration at one of its upstreams.
    package init(_ upstream: ProtectedUpstream, _ challenges: [ChallengeSettings], _ material: LoginMaterial) {
        self.upstream = upstream
        self.challenges = challenges
        self.material = material
        let named = challenges.filter { $0.kind.realm != nil && $0.place.mayCover(upstream) }
        realms = named.count > 1 ? RealmSpaces() : nil
    }

    /// The authenticators that stand ready at the upstream, and the origins that their logins may send requests to.
    package func authenticators() -> (logins: Authenticators, origins: Set<Origin>) {
        var logins = Authenticators()
        var origins: Set<Origin> = [upstream.url.origin]
        for (login, pattern) in securityCheckLogins() {
            let login = meant(login)
            if let pattern { logins.stand(login, at: pattern) } else { logins.stand(login) }
            origins.formUnion(login.origins)
        }
        var elsewhere: [(patterns: [LocationPattern], origins: Set<Origin>)] = []
        for challenge in challenges {
            guard var login = challenge.kind.authenticator(of: challenge, at: self) else { continue }
            login = meant(login)
            let own = login.origins
            if challenge.isForNobody { login = login.refusing(challenge.refusal) }
            switch challenge.place {
            case .upstream(let name) where name == upstream.name:
                origins.formUnion(own)
                logins.stand(login)
            case .locations(let patterns):
                // One that covers nothing here would only have every path looked up.
                let covering = patterns.filter { $0.mayCover(upstream.url.origin) }
                for pattern in covering { logins.stand(login, at: pattern) }
                if covering.isEmpty { elsewhere.append((patterns, own)) } else { origins.formUnion(own) }
            case .upstream:
                continue
            }
        }
        return (logins, Self.grown(origins, by: elsewhere))
    }

    /// Also the origins of logins that stand in front of those that these logins send to, and so on.
    private static func grown(
        _ origins: Set<Origin>, by logins: [(patterns: [LocationPattern], origins: Set<Origin>)]
    ) -> Set<Origin> {
        let reached = logins.filter { login in
            login.patterns.contains { pattern in origins.contains { pattern.mayCover($0) } }
        }
        let all = reached.reduce(origins) { $0.union($1.origins) }
        return all == origins ? origins : grown(all, by: logins)
    }

    /// `login` with what the challenges that it answers say of it: their terms, in an order of their own and not in that of the file, and
    /// the fields that their credentials have to have.
    private func meant(_ login: Authenticator) -> Authenticator {
        var login = login
        var head = LoginTerms()
        head.add("countersign-login", "\(LoginTerms.version)")
        head.add("origin", "\(upstream.url.origin)")
        let client = login.isOfUpstream ? upstream.mobileFirst?.terms.text : nil
        let names = login.isOfUpstream ? login.asks : [login.name] + login.asks
        let answered = challenges.filter { names.contains($0.name) }
        login.terms = head.text + (client ?? "") + answered.map { $0.terms(at: upstream).text }.sorted().joined()
        for challenge in answered {
            // A one-time password comes from its seed.
            let fields = challenge.kind.requiredFields.map { $0 == "totp" ? "totp-seed" : $0 }
            if let credential = challenge.credential { login.requiredFields[credential, default: []].formUnion(fields) }
        }
        return login
    }
}

extension ChallengePlace {
    /// True if something of the upstream may lie there.
    fileprivate func mayCover(_ upstream: ProtectedUpstream) -> Bool {
        switch self {
        case .upstream(let name): name == upstream.name
        case .locations(let patterns): patterns.contains { $0.mayCover(upstream.url.origin) }
        }
    }
}

extension MobileFirstConfiguration {
    /// The terms of the upstream's own client.
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
