// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Settings

/// From `security-check:` at an upstream that is no MobileFirst 8.0 server to logins for what its resources demand themselves.
extension LoginComposition {
    /// The logins of those checks, each with the pattern that it stands at, or without one where it stands in front of everything; and
    /// the origins that their answers go to.
    func resourceCheckLogins(
        at upstream: UpstreamSettings
    ) -> (logins: [(login: Authenticator, pattern: LocationPattern?)], origins: [Origin]) {
        guard upstream.mobileFirst == nil else { return ([], []) }
        var everywhere: [Check] = []
        var patterns: [(pattern: LocationPattern, checks: [Check])] = []
        for challenge in settings.challenges {
            guard let check = Check(challenge, at: upstream) else { continue }
            switch challenge.place {
            case .upstream(let name): if name == upstream.name { everywhere.append(check) }
            case .locations(let places):
                for place in places where place.mayCover(upstream.url.origin) {
                    if let index = patterns.firstIndex(where: { $0.pattern == place }) {
                        patterns[index].checks.append(check)
                    } else {
                        patterns.append((place, [check]))
                    }
                }
            }
        }
        var logins: [(login: Authenticator, pattern: LocationPattern?)] = []
        if let login = login(everywhere, at: upstream) { logins.append((login, nil)) }
        for (pattern, checks) in patterns {
            // One response may demand several checks, and they are answered together.
            if let login = login(checks + everywhere, at: upstream) { logins.append((login, pattern)) }
        }
        let checks = everywhere + patterns.flatMap(\.checks)
        return (logins, checks.compactMap(\.answerURL?.origin))
    }

    private func login(_ checks: [Check], at upstream: UpstreamSettings) -> Authenticator? {
        guard let first = checks.first else { return nil }
        let handlers = checks.map(\.handler)
        let answerURL = checks.lazy.compactMap(\.answerURL).first
        let name = first.handler.challengeName
        let proof = checks.lazy.compactMap(\.proof).first
        let credentials = Set(handlers.map(\.key.credential))
        let login = Authenticator(
            name: name, trigger: .detected(ResourceCheckDetector(checks: handlers.map(\.securityCheck))),
            isAhead: false,
            isKept: checks.contains(where: \.isKept),
            key: SessionKey(
                origin: upstream.url.origin, challenge: name,
                credential: credentials.count == 1 ? first.handler.key.credential : identity(of: handlers)),
            credentials: credentials.sorted(), asks: handlers.dropFirst().map(\.challengeName),
            makeLogin: { occasion in
                ResourceCheckLogin(
                    name: name, handlers: handlers, answerURL: answerURL, address: proof ?? upstream.url,
                    challenge: occasion.challenge, target: proof == nil ? occasion.target : nil)
            })
        return refusal(of: handlers).map(login.refusing) ?? login
    }

    /// One security check of the configuration.
    private struct Check {
        let handler: CredentialChallengeHandler
        let answerURL: WebURL?
        let proof: WebURL?
        let isKept: Bool

        init?(_ challenge: ChallengeSettings, at upstream: UpstreamSettings) {
            guard case .securityCheck(let check) = challenge.kind, let credential = challenge.credential else {
                return nil
            }
            handler = CredentialChallengeHandler(
                securityCheck: check.check,
                key: LatchKey(origin: upstream.url.origin, challenge: challenge.name, credential: credential),
                answer: check.answer, keepAttempts: check.keepAttempts, retryRejectedAfter: challenge.retryRejected)
            answerURL =
                switch check.answerURL {
                case .absolute(let url)?: url
                case .path(let path)?: upstream.url.resolving(path)
                case nil: nil
                }
            proof = challenge.proofAddress(at: upstream)
            isKept = challenge.login == .atStart
        }
    }
}
