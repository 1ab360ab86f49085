// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

extension GatewaySettings: ChallengeKind {
    /// False only for a login with its own steps that sends no field of a credential.
    package var needsCredential: Bool {
        preset != .none || helper != nil || login.isEmpty || !sentFields.isEmpty
    }

    /// Fields of the credential in templates. Without templates, the fields of the presets.
    package var neededFields: Set<String> {
        // A helper gets the whole credential, and fields of `inject` may come from the helper.
        if helper != nil { return ["username", "password"] }
        return sentFields.isEmpty && preset != .none ? ["username", "password"] : sentFields
    }

    /// Fields of the credential that occur in templates, except those that an answer supplies.
    private var sentFields: Set<String> {
        let extracted = login.flatMap { $0.extraction.parts.map(\.name) }
        return login.reduce(into: inject.fieldNames) { $0.formUnion($1.fieldNames) }.subtracting(extracted)
    }

    /// Fields that the daemon's own steps need. The fields that a helper needs are not known.
    package var requiredFields: Set<String> { helper == nil ? neededFields : [] }

    /// Constant `User-Agent` of the session or of a step: a login with two of them is no login of one program.
    package var userAgent: String? {
        (inject + login.flatMap(\.headers)).lazy.filter { $0.name == .userAgent }.compactMap(\.value.constant).first
    }

    /// Absolute addresses of the steps.
    package var loginAddresses: [(url: WebURL, key: String)] {
        let steps: [(url: WebURL, key: String)] = login.compactMap { step in
            guard case .address(.absolute(let url))? = step.target else { return nil }
            return (url, "login")
        }
        return steps + through.map { (WebURL(origin: $0, path: "/"), "login.through") }
    }

    /// Returns whether both would log in at one page.
    package func conflicts(with other: GatewaySettings) -> Bool { preset == other.preset && detect == other.detect }

    /// Adds the steps and the session's fields.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("gateway", preset.rawValue)
        for (index, step) in login.enumerated() { step.add(to: &terms, as: "login[\(index)]") }
        terms.add("login.through", Set(through.map(\.description)).sorted())
        helper?.add(to: &terms)
        terms.add("inject", inject.terms)
        if let passedCookies {
            terms.add("cookies.pass", passedCookies.isEmpty ? [""] : Set(passedCookies).sorted())
        }
    }

    /// Returns the login by the preset's rules, with the configured changes.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard challenge.credential != nil || !needsCredential else { return nil }
        let credential = challenge.credential ?? ""
        let (rules, upstream, retry) = (rules, site.upstream, challenge.retryRejected)
        let (origin, helpers) = (upstream.url.origin, site.material.helpers)
        let key = LatchKey(origin: origin, challenge: challenge.name, credential: credential)
        let base = challenge.loginAddress(at: upstream)
        let proof = challenge.proofAddress(at: upstream)
        let logout = logout.flatMap { $0.logout(of: challenge.name, at: upstream.url) }
        let route = through.isEmpty ? nil : SignOnRoute(from: origin, through: through)
        let providers = route.map { ($0, site.material.providerSessions.sessions(on: $0, for: key)) }
        let kind = "gateway \(preset.rawValue)"
        return Authenticator(
            name: challenge.name,
            trigger: .detected(
                route.map { SignOnDetector($0, rules, kind: kind) } ?? GatewayDetector(rules, kind: kind)),
            isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(origin: origin, challenge: challenge.name, credential: credential),
            credentials: [challenge.credential].compactMap(\.self), logout: logout, codec: .injectedFields,
            confirmsSessions: true, isLoginPage: true,
            makeLogin: { [helper] occasion in
                let login = GatewayLogin(
                    rules, key: key, base: base, proof: proof, challenged: occasion.challenge?.url,
                    target: occasion.challenge == nil ? occasion.target : nil, retryRejectedAfter: retry)
                if let helper {
                    return HelperLogin(
                        gateway: login, helper: helper.helper, page: helper.page.flatMap { $0.resolved(at: base) },
                        helpers: helpers)
                }
                return providers.map { SignOnLogin(login, on: $0, $1) } ?? login
            }
        ).sending(to: origins).verifying(at: proof)
    }

    /// Configured origins of pages and forms.
    private var origins: Set<Origin> {
        var origins: Set<Origin?> = [logout?.url.origin, logout?.page?.origin, helper?.page?.origin]
        origins.formUnion(through)
        for step in login {
            origins.insert(step.page?.origin)
            if case .address(let address)? = step.target { origins.insert(address.origin) }
        }
        return Set(origins.compactMap(\.self))
    }
}

