// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// The form of one step on its page, with its action and its inputs.
struct GatewayForm {
    private let step: GatewayStep
    private let page: ExaminedResponse
    private let policy: FormActionPolicy
    private let form: HTMLPage.Form?
    /// The form as one that asks for a password, if the step fills that in.
    private let passwordForm: PasswordForm?
    private let base: WebURL

    init(_ step: GatewayStep, on page: ExaminedResponse, policy: FormActionPolicy) {
        self.step = step
        self.page = page
        self.policy = policy
        let html = HTMLPage(parsing: page.body ?? [])
        // A page that a caller chose must not redirect its form.
        base = policy.loginPage.isCallers ? page.url : html.base.flatMap(page.url.resolving) ?? page.url
        passwordForm =
            step.fillsPasswordForm ? Self.passwordForm(of: html, at: page.url, base, like: policy.accepted) : nil
        let named = passwordForm?.form ?? Self.form(of: step, in: html)
        // A configured page may have a form with another address than the preset's.
        form =
            named ?? (step.page != nil && policy.loginPage.source == .named ? html.passwordForm?.form : nil)
    }

    /// The names of the inputs that a credential or the configuration fills in.
    private var filledInputs: Set<String> {
        Set(credentialInputs.map(\.name) + step.parameters.map(\.name) + (step.document?.memberNames ?? []))
    }

    /// Differences between the submission and what a browser would submit, as sentences.
    func faults(of use: CredentialUse) -> [String] {
        guard let form, isOfPage, step.fillsPasswordForm || step.hiddenFields else { return [] }
        let values = ["username", "password"].compactMap { use.credential[$0] }
        return FormFaults.of(form, on: page, filling: filledInputs, with: values)
    }

    /// True if a form of a page is submitted as a browser does; false for an API.
    var isOfPage: Bool { form != nil && step.body == .form && step.document == nil }

    /// The inputs for the user's name and the password, with the credential's fields that fill them in.
    private var credentialInputs: [(name: String, field: String)] {
        guard let passwordForm else { return [] }
        return (passwordForm.userField.map { [($0, "username")] } ?? []) + [(passwordForm.passwordField, "password")]
    }

    /// Returns the request that submits the form.
    func request(filledFrom use: CredentialUse, by client: GatewayClient) async throws(LoginFailure) -> SideRequest {
        let url = try target(client)
        if step.fillsPasswordForm {
            guard let passwordForm else {
                throw client.failure(
                    "The login page has no form with one password input. If a script builds the form, or it has other "
                        + "fields, use `gateway: none` and configure `login`.", page)
            }
            let user = passwordForm.userField.map { ", the user's name to \(ServerText.name($0))" } ?? ""
            client.report(
                "the login form goes to \(url.path), the password to \(ServerText.name(passwordForm.passwordField))\(user)"
            )
        }
        guard let method = HTTPRequest.Method(step.method) else {
            throw client.failure("The method of the login is not valid. Check `login.method`.")
        }
        let received = client.received(with: page, for: url)
        let parameters = try await parameters(use, client, received)
        var request: SideRequest
        if let document = step.document {
            let json = try await rendered(client) { () async throws(TemplateError) in
                try await document.render(
                    use.credential.adding(client.extracted), received: received.value, adding: parameters)
            }
            request = .submitting(json, to: url, method, from: page, timeout: step.timeout)
        } else {
            request = .submitting(parameters, as: step.body, to: url, method, from: page, timeout: step.timeout)
        }
        for header in step.headers {
            guard let name = HTTPField.Name(header.name) else { continue }
            request.fields[name] = try await render(header, use, client, received).revealText()
        }
        return request
    }

    /// The form to record after a login that worked. `nil` for a preset, or if nothing of the page is submitted.
    var formToRecord: AcceptedForm? {
        if isPreset { return nil }
        guard let form, let url = action(of: form) else { return nil }
        return AcceptedForm(
            origin: url.origin, path: url.pathWithoutParameters, inputs: Set(pageInputs(of: form).map(\.name)))
    }

    /// True if the form goes to the known address of a preset's server.
    var isPreset: Bool { if case .formEnding = step.target { true } else { false } }

    /// True if the form goes to a servlet container (`j_security_check`), by the preset or by a configured address.
    var isServletContainers: Bool {
        switch step.target {
        case .address(let address):
            address.prefix { $0 != "?" && $0 != ";" }.hasSuffix(GatewayRules.servletEnding)
        case .form: false
        case .formEnding(let ending): ending == GatewayRules.servletEnding
        }
    }

