// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Charsets
internal import HTTPTypes
internal import Secrets

/// The form of one step on its page, with its action and its inputs.
struct GatewayForm {
    private let step: GatewayStep
    private let page: ExaminedResponse
    private let policy: FormActionPolicy
    private let html: HTMLPage
    private let form: HTMLPage.Form?
    /// The form as one that asks for a password, if the step fills that in.
    private let passwordForm: PasswordForm?
    private let base: WebURL

    init(_ step: GatewayStep, on page: ExaminedResponse, policy: FormActionPolicy) {
        self.step = step
        self.page = page
        self.policy = policy
        html = HTMLPage(page)
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
        checks?.differences(with: ["username", "password"].compactMap { use.credential[$0] }) ?? []
    }

    /// The checks of the form of a page against what a browser would submit; `nil` for an API.
    private var checks: FormFaults? {
        guard let form, isOfPage, step.fillsPasswordForm || step.hiddenFields else { return nil }
        return FormFaults(
            form: form, page: html, filled: filledInputs, omitsVisible: !step.fillsPasswordForm)
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
        try requireSubmittable(use, client)
        let received = client.received(with: page, for: url)
        let entries = try await entries(use, client, received)
        let parameters = entries.map { (name: $0.name, value: $0.value) }
        var request: SideRequest
        if let document = step.document {
            let json = try await rendered(client) { () async throws(TemplateError) in
                try await document.render(
                    use.credential.adding(client.extracted), received: received.value, adding: parameters)
            }
            request = .submitting(json, to: url, method, from: page, timeout: step.timeout)
        } else if step.body == .form {
            request = try submission(of: entries, to: url, method, client)
        } else {
            request = .submitting(parameters, as: step.body, to: url, method, from: page, timeout: step.timeout)
        }
        for header in step.headers {
            guard let name = HTTPField.Name(header.name) else { continue }
            request.fields[name] = try await render(header, use, client, received).revealText()
        }
        return request
    }

    /// Throws if a browser would not send the form, or if the daemon cannot send it as a browser does: an attempt would be lost.
    private func requireSubmittable(_ use: CredentialUse, _ client: GatewayClient) throws(LoginFailure) {
        var objection = checks?.objection
        if objection == nil, let name = passwordForm?.userField, !step.parameters.contains(where: { $0.name == name }),
            let value = use.credential["username"]
        {
            objection = checks?.objection(toEntering: value, into: name)
        }
        if let objection {
            throw client.failure(
                "The login form \(objection), so nothing was sent. Configure its fields in `login.parameters`, or use a login "
                    + "helper.", page)
        }
        guard let passwordForm, let field = passwordForm.emptyField, use.credential["username"] != nil,
            !step.parameters.contains(where: { $0.name == field })
        else { return }
        throw client.failure(
            "The login form has the field \(ServerText.name(field)), which is empty, and none that is known to be for the user's "
                + "name, so nothing was sent. Configure the field in `login.parameters`.", page)
    }

    /// Returns the request that sends `entries` as the page's form says, in its encoding.
    private func submission(
        of entries: [FormEntry], to url: WebURL, _ method: HTTPRequest.Method, _ client: GatewayClient
    ) throws(LoginFailure) -> SideRequest {
        // The form says how it is encoded if it goes to its own address.
        let isOwn = isOfPage && (step.target == .form || form.flatMap(action)?.path == url.path || isPreset)
        let submission = FormSubmission(entries, as: isOwn ? form?.body ?? .urlEncoded : .urlEncoded, in: charset)
        guard
            let request = SideRequest.submitting(
                submission, to: url, method, from: page, timeout: step.timeout,
                replacingQuery: isOfPage && step.target == .form)
        else {
            throw client.failure(
                "The form of the login page has the character set \(charset.name), to which this system cannot convert, so "
                    + "nothing was sent. Install the character sets of the C library (gconv).", page)
        }
        return request
    }

    /// The encoding of the form's entries.
    private var charset: Charset { isOfPage ? form?.charset(on: html.encoding) ?? .utf8 : .utf8 }

