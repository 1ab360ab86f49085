// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes
internal import SettingsReading

/// Settings of one request of a login, and of the page before it.
package struct LoginStep: Sendable, Equatable {
    /// Address that the form is submitted to.
    package enum Target: Sendable, Hashable {
        /// A configured address.
        case address(AddressReference)
        /// The action of the page's own form, at the same origin only.
        case form
    }

    /// Encoding of the parameters.
    package typealias Body = GatewayStep.Body

    /// Page that is fetched first. Its cookies are kept.
    package var page: AddressReference?
    /// Address of the step; nil: the preset's.
    package var target: Target?
    /// Method.
    package var method: HTTPRequest.Method = .post
    /// Parameters, in the order of the file; empty for a JSON body.
    package var parameters: [NamedTemplate] = []
    /// JSON body; nil for a form.
    package var document: AnswerTemplate?
    /// True if the hidden inputs of the page's form are sent too; nil: the preset's.
    package var hiddenFields: Bool?
    /// Encoding of the parameters.
    package var body = Body.form
    /// More fields of the request.
    package var headers: [InjectedTemplate] = []
    /// Longest wait for the answer.
    package var timeout: Duration = .seconds(10)
    /// Evidence that this step worked; one match is enough.
    package var success: [ResponseMatcher] = []
    /// Evidence that this step failed, and why, examined before the gateway's.
    package var failed: [FailureMatcher] = []
    /// Values that are extracted from the answer, with the pointer to their lifetime in seconds.
    package var extraction = GatewayExtraction()
    /// Origins of the identity providers that the upstream sends its users to; in the first step only.
    package var through: [Origin] = []

    /// Creates a step. Values that are left out are the preset's.
    package init(
        page: AddressReference? = nil, target: Target? = nil, method: HTTPRequest.Method = .post,
        parameters: [NamedTemplate] = [], hiddenFields: Bool? = nil, body: Body = .form,
        headers: [InjectedTemplate] = [], timeout: Duration = .seconds(10)
    ) {
        self.page = page
        self.target = target
        self.method = method
        self.parameters = parameters
        self.hiddenFields = hiddenFields
        self.body = body
        self.headers = headers
        self.timeout = timeout
    }
}

extension LoginStep {
    fileprivate enum HiddenFields: String, CaseIterable { case hidden, none }

    private enum Keys {
        static let when = Key<LoginTime>(
            "when", .choice, default: .onDemand, "Time of the login, in the first step only.")
        static let page = Key(
            "page", .addressOrPath,
            without:
                "first step: `prove-at`, else the upstream's address, else the challenged one without its query; later "
                + "ones: the answer before", "Page that is fetched before the step; its cookies are kept.")
        static let through = Key(
            "through", .providers,
            "Origins of the identity providers to which the upstream sends its users, in the first step only.")
        static let target = Key(
            "url", .target,
            without: "the preset's; required with `none`",
            "Address of the step, with `{name}` for extracted values; `form` is the page's own form, at the same origin."
        )
        static let method = Key(
            "method", .method, default: LoginStep().method,
            "Method of the step; with `GET`, the parameters are sent as the query.")
        static let parameters = Key(
            "parameters", ValueForm("mapping of templates; with `body: json`, any mapping or list") { $0 },
            without: "the preset's", "Fields of the form, or the JSON body.")
        static let fields = Key(
            "fields", ValueForm<HiddenFields>.choice, without: "the preset's; with the preset `none`, `none`",
            "Inputs of the page's form that are sent too: the hidden ones, or none.")
        static let body = Key<Body>(
            "body", .choice, default: LoginStep().body, "Encoding of the parameters.")
        static let headers = Key("headers", .fieldTemplatesOfLogin, "More fields of the request.")
        static let timeout = Key(
            "timeout", .duration, default: LoginStep().timeout,
            "Time limit for the answer, and for a page of the login.")
        static let success = Key("success", .matchers, "Evidence that this step worked, if there are several steps.")
        static let failed = Key(
            "failed", .failureMatchers, "Evidence that this step failed, examined before the gateway's.")
        static let extract = Key(
            "extract", ValueForm("mapping of names to sources") { $0.extraction() },
            "Values of the answer, for later steps and `inject`: a JSON pointer (RFC 6901), or a source of values.")
        static let expires = Key(
            "expires", ValueForm("JSON pointer") { $0.jsonPointer() },
            "Pointer to the lifetime of the extracted values in the answer, in seconds.")
    }

    /// Table of `challenges.login`.
    static let section = KeySection(
        "challenges.login",
        [
            Keys.when, Keys.through, Keys.page, Keys.target, Keys.method, Keys.parameters, Keys.fields, Keys.body,
            Keys.headers,
            Keys.timeout, Keys.success, Keys.failed, Keys.extract, Keys.expires,
        ] + HelperLoginSettings.keys)

    static func page(_ fields: Fields) -> AddressReference? { fields[Keys.page] }