    /// Returns whether the answer shows this form again: its action, and the input of the password, or every input that was
    /// filled in if none of them is for a password.
    func isShownAgain(in answer: ExaminedResponse) -> Bool {
        guard let form, let url = action(of: form), let body = answer.body else { return false }
        var names = (credentialInputs.map(\.name) + step.parameters.map(\.name)).filter { name in
            form.inputs.contains { $0.name == name && $0.type != "hidden" }
        }
        let passwords = names.filter { name in form.inputs.contains { $0.name == name && $0.type == "password" } }
        if !passwords.isEmpty { names = passwords }
        guard !names.isEmpty else { return false }
        let html = HTMLPage(parsing: body)
        let base = html.base.flatMap(answer.url.resolving) ?? answer.url
        return html.forms.contains { other in
            let written = other.action ?? ""
            let action = written.isEmpty ? answer.url : base.resolving(written)
            // The next page of a login may have the same action and show the name again, but asks for the password.
            return other.hasPassword == form.hasPassword && action?.origin == url.origin
                && action?.pathWithoutParameters == url.pathWithoutParameters
                && names.allSatisfy { name in other.inputs.contains { $0.name == name && $0.type != "hidden" } }
        }
    }

    private func target(_ client: GatewayClient) throws(LoginFailure) -> WebURL {
        switch step.target {
        case .address(let reference):
            // A caller that chose the page has not chosen the base of `login.url`.
            let address = policy.loginPage.isCallers ? policy.base : page.url
            let url = try client.resolve(reference, at: address, else: address)
            let inputs = Set(form.map(pageInputs)?.map(\.name) ?? [])
            if let objection = policy.objection(toInputs: inputs) { throw refusal(objection, client) }
            return url
        case .form:
            guard let form else {
                throw client.failure(
                    "The login page has no form whose action could be used. If the page has changed, set `login.url` to "
                        + "the address of the form.", page)
            }
            let url = try requireAction(of: form, client)
            if let formToRecord, let objection = policy.objection(to: formToRecord) { throw refusal(objection, client) }
            return url
        case .formEnding(let ending):
            let url: WebURL
            if let form {
                url = try requireAction(of: form, client)
            } else {
                let address = policy.loginPage.address
                url = try client.resolve(ending, at: address, else: address)
            }
            guard policy.allows(url, ending: ending) else {
                throw refusal(
                    "The form of the login page goes to \(url.path), which is not an expected address of the "
                        + "server's login, so nothing was sent. If the address is right, set `login.url` to it.", client
                )
            }
            return url
        }
    }

    /// Returns the failure for a page whose form gets nothing. A page that a caller chose concerns that caller's request only:
    /// the next one may be tried at once.
    private func refusal(_ objection: String, _ client: GatewayClient) -> LoginFailure {
        var failure = client.failure(objection, page)
        if policy.loginPage.isCallers {
            failure.isCancelled = true
            failure.lacksChallenge = true
        }
        return failure
    }

    /// Returns the form's action. Throws if a page would send a secret to another origin.
    private func requireAction(of form: HTMLPage.Form, _ client: GatewayClient) throws(LoginFailure) -> WebURL {
        guard let url = action(of: form) else {
            throw client.failure(
                "The form of the login page goes to another server, so nothing was sent. If that is right, set "
                    + "`login.url` to its address.", page)
        }
        return url
    }

    private func action(of form: HTMLPage.Form) -> WebURL? {
        let written = form.action ?? ""
        guard let url = written.isEmpty ? page.url : base.resolving(written), url.origin == page.url.origin else {
            return nil
        }
        return url
    }

    /// Returns the inputs of the page that are submitted in addition to the credential and the step's parameters.
    private func pageInputs(of form: HTMLPage.Form) -> [HTMLPage.Input] {
        guard let passwordForm else { return hiddenInputs(of: form) }
        let own = Set(step.parameters.map(\.name))
        return passwordForm.otherInputs.filter { !own.contains($0.name) }
    }

    /// Returns the hidden inputs to submit. Those of a preset's page that a caller chose are left out: the preset's
    /// servers do not need them.
    private func hiddenInputs(of form: HTMLPage.Form) -> [HTMLPage.Input] {
        if case .formEnding = step.target, policy.loginPage.isCallers { return [] }
        guard step.hiddenFields else { return [] }
        let own = Set(step.parameters.map(\.name) + (step.document?.memberNames ?? []))
        return form.inputs.filter { $0.type == "hidden" && !$0.name.isEmpty && !own.contains($0.name) }
    }

    /// Returns the form's own values and the step's parameters. A parameter replaces an input of its name.
    private func parameters(
        _ use: CredentialUse, _ client: GatewayClient, _ received: ReceivedValues
    ) async throws(LoginFailure) -> [(name: String, value: Secret)] {
        var parameters: [(name: String, value: Secret)] = []
        if let passwordForm {
            let own = Set(step.parameters.map(\.name))
            parameters += pageInputs(of: passwordForm.form).map { ($0.name, Secret($0.value)) }
            for input in credentialInputs where !own.contains(input.name) {
                parameters.append((input.name, try use.field(input.field)))
            }
        } else if let form {
            parameters += hiddenInputs(of: form).map { ($0.name, Secret($0.value)) }
        }
        for part in step.parameters { parameters.append((part.name, try await render(part, use, client, received))) }
        return parameters
    }

