// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import Settings

// What of the settings changes what a login means: who is logged in, at which server, for what, and what its session adds to
// requests. Not: where the challenge stands, how its pages and failures are told, times, names, what is logged out or kept.
extension ChallengeSettings {
    /// The terms of this challenge at `upstream`. Without the credential where the caller chooses it: each session's key names that.
    func terms(at upstream: UpstreamSettings) -> LoginTerms {
        var terms = LoginTerms()
        terms.add("kind", kind.term)
        if credentialsByUser == nil { terms.add("credential", credential) }
        switch kind {
        case .gateway(let gateway): gateway.add(to: &terms)
        case .inject(let fields): terms.add("inject", fields.map { ($0.name.canonicalName, $0.value.source) })
        case .own(let handler): terms.add("handler", handler)
        case .scheme(let scheme): scheme.add(to: &terms, at: upstream)
        case .securityCheck(let check): check.add(to: &terms, at: upstream)
        }
        return terms
    }
}

extension MobileFirstSettings {
    /// The terms of the upstream's own client.
    var terms: LoginTerms {
        var terms = LoginTerms()
        terms.add("kind", "mobilefirst")
        terms.add("mobilefirst.api", "\(api)")
        terms.add("mobilefirst.application", application)
        terms.add("mobilefirst.platform", platform.rawValue)
        terms.add("mobilefirst.version", version)
        terms.add("mobilefirst.scope", Set(scope).sorted())
        return terms
    }
}

extension ChallengeKind {
    fileprivate var term: String {
        switch self {
        case .gateway: "gateway"
        case .inject: "inject"
        case .own: "handler"
        case .scheme: "scheme"
        case .securityCheck: "security-check"
        }
    }
}

extension GatewaySettings {
    fileprivate func add(to terms: inout LoginTerms) {
        terms.add("gateway", preset.rawValue)
        for (index, step) in login.enumerated() { step.add(to: &terms, as: "login[\(index)]") }
        terms.add("inject", inject.map { ($0.name.canonicalName, $0.value.source) })
        if let passedCookies {
            terms.add("cookies.pass", passedCookies.isEmpty ? [""] : Set(passedCookies).sorted())
        }
    }
}

extension LoginStep {
    fileprivate func add(to terms: inout LoginTerms, as key: String) {
        terms.add("\(key).page", page?.term)
        switch target {
        case .address(let address): terms.add("\(key).url", address.term)
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

extension SchemeSettings {
    fileprivate func add(to terms: inout LoginTerms, at upstream: UpstreamSettings) {
        terms.add("scheme", schemes.map(\.rawValue))
        terms.add("realm", realm)
        terms.add("spn", servicePrincipal)
        guard let token else { return }
        terms.add("token.grant", token.grant.rawValue)
        let server = token.grant == .mobileFirst ? upstream.mobileFirst?.api.appending(path: "az/v1/token") : nil
        terms.add("token.url", (token.url ?? server).map { "\($0)" })
        terms.add("token.issuers", token.issuers.map(\.issuer).sorted())
        terms.add("token.scope", Set(token.scope).sorted())
        terms.add("token.audience", token.audience)
        terms.add("token.parameters", token.parameters.map { ($0.name, $0.value.source) })
        terms.add("token.client-auth", (token.clientAuthentication ?? .basic).rawValue)
        terms.add("token.field", token.field.canonicalName)
        terms.add("token.prefix", token.prefix)
    }
}

extension SecurityCheckSettings {
    fileprivate func add(to terms: inout LoginTerms, at upstream: UpstreamSettings) {
        terms.add("security-check", check)
        terms.add("answer", json: answer.source)
        switch answerURL {
        case .absolute(let url): terms.add("answer-url", "\(url)")
        case .path(let path): terms.add("answer-url", upstream.url.resolving(path).map { "\($0)" } ?? path)
        case nil: break
        }
    }
}

extension AddressReference {
    fileprivate var term: String {
        switch self {
        case .absolute(let url): "\(url)"
        case .path(let path): path
        }
    }
}
