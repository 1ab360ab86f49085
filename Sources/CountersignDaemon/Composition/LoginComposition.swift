// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Settings

/// From `challenges` and `upstreams[].mobilefirst` to the logins that stand ready at an upstream.
struct LoginComposition {
    let settings: Settings
    let clients: MobileFirstClients

    /// The logins of one upstream, and the origins that they may send requests to.
    func logins(of upstream: UpstreamSettings) -> (logins: Authenticators, origins: Set<Origin>) {
        var logins = Authenticators()
        var origins: Set<Origin> = [upstream.url.origin]
        if let mobileFirst = upstream.mobileFirst {
            logins.stand(self.mobileFirst(mobileFirst, of: upstream))
            origins.insert(mobileFirst.api.origin)
        }
        let (checks, answerOrigins) = resourceCheckLogins(at: upstream)
        origins.formUnion(answerOrigins)
        for (login, pattern) in checks {
            if let pattern { logins.stand(login, at: pattern) } else { logins.stand(login) }
        }
        let spaces = realmSpaces(of: upstream)
        var elsewhere: [(patterns: [LocationPattern], origins: Set<Origin>)] = []
        for challenge in settings.challenges {
            guard var login = login(challenge, at: upstream, spaces: spaces) else { continue }
            if challenge.isForNobody { login.login = login.login.refusing(challenge.refusal) }
            var own = Set(login.tokenOrigins)
            if case .scheme(let scheme) = challenge.kind, let url = scheme.token?.revocation { own.insert(url.origin) }
            own.formUnion(gatewayLogins(challenge, at: upstream)?.origins ?? [])
            switch challenge.place {
            case .upstream(let name) where name == upstream.name:
                origins.formUnion(own)
                logins.stand(login.login)
            case .locations(let patterns):
                // One that covers nothing here would only have every path looked up.
                let covering = patterns.filter { $0.mayCover(upstream.url.origin) }
                for pattern in covering { logins.stand(login.login, at: pattern) }
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

    // MARK: MobileFirst

    private func mobileFirst(_ settings: MobileFirstSettings, of upstream: UpstreamSettings) -> Authenticator {
        let configuration = MobileFirstConfiguration(
            api: settings.api, application: settings.application,
            platform: .init(rawValue: settings.platform.rawValue) ?? .web, version: settings.version,
            scope: Scope(settings.scope).union(Scope(keptChecks(of: upstream))))
        let handlers = securityChecks(of: upstream, api: settings.api)
        let own = ownChecks(of: upstream, api: settings.api)
        let material = clients.own
        let identity = identity(of: handlers)
        let client = clients.client(named: upstream.name, identity: identity, configuration)
        let leaving = handlers.filter { logsOut($0.challengeName) }.map(\.securityCheck)
        let login = Authenticator(
            name: upstream.name, trigger: .mobileFirst, isAhead: !configuration.scope.isEmpty,
            isKept: !keptChecks(of: upstream).isEmpty,
            key: SessionKey(
                origin: upstream.url.origin, challenge: upstream.name, credential: identity,
                scope: configuration.scope.description),
            credentials: handlers.map(\.key.credential), asks: handlers.map(\.challengeName) + own.map(\.challengeName),
            logout: leaving.isEmpty ? nil : MobileFirstLogout(client, of: leaving), isOfUpstream: true,
            makeLogin: { occasion in
                let guarded: [any SecurityCheckChallengeHandler] = own.map {
                    GuardedCheckHandler($0, calls: material.calls)
                }
                return client.login(scope: occasion.scope.words, handlers: handlers + guarded)
            })
        return refusal(of: handlers).map(login.refusing) ?? login
    }

    /// In whose name these checks are passed, where some choose their credential by the caller; empty where none does.
    func identity(of handlers: [CredentialChallengeHandler]) -> String {
        handlers.filter { choosesByUser($0.challengeName) }.map(\.key.credential).joined(separator: "+")
    }

    /// Why callers are refused for whom one of these checks has no credential; `nil`: all have one.
    func refusal(of handlers: [CredentialChallengeHandler]) -> String? {
        let names = handlers.filter { $0.key.credential == CredentialsByUser.nobody }.map(\.challengeName)
        return settings.challenges.first { names.contains($0.name) }?.refusal
    }

    private func choosesByUser(_ name: String) -> Bool {
        settings.challenges.contains { $0.name == name && $0.credentialsByUser != nil }
    }

    /// The security-check handlers that stand at an upstream: those in front of all of it, then those of the most
    /// specific pattern at its own address, then at the server's API, where the challenge itself is met.
    func securityChecks(of upstream: UpstreamSettings, api: WebURL) -> [CredentialChallengeHandler] {
        var everywhere: [CredentialChallengeHandler] = []
        var table = LocationTable<CredentialChallengeHandler>()
        for challenge in settings.challenges {
            guard case .securityCheck(let check) = challenge.kind, let credential = challenge.credential else {
                continue
            }
            let handler = CredentialChallengeHandler(
                securityCheck: check.check,
                key: LatchKey(origin: api.origin, challenge: challenge.name, credential: credential),
                answer: check.answer, keepAttempts: check.keepAttempts, retryRejectedAfter: challenge.retryRejected)
            switch challenge.place {
            case .upstream(let name): if name == upstream.name { everywhere.append(handler) }
            case .locations(let patterns): for pattern in patterns { table.register(handler, at: pattern) }
            }
        }
        let here = table.match(Location(upstream.url))?.handlers ?? []
        let there = table.match(Location(api))?.handlers ?? []
        var seen: Set<String> = []
        return (everywhere + here + there).filter { seen.insert($0.securityCheck).inserted }
    }

    /// Whether the check of that challenge is logged out of.
    private func logsOut(_ name: String) -> Bool {
        settings.challenges.contains { challenge in
            if challenge.name == name, case .securityCheck(let check) = challenge.kind { check.logsOut } else { false }
        }
    }

    /// The security checks there that are to be passed at the start: a check's own name is the scope that demands it.
    private func keptChecks(of upstream: UpstreamSettings) -> [String] {
        guard let api = upstream.mobileFirst?.api else { return [] }
        let kept = Set(settings.challenges.filter { $0.login == .atStart }.map(\.name))
        return securityChecks(of: upstream, api: api).filter { kept.contains($0.challengeName) }.map(\.securityCheck)
    }

    // MARK: Other challenges

    private func login(
        _ challenge: ChallengeSettings, at upstream: UpstreamSettings, spaces: RealmSpaces?
    ) -> (login: Authenticator, tokenOrigins: [Origin])? {
        if case .scheme(let scheme) = challenge.kind,
            let login = schemeLogin(challenge, scheme, at: upstream, spaces: spaces)
        {
            return login
        }
        if case .own(let name) = challenge.kind {
            return ownLogin(name, of: challenge, at: upstream).map { ($0, []) }
        }
        guard let credential = challenge.credential else { return nil }
        let origin = upstream.url.origin
        switch challenge.kind {
        case .inject(let fields):
            let login = InjectionLogin(
                challenge: challenge.name, credential: credential,
                fields: fields.map { .init(name: $0.name, value: $0.value) })
            return (
                Authenticator(
                    name: challenge.name, trigger: .ahead, isAhead: true,
                    key: SessionKey(origin: origin, challenge: challenge.name, credential: credential),
                    credentials: [credential], isShareable: false, makeLogin: { _ in login }), []
            )
        case .scheme(let scheme):
            return tokenLogin(challenge, credential, scheme, at: upstream)
        case .gateway:
            return gatewayLogins(challenge, at: upstream).map { ($0.login, []) }
        case .own, .securityCheck:
            return nil
        }
    }

    /// The login for a token, alone or as one of a list of schemes.
    func tokenLogin(
        _ challenge: ChallengeSettings, _ credential: String, _ scheme: SchemeSettings, at upstream: UpstreamSettings
    ) -> (login: Authenticator, tokenOrigins: [Origin])? {
        guard scheme.schemes.contains(.bearer), let token = scheme.token else { return nil }
        return TokenLogins(
            challenge: challenge, credential: credential, scheme: scheme, token: token, upstream: upstream,
            material: clients.tokens
        ).login
    }

    private func gatewayLogins(_ challenge: ChallengeSettings, at upstream: UpstreamSettings) -> GatewayLogins? {
        guard case .gateway(let gateway) = challenge.kind, let credential = challenge.credential else { return nil }
        return GatewayLogins(
            challenge: challenge, credential: credential, gateway: gateway, upstream: upstream,
            forms: clients.provenForms)
    }
}

extension ChallengeSettings {
    /// The address that every accepted user may GET at `upstream` (`prove-at`); `nil` if none is configured.
    func proofAddress(at upstream: UpstreamSettings) -> WebURL? {
        proofPath.flatMap { upstream.url.resolving($0) }
    }
}