    /// The form to record after a login that worked. `nil` for a preset, or if nothing of the page is submitted.
    var formToRecord: AcceptedForm? {
        if isPreset { return nil }
        guard let form, let url = action(of: form) else { return nil }
        return AcceptedForm(
            origin: url.origin, path: url.pathWithoutParameters, inputs: Set(pageEntries(of: form).map(\.name)))
    }

    /// True if the form goes to the known address of a preset's server.
    var isPreset: Bool { if case .formEnding = step.target { true } else { false } }

    /// True if the form goes to a servlet container (`j_security_check`, Jakarta Servlet 6.0 §13.6.3), by the preset, by a
    /// configured address or by the page.
    var isServletContainers: Bool {
        switch step.target {
        case .address(let address):
            address.prefix { $0 != "?" && $0 != ";" }.hasSuffix(GatewayRules.servletEnding)
        case .form: form.flatMap(action)?.pathWithoutParameters.hasSuffix("/\(GatewayRules.servletEnding)") ?? false
        case .formEnding(let ending): ending == GatewayRules.servletEnding
        }
    }

    /// Returns whether the answer shows this form again: its action, and the input of the password, or every input that was
    /// filled in if none of them is for a password.
    func isShownAgain(in answer: ExaminedResponse) -> Bool {
        guard let form, let url = action(of: form), answer.body != nil else { return false }
        var names = (credentialInputs.map(\.name) + step.parameters.map(\.name)).filter { name in
            form.inputs.contains { $0.name == name && $0.type != "hidden" }
        }
        let passwords = names.filter { name in form.inputs.contains { $0.name == name && $0.type == "password" } }
        if !passwords.isEmpty { names = passwords }
        guard !names.isEmpty else { return false }
        let html = HTMLPage(answer)
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
            let inputs = Set(form.map(pageEntries)?.map(\.name) ?? [])
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
            if let written = form.action, !written.isEmpty {
                do throws(AddressFault) {
                    _ = try WebURL(reading: written.utf8, at: base)
                } catch {
                    throw client.failure(
                        "The address of the form on the login page \(error.reason), so nothing was sent. Set `login.url` to "
                            + "the address that receives the form.", page)
                }
            }
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

    /// Returns the entries of the page that are submitted in addition to the credential and the step's parameters.
    private func pageEntries(of form: HTMLPage.Form) -> [FormEntry] {
        let own = filledInputs
        guard let passwordForm else { return hiddenEntries(of: form).filter { !own.contains($0.name) } }
        return passwordForm.entries(in: charset, user: nil, password: nil).filter { !own.contains($0.name) }
    }

    /// Returns the hidden inputs to submit. Those of a preset's page that a caller chose are left out: the preset's
    /// servers do not need them.
    private func hiddenEntries(of form: HTMLPage.Form) -> [FormEntry] {
        if case .formEnding = step.target, policy.loginPage.isCallers { return [] }
        guard step.hiddenFields else { return [] }
        let own = Set(step.parameters.map(\.name) + (step.document?.memberNames ?? []))
        // A browser sends the button as well.
        let submitter = step.target == .form ? form.submitter : nil
        return form.entries(in: charset, where: { $0.type == "hidden" || $0 == submitter })
            .filter { !own.contains($0.name) }
    }

    /// Returns the form's own entries and the step's parameters. A parameter replaces an input of its name.
    private func entries(
        _ use: CredentialUse, _ client: GatewayClient, _ received: ReceivedValues
    ) async throws(LoginFailure) -> [FormEntry] {
        var entries: [FormEntry] = []
        let own = Set(step.parameters.map(\.name))
        if let passwordForm {
            let user = passwordForm.userField.map { own.contains($0) } == false ? try use.field("username") : nil
            let password = own.contains(passwordForm.passwordField) ? nil : try use.field("password")
            entries = passwordForm.entries(in: charset, user: user, password: password)
        } else if let form {
            entries = hiddenEntries(of: form)
        }
        for part in step.parameters {
            let value = try await render(part, use, client, received)
            if let index = entries.firstIndex(where: { $0.name == part.name }) {
                entries[index] = FormEntry(part.name, value)
                let rest = index + 1
                entries = entries[..<rest] + entries[rest...].filter { $0.name != part.name }
            } else {
                entries.append(FormEntry(part.name, value))
            }
        }
        return entries
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