    /// Returns the value of `timeout` if it is written.
    static func writtenTimeout(_ fields: Fields) -> Duration? {
        fields.written(Keys.timeout).map { _ in fields[Keys.timeout] }
    }

    /// Returns the value of `when` of the only or first step.
    static func time(_ login: Value) -> LoginTime? {
        login.listOrOne().first?.member(Keys.when.name).flatMap { $0.node.isNull ? nil : $0.choice(LoginTime.self) }
    }

    static func read(_ value: Value, isFirst: Bool) -> LoginStep? {
        guard let fields = value.fields(of: section) else { return nil }
        var step = LoginStep()
        if let when = fields.written(Keys.when) {
            if !isFirst { when.report("is allowed in the first step only") }
        } else if isFirst {
            _ = fields[Keys.when]
        }
        if !isFirst { fields.written(Keys.through)?.report("is allowed in the first step only") }
        step.through = fields[Keys.through] ?? []
        step.page = fields[Keys.page]
        step.target = fields[Keys.target]
        step.method = fields[Keys.method]
        step.hiddenFields = fields[Keys.fields].map { $0 == .hidden }
        step.body = fields[Keys.body]
        if let parameters = fields[Keys.parameters] {
            switch step.body {
            case .form: step.parameters = parameters.parameters(inLogin: true)
            case .json: step.document = parameters.document()
            }
        }
        step.headers = fields[Keys.headers] ?? []
        step.timeout = fields[Keys.timeout]
        step.success = fields[Keys.success] ?? []
        step.failed = fields[Keys.failed] ?? []
        step.extraction = GatewayExtraction(fields[Keys.extract] ?? [], expires: fields[Keys.expires])
        return step
    }
}

extension ValueForm where Content == LoginStep.Target {
    /// An address, or the page's own form.
    fileprivate static let target = ValueForm("address, path, or `form`", choices: ["form"]) { value in
        value.isKeyword("form") ? .form : value.relativeReference().map(LoginStep.Target.address)
    }
}

extension Value {
    /// Returns names, with the pointers to their values in an answer.
    fileprivate func extraction() -> [GatewayExtraction.Part] {
        (members() ?? []).compactMap { name, value in
            guard (try? TextTemplate("{\(name)}"))?.fieldNames == [name] else {
                value.report("the name is not valid (use letters, digits, -, _ and .; not totp)")
                return nil
            }
            return value.source().map { GatewayExtraction.Part(name: name, source: $0) }
        }
    }

    /// Returns a JSON body, which is a mapping or a list.
    fileprivate func document() -> AnswerTemplate? {
        guard !isScalar else {
            report("must be a mapping or a list: it is the JSON body of the request")
            return nil
        }
        return answer(inLogin: true)
    }

    /// Returns a JSON pointer, or a source of values.
    private func source() -> ValueSource? {
        guard let text = word() else { return nil }
        if text.hasPrefix("/") { return jsonPointer().map(ValueSource.json) }
        do throws(TemplateError) {
            if let source = try ValueSource(parsing: text) { return source }
            report(
                "is neither a JSON pointer such as /data/token (RFC 6901) nor a source such as cookie:NAME, header:NAME or "
                    + "page:/expression with one (group)/")
        } catch {
            report(error.reason)
        }
        return nil
    }

    /// Returns an address as a page writes it: absolute, from its slash, or relative to the page.
    fileprivate func relativeReference() -> AddressReference? {
        guard let text = word() else { return nil }
        let isAbsolute = text.hasPrefix("//") || text.contains("://") || text.prefix { $0 != "/" }.contains(":")
        guard !isAbsolute, !text.hasPrefix("/") else { return addressReference() }
        guard WebURL("http://localhost/\(text)") != nil else {
            report("contains a character that is not allowed in an address; percent-encode it")
            return nil
        }
        return .path(text)
    }

    /// Returns a JSON pointer into an answer.
    fileprivate func jsonPointer() -> JSONPointer? {
        guard let text = word() else { return nil }
        guard let pointer = JSONPointer(text) else {
            report("is not a JSON pointer (use one such as /data/token, RFC 6901)")
            return nil
        }
        return pointer
    }
}

extension LoginStep {
    /// The fields of the credential, and the extracted values, that the step sends.
    var fieldNames: Set<String> {
        parameters.fieldNames.union(headers.fieldNames).union(document?.fieldNames ?? [])
    }

    /// The names in braces in the addresses of the step, which values of earlier answers replace.
    var namesInAddresses: Set<String> {
        var names = page.map { AddressTemplate.names(in: $0.text) } ?? []
        if case .address(let address)? = target { names.formUnion(AddressTemplate.names(in: address.text)) }
        return names
    }

    func add(to terms: inout LoginTerms, as key: String) {
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
        terms.add("\(key).json", document.map { String(decoding: $0.source.serialized(), as: UTF8.self) })
        terms.add("\(key).headers", headers.map { ($0.name.canonicalName, $0.value.source) })
        terms.add("\(key).extract", extraction.parts.map { ($0.name, $0.source.term) })
    }
}
