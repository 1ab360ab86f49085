// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension LoginSite {
    /// The logins for security checks: the upstream's own client, where it is a MobileFirst 8.0 server; else those for what its resources
    /// demand themselves, each with the pattern that it stands at, or without one where it stands in front of everything.
    func securityCheckLogins() -> [(login: Authenticator, pattern: LocationPattern?)] {
        if let server = upstream.mobileFirst { return [(mobileFirst(server), nil)] }
        let origin = upstream.url.origin
        var everywhere: [ConfiguredCheck] = []
        var patterns: [(pattern: LocationPattern, checks: [ConfiguredCheck])] = []
        for challenge in challenges {
            guard let check = challenge.kind.securityCheck(of: challenge, at: origin, self) else { continue }
            switch challenge.place {
            case .upstream(let name): if name == upstream.name { everywhere.append(check) }
            case .locations(let places):
                for place in places where place.mayCover(origin) {
                    if let index = patterns.firstIndex(where: { $0.pattern == place }) {
                        patterns[index].checks.append(check)
                    } else {
                        patterns.append((place, [check]))
                    }
                }
            }
        }
        var logins: [(login: Authenticator, pattern: LocationPattern?)] = []
        if let login = resourceCheckLogin(everywhere) { logins.append((login, nil)) }
        for (pattern, checks) in patterns {
            // One response may demand several checks, and they are answered together.
            if let login = resourceCheckLogin(checks + everywhere) { logins.append((login, pattern)) }
        }
        return logins
    }

    private func resourceCheckLogin(_ checks: [ConfiguredCheck]) -> Authenticator? {
        guard let first = checks.first else { return nil }
        let handlers = checks.map(\.handler)
        let answerURL = checks.lazy.compactMap(\.answerURL).first
        let proof = checks.lazy.compactMap(\.proof).first
        let credentials = Set(checks.compactMap(\.credential))
        let (name, upstream) = (first.name, upstream)
        return checks.guarding(
            Authenticator(
                name: name, trigger: .detected(ResourceCheckDetector(checks: checks.map(\.check))), isAhead: false,
                isKept: checks.contains(where: \.isKept),
                key: SessionKey(
                    origin: upstream.url.origin, challenge: name,
                    credential: credentials.count == 1 ? credentials.first ?? "" : checks.identity),
                credentials: credentials.sorted(), asks: checks.dropFirst().map(\.name),
                makeLogin: { occasion in
                    ResourceCheckLogin(
                        name: name, checks: handlers, answerURL: answerURL, address: proof ?? upstream.url,
                        challenge: occasion.challenge, target: proof == nil ? occasion.target : nil)
                }
            ).sending(to: Set(checks.compactMap(\.answerURL?.origin))))
    }

    private func mobileFirst(_ server: MobileFirstConfiguration) -> Authenticator {
        let checks = serverChecks(of: server)
        let kept = checks.filter(\.isKept).map(\.check)
        var configuration = server
        // A check's own name is the scope that demands it.
        configuration.scope = server.scope.union(Scope(kept))
        let identity = checks.identity
        let client = material.client(named: upstream.name, identity: identity, configuration)
        let leaving = checks.filter(\.logsOut).map(\.check)
        return checks.guarding(
            Authenticator(
                name: upstream.name, trigger: .mobileFirst, isAhead: !configuration.scope.isEmpty,
                isKept: !kept.isEmpty,
                key: SessionKey(
                    origin: upstream.url.origin, challenge: upstream.name, credential: identity,
                    scope: configuration.scope.description),
                credentials: checks.compactMap(\.credential), asks: checks.map(\.name),
                logout: leaving.isEmpty ? nil : MobileFirstLogout(client, of: leaving), isOfUpstream: true,
                makeLogin: { client.login(scope: $0.scope.words, checks: checks.map(\.handler)) }
            ).answering(checks).sending(to: [server.api.origin]))
    }

    /// The checks that stand at the upstream: those in front of all of it, then those of the most specific pattern at its own address, then
    /// at the server's API, where the challenge itself is met.
    private func serverChecks(of server: MobileFirstConfiguration) -> [ConfiguredCheck] {
        var everywhere: [ConfiguredCheck] = []
        var table = LocationTable<ConfiguredCheck>()
        for challenge in challenges {
            guard let check = challenge.kind.securityCheck(of: challenge, at: server.api.origin, self) else { continue }
            switch challenge.place {
            case .upstream(let name): if name == upstream.name { everywhere.append(check) }
            case .locations(let patterns): for pattern in patterns { table.register(check, at: pattern) }
            }
        }
        let here = table.match(Location(upstream.url))?.handlers ?? []
        let there = table.match(Location(server.api))?.handlers ?? []
        var seen: Set<String> = []
        return (everywhere + here + there).filter { seen.insert($0.check).inserted }
    }
}
