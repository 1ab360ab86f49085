// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

extension ChallengeSettings {
    /// The keys that belong to one kind of challenge only, which its first key names.
    private static let kinds: [(key: String, others: [String])] = [
        ("security-check", ["answer", "keep-attempts", "answer-url", "logout"]),
        ("gateway", ["detect", "success", "failed", "logout", "cookies"]),
        ("scheme", ["realm", "spn", "token"]),
        ("inject", []),
        ("handler", []),
    ]

    /// `challenges:`, each with the way to it; `upstreams` fill in what a challenge leaves to its upstream.
    static func read(_ value: Value, upstreams: [UpstreamSettings]) -> [Placed<ChallengeSettings>] {
        (value.list() ?? []).compactMap { element in
            element.fields().flatMap { read($0, upstreams: upstreams) }.map { Placed(path: element.path, value: $0) }
        }
    }

    private static func read(_ fields: Fields, upstreams: [UpstreamSettings]) -> ChallengeSettings? {
        let name = fields.required("name")?.name()
        let place = place(fields)
        let credentialValue = fields["credential"]
        let byUser = credentialValue.flatMap { $0.isMapping ? $0.credentialsByUser() : nil }
        let credential = credentialValue.flatMap { $0.isMapping ? nil : $0.name() }
        let retry = fields["retry-rejected"]
        let proof = fields["prove-at"]
        let proofPath = proof.flatMap { $0.originPath() }
        let login = fields["login"]
        let loginTime = login.flatMap(GatewaySettings.loginTime)
        let kind = kind(fields, login: login, place: place, upstreams: upstreams)
        fields.finish()
        let retryRejected = retry?.isKeyword("never") == true ? nil : retry?.duration()
        guard let name, let place, let kind else { return nil }
        if case .own = kind {
            let why =
                "is the handler's own affair: it finds its credentials itself, and wins its session when it is asked"
            for value in [credentialValue, retry, proof, login] { value?.report(why) }
        }
        let settings = ChallengeSettings(
            name: name, place: place, credential: credential, credentialsByUser: byUser, kind: kind,
            login: loginTime ?? .onDemand, retryRejected: retryRejected, proofPath: proofPath)
        if settings.letsPagesChoose {
            login?.report(
                "a page that a caller asked for could say where the form goes, until one login has worked: name the page by "
                    + "`page`, where the form goes by `url`, or an address that only a session opens by `prove-at`",
                severity: .warning)
        }
        if credentialValue == nil, settings.needsCredential { _ = fields.required("credential") }
        return settings
    }

    private static func place(_ fields: Fields) -> ChallengePlace? {
        let locations = fields["at"]
        let upstream = fields["upstream"]
        if let locations, let upstream {
            upstream.report("stands beside `at`, in line \(locations.keyMark.line): a challenge has one of them")
            return nil
        }
        if let upstream { return upstream.upstreamName().map(ChallengePlace.upstream) }
        guard let locations else {
            fields.value.report("has no place: `at` with location patterns, or `upstream`")
            return nil
        }
        let elements = locations.listOrOne()
        let patterns = elements.compactMap { $0.locationPattern() }
        if elements.isEmpty { locations.report("is empty: the challenge would stand nowhere") }
        return patterns.isEmpty || patterns.count < elements.count ? nil : .locations(patterns)
    }

    private static func kind(
        _ fields: Fields, login: Value?, place: ChallengePlace?, upstreams: [UpstreamSettings]
    ) -> ChallengeKind? {
        var written = kinds.map(\.key).filter(fields.has)
        // With a gateway they are the fields of its session.
        if written.contains("gateway") { written.removeAll { $0 == "inject" } }
        guard let key = written.first, written.count == 1 else {
            // Every key of every kind is known here, only too many or none.
            for kind in kinds { for key in [kind.key] + kind.others { _ = fields[key] } }
            let keys = kinds.map { "`\($0.key)`" }.joined(separator: ", ")
            fields.value.report(
                written.isEmpty
                    ? "has no kind: one of \(keys) is missing"
                    : "has several kinds: \(written.map { "`\($0)`" }.joined(separator: ", ")); write one challenge for each"
            )
            return nil
        }
        let own = kinds.first { $0.key == key }?.others ?? []
        for kind in kinds where kind.key != key {
            for other in kind.others where !own.contains(other) {
                fields[other]?.report("belongs to `\(kind.key)`, not to `\(key)`")
            }
        }
        if key != "gateway", let login, !login.isScalar {
            login.report("must be on-demand or at-start: the steps of a login belong to `gateway`")
        }
        switch key {
        case "gateway": return GatewaySettings.read(fields, login: login).map(ChallengeKind.gateway)
        case "handler": return fields.required("handler")?.handlerName().map(ChallengeKind.own)
        case "inject": return inject(fields).map(ChallengeKind.inject)
        case "scheme": return SchemeSettings.read(fields, place: place, upstreams: upstreams).map(ChallengeKind.scheme)
        default: return SecurityCheckSettings.read(fields).map(ChallengeKind.securityCheck)
        }
    }

    private static func inject(_ fields: Fields) -> [InjectedTemplate]? {
        guard let value = fields.required("inject") else { return nil }
        let templates = value.fieldTemplates()
        if value.isMapping, value.members()?.isEmpty == true { value.report("is empty: nothing would be injected") }
        return templates.isEmpty ? nil : templates
    }

    /// Whether something is taken from a credential.
    private var needsCredential: Bool {
        switch kind {
        case .gateway: true
        // Negotiate does with what GSS-API has: the ticket cache or keytab of the process.
        case .scheme(let settings): settings.schemes != [.negotiate]
        case .inject(let templates): templates.contains { !$0.value.fieldNames.isEmpty }
        case .own: false
        case .securityCheck(let settings): !settings.answer.fieldNames.isEmpty
        }
    }
}

extension SecurityCheckSettings {
    fileprivate static func read(_ fields: Fields) -> SecurityCheckSettings? {
        let check = fields.required("security-check")?.word()
        let answerValue = fields.required("answer")
        if let answerValue, !answerValue.isMapping { answerValue.report("must be a mapping: { pin: \"{pin}\" }") }
        let answer = answerValue.flatMap { $0.isMapping ? $0.answer() : nil }
        let keepAttempts = fields["keep-attempts"]?.integer(in: 0...1000)
        let answerURL = fields["answer-url"]?.addressReference()
        let logsOut = fields["logout"]?.flag()
        guard let check, let answer else { return nil }
        return SecurityCheckSettings(
            check: check, answer: answer, keepAttempts: keepAttempts ?? 1, answerURL: answerURL,
            logsOut: logsOut ?? false)
    }
}

extension ChallengeSettings {
    /// True if the form of a login goes where a page says that no configured address shows for sure.
    fileprivate var letsPagesChoose: Bool {
        guard case .gateway(let gateway) = kind, let first = gateway.login.first else { return false }
        return first.target == .form && first.page == nil && proofPath == nil
    }
}
