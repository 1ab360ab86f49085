// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

extension GatewaySettings {
    /// Reads the preset, and what differs from it.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> GatewaySettings? {
        let login = context.login
        let preset = fields.required("gateway")?.choice(Preset.self)
        let detect = fields["detect"]?.listOrOne() ?? []
        let success = fields["success"]?.listOrOne() ?? []
        let failed = fields["failed"]?.listOrOne() ?? []
        let logout = fields["logout"].flatMap(LogoutSettings.read)
        let cookies = fields["cookies"]
        let steps = login.map { $0.isScalar ? [] : $0.listOrOne() } ?? []
        let injectValue = fields["inject"]
        var settings = GatewaySettings(
            preset: preset ?? .none, detect: detect.compactMap(ResponseMatcher.read),
            login: steps.enumerated().compactMap { LoginStep.read($1, isFirst: $0 == 0) },
            success: success.compactMap(ResponseMatcher.read), failed: failed.compactMap(FailureMatcher.read),
            logout: logout)
        settings.inject = injectValue?.fieldTemplates() ?? []
        settings.passedCookies = cookies?.passedCookies()
        settings.checkExtraction(login)
        guard preset == Preset.none else { return preset.map { _ in settings } }
        if detect.isEmpty { fields.value.report("the preset none needs `detect`: nothing tells the login page") }
        if steps.isEmpty { fields.value.report("the preset none needs `login` with the address of the form") }
        if !steps.isEmpty, settings.login.contains(where: { $0.target == nil }) {
            login?.report("each step of the preset none needs a url")
        }
        return settings
    }

    /// Reports a value that is taken from an answer and sent nowhere: a login in vain.
    private func checkExtraction(_ login: Value?) {
        var used = inject.fieldNames
        for step in self.login.reversed() {
            for part in step.extraction.parts where !used.contains(part.name) {
                login?.report(
                    "nothing sends {\(part.name)}, which `extract` takes: add `inject`, or a parameter of a later step")
            }
            used.formUnion(step.parameters.fieldNames.union(step.headers.fieldNames))
        }
    }

    /// A word, or `when` in a login's only or first step.
    package static func loginTime(_ login: Value) -> LoginTime? {
        guard !login.isScalar else { return login.choice(LoginTime.self) }
        return login.listOrOne().first?.loginStepTime()
    }

    /// Warns where the form of a login goes where a page says that no configured address shows for sure.
    package func check(_ challenge: ChallengeSettings, login value: Value?) {
        guard let first = login.first, first.target == .form, first.page == nil, challenge.proofPath == nil else {
            return
        }
        value?.report(
            "a page that a caller asked for could say where the form goes, until one login has worked: name the page by "
                + "`page`, where the form goes by `url`, or an address that only a session opens by `prove-at`",
            severity: .warning)
    }
}

extension Value {
    fileprivate func loginStepTime() -> LoginTime? {
        guard case .mapping(let entries, _) = node.content, let entry = entries.first(where: { $0.key == "when" })
        else {
            return nil
        }
        return child(entry).choice(LoginTime.self)
    }
}

extension LoginStep {
    fileprivate enum HiddenFields: String, CaseIterable { case hidden, none }

    fileprivate static func read(_ value: Value, isFirst: Bool) -> LoginStep? {
        guard let fields = value.fields() else { return nil }
        var step = LoginStep()
        let when = fields["when"]
        if !isFirst { when?.report("stands in the first step only") }
        step.page = fields["page"]?.addressReference()
        step.target = fields["url"].flatMap { url in
            url.isKeyword("form") ? .form : url.relativeReference().map(Target.address)
        }
        if let method = fields["method"]?.method() { step.method = method }
        step.parameters = fields["parameters"]?.parameters() ?? []
        step.hiddenFields = fields["fields"]?.choice(HiddenFields.self).map { $0 == .hidden }
        if let body = fields["body"]?.choice(Body.self) { step.body = body }
        step.headers = fields["headers"]?.fieldTemplates() ?? []
        if let timeout = fields["timeout"]?.duration() { step.timeout = timeout }
        step.success = (fields["success"]?.listOrOne() ?? []).compactMap(ResponseMatcher.read)
        step.failed = (fields["failed"]?.listOrOne() ?? []).compactMap(FailureMatcher.read)
        step.extraction = GatewayExtraction(
            fields["extract"]?.extraction() ?? [], expires: fields["expires"]?.jsonPointer())
        fields.finish()
        return step
    }
}

extension Value {
    /// Names, and where their values stand in an answer.
    fileprivate func extraction() -> [GatewayExtraction.Part] {
        (members() ?? []).compactMap { name, value in
            guard (try? TextTemplate("{\(name)}"))?.fieldNames == [name] else {
                value.report("the name is made of letters, digits, -, _ and ., and is not totp")
                return nil
            }
            return value.jsonPointer().map { GatewayExtraction.Part(name: name, pointer: $0) }
        }
    }

    /// A place in the JSON of an answer.
    fileprivate func jsonPointer() -> JSONPointer? {
        guard let text = word() else { return nil }
        guard let pointer = JSONPointer(text) else {
            report("is no place in a JSON text: write it as /data/token (RFC 6901)")
            return nil
        }
        return pointer
    }
}

extension Value {
    /// The names under `pass`; `nil` if it is not there.
    fileprivate func passedCookies() -> [String]? {
        guard let fields = fields() else { return nil }
        let names = fields["pass"]?.listOrOne().compactMap { $0.cookieName() }
        fields.finish()
        return names
    }

    /// A cookie's name, which is a token (RFC 6265 §4.1.1).
    private func cookieName() -> String? {
        guard let name = word() else { return nil }
        guard HTTPField.Name(name) != nil else {
            report("\"\(name)\" is not a valid cookie name: it has no white space and none of = ; ,")
            return nil
        }
        return name
    }

    /// An address as a page writes it: absolute, from its slash on, or relative to the page.
    fileprivate func relativeReference() -> AddressReference? {
        guard let text = word() else { return nil }
        let isAbsolute = text.hasPrefix("//") || text.contains("://") || text.prefix { $0 != "/" }.contains(":")
        guard !isAbsolute, !text.hasPrefix("/") else { return addressReference() }
        guard WebURL("http://localhost/\(text)") != nil else {
            report("holds a sign that no address has; percent-encode it")
            return nil
        }
        return .path(text)
    }
}

extension LogoutSettings {
    fileprivate static func read(_ value: Value) -> LogoutSettings? {
        guard let fields = value.fields() else { return nil }
        let url = fields.required("url")?.addressReference()
        let method = fields["method"]?.method()
        fields.finish()
        return url.map { LogoutSettings(url: $0, method: method ?? .get) }
    }
}
