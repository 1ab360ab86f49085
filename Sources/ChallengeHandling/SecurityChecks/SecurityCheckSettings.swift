// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// Settings of `security-check`: a server-side rule, by name, and the answer to its challenge.
package struct SecurityCheckSettings: ChallengeKind {
    /// Name of the check at the server.
    package var check: String
    /// Answer.
    package var answer: AnswerTemplate
    /// Number of remaining attempts that are never used.
    package var keepAttempts: Int
    /// Address of the answer, only if the resource itself sends the challenges.
    package var answerURL: AddressReference?
    /// True if a check of a MobileFirst server is logged out when no longer needed.
    package var logsOut = false

    /// Creates a check and its answer.
    package init(
        check: String, answer: AnswerTemplate, keepAttempts: Int = CredentialChallengeHandler.standardKeptAttempts,
        answerURL: AddressReference? = nil,
        logsOut: Bool = false
    ) {
        self.check = check
        self.answer = answer
        self.keepAttempts = keepAttempts
        self.answerURL = answerURL
        self.logsOut = logsOut
    }

    private enum Keys {
        static let check = Key(required: "security-check", .word, "Name of a security check of a MobileFirst server.")
        static let answer = Key(
            required: "answer", .answer, "Answer to the check; nested values may be numbers, flags and lists.")
        static let keepAttempts = Key(
            "keep-attempts", .integer(in: 0...1000), default: CredentialChallengeHandler.standardKeptAttempts,
            "Number of remaining attempts, as reported by the server, that are never used.")
        static let answerURL = Key(
            "answer-url", .addressOrPath,
            "Address that `{\"challengeResponse\": …}` is sent to, only at an upstream without `mobilefirst`.")
        static let logout = Key(
            "logout", .flag, default: false, "Logs out of the check when its session is no longer needed.")
    }

    /// The check, its answer, the address, the kept attempts, and the logout.
    package static let keys: [any SchemaKey] = [
        Keys.check, Keys.answer, Keys.keepAttempts, Keys.answerURL, Keys.logout,
    ]

    /// Reads the check and its answer.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> SecurityCheckSettings? {
        let (check, answer) = (fields[Keys.check], fields[Keys.answer])
        let (keepAttempts, answerURL) = (fields[Keys.keepAttempts], fields[Keys.answerURL])
        let logsOut = fields[Keys.logout]
        guard let check, let answer else { return nil }
        return SecurityCheckSettings(
            check: check, answer: answer, keepAttempts: keepAttempts, answerURL: answerURL, logsOut: logsOut)
    }

    /// True if the answer uses a field of a credential.
    package var needsCredential: Bool { !neededFields.isEmpty }

    /// Fields of the credential in the answer.
    package var neededFields: Set<String> { answer.fieldNames }

    /// Address of the answer.
    package var loginAddresses: [(url: WebURL, key: String)] {
        if case .absolute(let url)? = answerURL { [(url, "answer-url")] } else { [] }
    }

    /// Returns whether both answer one check.
    package func conflicts(with other: SecurityCheckSettings) -> Bool { check == other.check }

    /// The check.
    package var conflictGroup: String { check }

    /// Adds the check, its answer, and the answer's address.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("security-check", check)
        terms.add("answer", json: answer.source)
        terms.add("answer-url", answerURL.map { $0.resolved(at: upstream.url).map { "\($0)" } ?? $0.text })
    }

    /// Returns nil: one response may demand several checks, which are answered together.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? { nil }

    /// Returns the answer to the check.
    package func securityCheck(
        of challenge: ChallengeSettings, at server: Origin, _ site: LoginSite
    ) -> ConfiguredCheck? {
        guard let credential = challenge.credential else { return nil }
        let handler = CredentialChallengeHandler(
            securityCheck: check,
            key: LatchKey(origin: server, challenge: challenge.name, credential: credential),
            answer: answer, keepAttempts: keepAttempts, retryRejectedAfter: challenge.retryRejected)
        return ConfiguredCheck(
            HandledCheck(handler), credential: credential, choosesByCaller: challenge.credentialsByCaller != nil,
            isKept: challenge.login == .atStart, logsOut: logsOut,
            answerURL: answerURL?.resolved(at: site.upstream.url), proof: challenge.proofAddress(at: site.upstream),
            refusal: challenge.lacksCredential ? challenge.refusal : nil)
    }
}

extension ValueForm where Content == AnswerTemplate {
    fileprivate static let answer = ValueForm("mapping of templates") { value in
        guard value.isMapping else {
            value.report("must be a mapping: { pin: \"{pin}\" }")
            return nil
        }
        return value.answer()
    }
}

extension LoginSite {
    /// Returns the logins for security checks. A MobileFirst 8.0 server has the upstream's own client. Otherwise there
    /// is a login for the checks that resources demand, for each configured pattern; one without a pattern applies
    /// everywhere.
    func securityCheckLogins() -> [(login: Authenticator, pattern: LocationPattern?)] {
        if let server = upstream.mobileFirst { return [(mobileFirst(server), nil)] }
        let origin = upstream.url.origin
        var everywhere: [ConfiguredCheck] = []
        var patterns: [(pattern: LocationPattern, checks: [ConfiguredCheck])] = []
        var positions: [LocationPattern: Int] = [:]
        for challenge in challenges {
            guard let check = challenge.kind.securityCheck(of: challenge, at: origin, self) else { continue }
            switch challenge.location {
            case .upstream(let name): if name == upstream.name { everywhere.append(check) }
            case .locations(let places):
                for place in places where place.mayCover(origin) {
                    if let position = positions[place] {
                        patterns[position].checks.append(check)
                    } else {
                        positions[place] = patterns.count
                        patterns.append((place, [check]))
                    }
                }
            }
        }
        var logins: [(login: Authenticator, pattern: LocationPattern?)] = []
        if let login = resourceCheckLogin(everywhere) { logins.append((login, nil)) }
        for (pattern, checks) in patterns {
            // One response may demand several checks, which are answered together.
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
                        challenge: occasion.challenge, target: proof == nil ? occasion.target : nil,
                        isShared: occasion.isShared)
                }
            ).sending(to: Set(checks.compactMap(\.answerURL?.origin))))
    }

    private func mobileFirst(_ server: MobileFirstConfiguration) -> Authenticator {
        let checks = serverChecks(of: server)
        let kept = checks.filter(\.isKept).map(\.check)
        var configuration = server
        // A check's own name is the scope that demands the check.
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

    /// Returns the checks of the upstream: those for all of it, then those of the most specific pattern at its own
    /// address, then at the server's API, which sends the challenge.
    private func serverChecks(of server: MobileFirstConfiguration) -> [ConfiguredCheck] {
        var everywhere: [ConfiguredCheck] = []
        var table = LocationTable<ConfiguredCheck>()
        for challenge in challenges {
            guard let check = challenge.kind.securityCheck(of: challenge, at: server.api.origin, self) else { continue }
            switch challenge.location {
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
