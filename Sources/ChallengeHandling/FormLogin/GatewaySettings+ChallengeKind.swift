// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

extension GatewaySettings: ChallengeKind {
    /// `gateway`.
    package static let key = "gateway"
    /// The rules; with a gateway, `inject` has the fields of its session.
    package static let keys = ["detect", "success", "failed", "logout", "cookies", "inject"]

    /// A form wants somebody's name and password.
    package var needsCredential: Bool { true }

    /// The fields that its templates name; those of the presets, where none does.
    package var neededFields: Set<String> {
        let used = login.reduce(into: inject.fieldNames) { $0.formUnion($1.parameters.fieldNames) }
        return used.isEmpty ? ["username", "password"] : used
    }

    /// The addresses of the steps.
    package var loginAddresses: [(url: WebURL, key: String)] {
        login.compactMap { step in
            guard case .address(.absolute(let url))? = step.target else { return nil }
            return (url, "login")
        }
    }

    /// One page has one login.
    package func rivals(_ other: GatewaySettings) -> Bool { preset == other.preset && detect == other.detect }

    /// The steps, and what the session adds to requests.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("gateway", preset.rawValue)
        for (index, step) in login.enumerated() { step.add(to: &terms, as: "login[\(index)]") }
        terms.add("inject", inject.map { ($0.name.canonicalName, $0.value.source) })
        if let passedCookies {
            terms.add("cookies.pass", passedCookies.isEmpty ? [""] : Set(passedCookies).sorted())
        }
    }

    /// The login by the preset's rules, changed by what the configuration names.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let credential = challenge.credential else { return nil }
        let (rules, upstream, retry) = (rules, site.upstream, challenge.retryRejected)
        let origin = upstream.url.origin
        let key = LatchKey(origin: origin, challenge: challenge.name, credential: credential)
        let base = challenge.entrance(at: upstream)
        let (proof, form) = (challenge.proofAddress(at: upstream), site.material.provenForms.form(of: key))
        let logout = logout.flatMap { logout in
            logout.url.resolved(at: upstream.url).map {
                GatewayLogout(name: challenge.name, url: $0, method: logout.method)
            }
        }
        return Authenticator(
            name: challenge.name,
            trigger: .detected(GatewayDetector(rules, kind: "gateway \(preset.rawValue)")), isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(origin: origin, challenge: challenge.name, credential: credential),
            credentials: [credential], logout: logout, confirmsSessions: true, isLoginPage: true,
            makeLogin: { occasion in
                GatewayLogin(
                    rules, key: key, base: base, proof: proof, challenged: occasion.challenge?.url,
                    target: occasion.challenge == nil ? occasion.target : nil, provenForm: form,
                    retryRejectedAfter: retry)
            }
        ).sending(to: origins)
    }

    /// The origins that the configuration names for its pages and forms.
    private var origins: Set<Origin> {
        var origins: Set<Origin?> = [logout?.url.origin]
        for step in login {
            origins.insert(step.page?.origin)
            if case .address(let address)? = step.target { origins.insert(address.origin) }
        }
        return Set(origins.compactMap(\.self))
    }
}

extension LoginStep {
    fileprivate func add(to terms: inout LoginTerms, as key: String) {
        terms.add("\(key).page", page?.text)
        switch target {
        case .address(let address): terms.add("\(key).url", address.text)
        case .form: terms.add("\(key).url", "form")
        case nil: break
        }
        terms.add("\(key).method", method.rawValue)
        terms.add("\(key).parameters", parameters.map { ($0.name, $0.value.source) })
        terms.add("\(key).fields", hiddenFields.map { $0 ? "hidden" : "none" })
        terms.add("\(key).body", body.rawValue)
        terms.add("\(key).headers", headers.map { ($0.name.canonicalName, $0.value.source) })
        terms.add("\(key).extract", extraction.parts.map { ($0.name, $0.pointer.source) })
    }
}

extension ChallengeSettings {
    /// The address that is asked for ahead of any challenge: the folder of the pattern, `/app/` for `www.example.com/app/*`, since what
    /// lies above it need not be behind this login, nor the upstream's own address, where that lies elsewhere; else that address.
    fileprivate func entrance(at upstream: ProtectedUpstream) -> WebURL {
        let origin = upstream.url.origin
        guard case .locations(let patterns) = place, let pattern = patterns.first(where: { $0.mayCover(origin) })
        else { return upstream.url }
        var parts = pattern.text.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count > 2, parts[0].hasSuffix(":"), parts[1].isEmpty { parts.removeFirst(2) }
        let path = parts.dropFirst().map { $0 == "*" ? "" : $0 }.joined(separator: "/")
        guard !path.isEmpty, let url = WebURL("\(origin)/\(path)") else { return upstream.url }
        return upstream.url.path.hasPrefix(url.path) ? upstream.url : url
    }
}