    private func render(
        _ part: GatewayStep.Part, _ use: CredentialUse, _ client: GatewayClient, _ received: ReceivedValues
    ) async throws(LoginFailure) -> Secret {
        try await rendered(client) { () async throws(TemplateError) in
            try await part.value.render(use.credential.adding(client.extracted), received: received.value)
        }
    }

    private func rendered<Value>(
        _ client: GatewayClient, _ render: () async throws(TemplateError) -> Value
    ) async throws(LoginFailure) -> Value {
        do throws(TemplateError) {
            return try await render()
        } catch {
            throw error.loginFailure(challenge: client.name)
        }
    }

    /// Returns the login form of a page: the accepted one if the page has it, else the first. Somebody may have put another form
    /// before the one that is known.
    private static func passwordForm(
        of html: HTMLPage, at address: WebURL, _ base: WebURL, like accepted: AcceptedForm?
    ) -> PasswordForm? {
        guard let accepted else { return html.passwordForm }
        for form in html.forms {
            let written = form.action ?? ""
            let action = written.isEmpty ? address : base.resolving(written)
            if action?.pathWithoutParameters == accepted.path, let login = PasswordForm(form) { return login }
        }
        return html.passwordForm
    }

    /// Returns the form to submit: by its action, else the one with the most of the parameters, else one with a
    /// password.
    private static func form(of step: GatewayStep, in page: HTMLPage) -> HTMLPage.Form? {
        if case .formEnding(let ending) = step.target {
            let ending = ending.lowercased()
            return page.forms.first { form in
                let path = form.actionPath.lowercased()
                return path.hasSuffix(ending) || "/\(path)".hasSuffix(ending)
            }
        }
        let names = Set(step.parameters.map(\.name) + (step.document?.memberNames ?? []))
        let shared = page.forms.map { form in form.inputs.count { names.contains($0.name) } }
        if let most = shared.max(), most > 0, let index = shared.firstIndex(of: most) { return page.forms[index] }
        return page.forms.first { $0.inputs.contains { $0.type == "password" } } ?? page.forms.first
    }
}

extension HTMLPage.Form {
    /// True if the form asks for a password.
    fileprivate var hasPassword: Bool { inputs.contains { $0.type == "password" } }
}

extension SideRequest {
    /// The media types that a browser accepts. Content-aware gateways answer by the first one.
    static let pageTypes = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"

    /// Returns the request that submits `parameters` from `page` as a browser does. GET and HEAD append them to the
    /// query of `url`.
    static func submitting(
        _ parameters: [(name: String, value: Secret)], as body: GatewayStep.Body = .form, to url: WebURL,
        _ method: HTTPRequest.Method, from page: ExaminedResponse, timeout: Duration
    ) -> SideRequest {
        var request = SideRequest(method: method, url: url, fields: [.accept: pageTypes], timeout: timeout)
        guard method != .get, method != .head else {
            let pairs = parameters.map { (name: $0.name, value: $0.value.revealText()) }
            let query = [url.query, pairs.isEmpty ? nil : FormEncoding.query(pairs)].compactMap(\.self)
            request.url = WebURL(
                origin: url.origin, path: url.path, query: query.isEmpty ? nil : query.joined(separator: "&"))
            return request
        }
        switch body {
        case .form:
            request.body = FormEncoding.body(parameters)
            request.fields[.contentType] = FormEncoding.mediaType
            request.nameOrigin(of: page)
            return request
        case .json:
            var members: [String: JSONValue] = [:]
            for parameter in parameters { members[parameter.name] = .string(parameter.value.revealText()) }
            return submitting(SecretJSON(.object(members)), to: url, method, from: page, timeout: timeout)
        }
    }

    /// Returns the request that sends `json` from `page` as a page's script does.
    static func submitting(
        _ json: SecretJSON, to url: WebURL, _ method: HTTPRequest.Method, from page: ExaminedResponse,
        timeout: Duration
    ) -> SideRequest {
        let fields: HTTPFields = [.accept: "application/json, */*;q=0.8", .contentType: "application/json"]
        var request = SideRequest(method: method, url: url, fields: fields, timeout: timeout)
        request.body = json.text
        request.nameOrigin(of: page)
        return request
    }

    /// Names the page: frameworks check that a form came from their own. The page's query is left out.
    private mutating func nameOrigin(of page: ExaminedResponse) {
        fields[.origin] = page.url.origin.description
        fields[.referer] = "\(page.url.origin)\(page.url.path)"
    }
}