extension ChallengeSettings {
    /// Returns the address to request before any challenge: the folder of the pattern.
    ///
    /// For `www.example.com/app/*` this is `/app/`. Addresses above the folder need not be protected by this login, nor the
    /// upstream's own address, if that is elsewhere. Without a folder it is the upstream's address.
    fileprivate func loginAddress(at upstream: ProtectedUpstream) -> WebURL {
        let origin = upstream.url.origin
        guard case .locations(let patterns) = location, let pattern = patterns.first(where: { $0.mayCover(origin) })
        else { return upstream.url }
        var parts = pattern.text.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count > 2, parts[0].hasSuffix(":"), parts[1].isEmpty { parts.removeFirst(2) }
        let path = parts.dropFirst().map { $0 == "*" ? "" : $0 }.joined(separator: "/")
        guard !path.isEmpty, let url = WebURL("\(origin)/\(path)") else { return upstream.url }
        return upstream.url.path.hasPrefix(url.path) ? upstream.url : url
    }
}

extension GatewaySettings {
    /// The preset's rules with the configured changes.
    var rules: GatewayRules {
        var rules =
            switch preset {
            case .form: GatewayRules.passwordForm
            case .jSecurityCheck: GatewayRules.jSecurityCheck
            case .webseal: GatewayRules.webSEAL
            case .none: GatewayRules(detect: [], steps: [])
            }
        if !detect.isEmpty {
            // The preset's matchers still show that a login has not worked.
            rules.markers += rules.detect
            rules.detect = detect
            rules.hints = []
        }
        // The form of the upstream itself is never filled in.
        if !through.isEmpty { rules.detect.removeAll(where: \.hasPasswordForm) }
        if login.count == 1, let preset = rules.steps.first, let step = login.first {
            rules.steps = [self.step(step, over: preset)]
        } else if !login.isEmpty {
            // Any login page can be the first of several.
            let first = preset == .form ? rules.steps.first : nil
            rules.steps = login.enumerated().map { index, step in
                self.step(step, over: index == 0 ? first ?? GatewayStep(target: .form) : GatewayStep(target: .form))
            }
        }
        if !success.isEmpty { rules.success = success }
        rules.failed = failed + rules.failed
        if let names = passedCookies { rules.callerCookies = Set(names) }
        rules.inject = inject
        return rules
    }

    /// Returns `preset` with the configured values of `step`. Parameters are replaced by name.
    private func step(_ step: LoginStep, over preset: GatewayStep) -> GatewayStep {
        var result = preset
        if let page = step.page { result.page = page.text }
        switch step.target {
        case .address(let address): result.target = .address(address.text)
        case .form: result.target = .form
        case nil: break
        }
        result.method = step.method.rawValue
        for parameter in step.parameters {
            if let index = result.parameters.firstIndex(where: { $0.name == parameter.name }) {
                result.parameters[index] = parameter
            } else {
                result.parameters.append(parameter)
            }
        }
        if let hidden = step.hiddenFields { result.hiddenFields = hidden }
        result.body = step.body
        result.document = step.document
        result.headers = step.headers.map { .init(name: $0.name.rawName, value: $0.value) }
        result.timeout = step.timeout
        result.success = step.success
        result.failed = step.failed
        result.extraction = step.extraction
        return result
    }
}
