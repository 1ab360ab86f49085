// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import Settings

/// From a `gateway:` challenge to the login that stands ready: the preset's rules, changed by what the configuration names.
struct GatewayLogins {
    let challenge: ChallengeSettings
    let credential: String
    let gateway: GatewaySettings
    let upstream: UpstreamSettings
    let forms: ProvenForms

    /// The login. Its session is held under the upstream's origin and the challenge's name.
    var login: Authenticator {
        let rules = rules
        let origin = upstream.url.origin
        let key = LatchKey(origin: origin, challenge: challenge.name, credential: credential)
        let (base, retry) = (base, challenge.retryRejected)
        let (proof, form) = (challenge.proofAddress(at: upstream), forms.form(of: key))
        return Authenticator(
            name: challenge.name,
            trigger: .detected(GatewayDetector(rules, kind: "gateway \(gateway.preset.rawValue)")), isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(origin: origin, challenge: challenge.name, credential: credential),
            credentials: [credential], logout: logout, confirmsSessions: true, isLoginPage: true,
            makeLogin: { occasion in
                GatewayLogin(
                    rules, key: key, base: base, proof: proof, challenged: occasion.challenge?.url,
                    target: occasion.challenge == nil ? occasion.target : nil, provenForm: form,
                    retryRejectedAfter: retry)
            })
    }

    private var logout: GatewayLogout? {
        guard let settings = gateway.logout else { return nil }
        let url: WebURL? =
            switch settings.url {
            case .absolute(let url): url
            case .path(let path): upstream.url.resolving(path)
            }
        return url.map { GatewayLogout(name: challenge.name, url: $0, method: settings.method) }
    }

    /// The origins that the configuration names for its pages and forms.
    var origins: Set<Origin> {
        var origins: Set<Origin> = []
        for step in gateway.login {
            if case .absolute(let url)? = step.page { origins.insert(url.origin) }
            if case .address(.absolute(let url))? = step.target { origins.insert(url.origin) }
        }
        if case .absolute(let url)? = gateway.logout?.url { origins.insert(url.origin) }
        return origins
    }

    /// What is asked for ahead of any challenge: the folder of the pattern, `/app/` for `www.example.com/app/*`, since what lies
    /// above it need not be behind this login, nor the upstream's own address, where that lies elsewhere; else that address.
    private var base: WebURL {
        let origin = upstream.url.origin
        guard case .locations(let patterns) = challenge.place,
            let pattern = patterns.first(where: { $0.mayCover(origin) })
        else { return upstream.url }
        var parts = pattern.text.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count > 2, parts[0].hasSuffix(":"), parts[1].isEmpty { parts.removeFirst(2) }
        let path = parts.dropFirst().map { $0 == "*" ? "" : $0 }.joined(separator: "/")
        guard !path.isEmpty, let url = WebURL("\(origin)/\(path)") else { return upstream.url }
        return upstream.url.path.hasPrefix(url.path) ? upstream.url : url
    }

    private var rules: GatewayRules {
        var rules =
            switch gateway.preset {
            case .jSecurityCheck: GatewayRules.jSecurityCheck
            case .webseal: GatewayRules.webSEAL
            case .none: GatewayRules(detect: [], steps: [])
            }
        if !gateway.detect.isEmpty {
            // What the preset knows its page by still tells that a login has not worked.
            rules.markers += rules.detect
            rules.detect = gateway.detect
        }
        if gateway.login.count == 1, let preset = rules.steps.first, let step = gateway.login.first {
            rules.steps = [self.step(step, over: preset)]
        } else if !gateway.login.isEmpty {
            rules.steps = gateway.login.map { step($0, over: GatewayStep(target: .form)) }
        }
        if !gateway.success.isEmpty { rules.success = gateway.success }
        rules.failed = gateway.failed + rules.failed
        if let names = gateway.passedCookies { rules.callerCookies = Set(names) }
        rules.inject = gateway.inject.map { .init(name: $0.name.rawName, value: $0.value) }
        return rules
    }

    /// `preset` with what `step` names in its place; parameters by their names.
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
            let part = GatewayStep.Part(name: parameter.name, value: parameter.value)
            if let index = result.parameters.firstIndex(where: { $0.name == part.name }) {
                result.parameters[index] = part
            } else {
                result.parameters.append(part)
            }
        }
        if let hidden = step.hiddenFields { result.hiddenFields = hidden }
        result.body = step.body == .json ? .json : .form
        result.headers = step.headers.map { .init(name: $0.name.rawName, value: $0.value) }
        result.timeout = step.timeout
        result.success = step.success
        result.failed = step.failed
        result.extraction = step.extraction
        return result
    }
}

extension AddressReference {
    /// As it is written.
    fileprivate var text: String {
        switch self {
        case .absolute(let url): "\(url)"
        case .path(let path): path
        }
    }
}
