// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// The form of one step on its page: where it goes and what goes along.
struct GatewayForm {
    private let step: GatewayStep
    private let page: ExaminedResponse
    private let targets: GatewayTargets
    private let form: HTMLPage.Form?
    private let base: WebURL

    /// The form of `step` on `page`.
    init(_ step: GatewayStep, on page: ExaminedResponse, to targets: GatewayTargets) {
        self.step = step
        self.page = page
        self.targets = targets
        let html = HTMLPage(parsing: page.body ?? [])
        // What a caller chose must not move where its form goes.
        base = targets.entrance.isCallers ? page.url : html.base.flatMap(page.url.resolving) ?? page.url
        form = Self.form(of: step, in: html)
    }

    /// The request that submits it.
    func request(filledFrom use: CredentialUse, by visit: GatewayVisit) throws(LoginFailure) -> SideRequest {
        let url = try target(visit)
        guard let method = HTTPRequest.Method(step.method) else {
            throw visit.failure("The method of the login is none. Check `login.method`.")
        }
        var request = SideRequest.submitting(
            try parameters(use, visit), as: step.body, to: url, method, from: page, timeout: step.timeout)
        for header in step.headers {
            guard let name = HTTPField.Name(header.name) else { continue }
            request.fields[name] = try render(header, use, visit).revealText()
        }
        return request
    }

    /// What is remembered of it once the login has worked; `nil` if the configuration says where it goes.
    var provable: ProvenForm.Form? {
        guard step.target == .form, let form, let url = action(of: form) else { return nil }
        return ProvenForm.Form(path: url.pathWithoutParameters, hidden: Set(hiddenInputs(of: form).map(\.name)))
    }

    /// True if it goes to the address of a server that is known.
    var isPreset: Bool { if case .formEnding = step.target { true } else { false } }

    /// Returns whether the answer shows this same form again: the same action, and every input that was filled in.
    func isAgain(in answer: ExaminedResponse) -> Bool {
        guard let form, let url = action(of: form), let body = answer.body else { return false }
        let names = step.parameters.map(\.name).filter { name in
            form.inputs.contains { $0.name == name && $0.type != "hidden" }
        }
        guard !names.isEmpty else { return false }
        let html = HTMLPage(parsing: body)
        let base = html.base.flatMap(answer.url.resolving) ?? answer.url
        return html.forms.contains { other in
            let written = other.action ?? ""
            let action = written.isEmpty ? answer.url : base.resolving(written)
            return action?.origin == url.origin && action?.pathWithoutParameters == url.pathWithoutParameters
                && names.allSatisfy { name in other.inputs.contains { $0.name == name && $0.type != "hidden" } }
        }
    }

    private func target(_ visit: GatewayVisit) throws(LoginFailure) -> WebURL {
        switch step.target {
        case .address(let reference):
            // A caller that chose the page has not chosen what `login.url` is relative to.
            let address = targets.entrance.isCallers ? targets.base : page.url
            return try visit.resolve(reference, at: address, else: address)
        case .form:
            guard let form else {
                throw visit.failure(
                    "The login page has no form, whose action was to be used; has it changed? Look at it, and name where the "
                        + "form goes by `login.url`.", page)
            }
            let url = try requireAction(of: form, visit)
            if let provable, let objection = targets.objection(to: provable) { throw visit.failure(objection, page) }
            return url
        case .formEnding(let ending):
            let url: WebURL
            if let form {
                url = try requireAction(of: form, visit)
            } else {
                let address = targets.entrance.address
                url = try visit.resolve(ending, at: address, else: address)
            }
            guard targets.allows(url, ending: ending) else {
                throw visit.failure(
                    "The form of the login page goes to \(url.path), where the server's own login is not expected, so "
                        + "nothing was sent. If that is right, name its address by `login.url`.", page)
            }
            return url
        }
    }

    /// What a page says must not send a secret anywhere else.
    private func requireAction(of form: HTMLPage.Form, _ visit: GatewayVisit) throws(LoginFailure) -> WebURL {
        guard let url = action(of: form) else {
            throw visit.failure(
                "The form of the login page goes to another server, so nothing was sent. If that is right, name its "
                    + "address by `login.url`.", page)
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

    /// The hidden inputs that go along. Those of a preset's page that a caller chose stay: its servers need none.
    private func hiddenInputs(of form: HTMLPage.Form) -> [HTMLPage.Input] {
        if case .formEnding = step.target, targets.entrance.isCallers { return [] }
        guard step.hiddenFields else { return [] }
        let own = Set(step.parameters.map(\.name))
        return form.inputs.filter { $0.type == "hidden" && !$0.name.isEmpty && !own.contains($0.name) }
    }

    /// The hidden inputs of the page's form, then the step's own parameters in their place or behind them.
    private func parameters(
        _ use: CredentialUse, _ visit: GatewayVisit
    ) throws(LoginFailure) -> [(name: String, value: Secret)] {
        var parameters: [(name: String, value: Secret)] = []
        if let form { parameters += hiddenInputs(of: form).map { ($0.name, Secret($0.value)) } }
        for part in step.parameters { parameters.append((part.name, try render(part, use, visit))) }
        return parameters
    }

    private func render(
        _ part: GatewayStep.Part, _ use: CredentialUse, _ visit: GatewayVisit
    ) throws(LoginFailure) -> Secret {
        do throws(TemplateError) {
            return try part.value.render(use.credential.adding(visit.extracted))
        } catch {
            throw error.loginFailure(challenge: visit.name)
        }
    }

    /// The form that is meant: by its action, else the one that has the most of the parameters, else one with a password.
    private static func form(of step: GatewayStep, in page: HTMLPage) -> HTMLPage.Form? {
        if case .formEnding(let ending) = step.target {
            let ending = ending.lowercased()
            return page.forms.first { form in
                let path = form.actionPath.lowercased()
                return path.hasSuffix(ending) || "/\(path)".hasSuffix(ending)
            }
        }
        let names = Set(step.parameters.map(\.name))
        let shared = page.forms.map { form in form.inputs.count { names.contains($0.name) } }
        if let most = shared.max(), most > 0, let index = shared.firstIndex(of: most) { return page.forms[index] }
        return page.forms.first { $0.inputs.contains { $0.type == "password" } } ?? page.forms.first
    }
}
