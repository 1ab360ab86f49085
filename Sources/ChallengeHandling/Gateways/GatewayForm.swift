// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// The form of one step on its page: where it goes and what goes along.
struct GatewayForm {
    /// What a browser says that it takes. The first type decides what content-aware gateways answer.
    static let pageTypes = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"

    private let step: GatewayStep
    private let page: ExaminedResponse
    private let entrance: WebURL
    private let form: HTMLPage.Form?
    private let base: WebURL

    /// The form of `step` on `page`, to which `entrance` led.
    init(_ step: GatewayStep, on page: ExaminedResponse, entrance: WebURL) {
        self.step = step
        self.page = page
        self.entrance = entrance
        let html = HTMLPage(parsing: page.body ?? [])
        base = html.base.flatMap(page.url.resolving) ?? page.url
        form = Self.form(of: step, in: html)
    }

    /// The request that submits it.
    func request(filledFrom use: CredentialUse, by visit: GatewayVisit) throws(LoginFailure) -> SideRequest {
        var url = try target(visit)
        guard let method = HTTPRequest.Method(step.method) else {
            throw visit.failure("The method of the login is none. Check `login.method`.")
        }
        let parameters = try parameters(use, visit)
        var fields: HTTPFields = [.accept: Self.pageTypes]
        var body: Secret?
        switch step.body {
        case _ where method == .get || method == .head:
            let pairs = parameters.map { (name: $0.name, value: $0.value.revealText()) }
            let query = [url.query, pairs.isEmpty ? nil : FormEncoding.query(pairs)].compactMap(\.self)
            url = WebURL(
                origin: url.origin, path: url.path, query: query.isEmpty ? nil : query.joined(separator: "&"))
        case .form:
            body = FormEncoding.body(parameters)
            fields[.contentType] = FormEncoding.mediaType
        case .json:
            var members: [String: JSONValue] = [:]
            for parameter in parameters { members[parameter.name] = .string(parameter.value.revealText()) }
            body = SecretJSON(.object(members)).text
            fields[.contentType] = "application/json"
            fields[.accept] = "application/json, */*;q=0.8"
        }
        // As a browser does; frameworks take it for a sign that the form came from their page. Queries stay here.
        if method != .get, method != .head {
            fields[.origin] = page.url.origin.description
            fields[.referer] = "\(page.url.origin)\(page.url.path)"
        }
        for header in step.headers {
            guard let name = HTTPField.Name(header.name) else { continue }
            fields[name] = try render(header, use, visit).revealText()
        }
        return SideRequest(method: method, url: url, fields: fields, body: body, timeout: step.timeout)
    }

    private func target(_ visit: GatewayVisit) throws(LoginFailure) -> WebURL {
        switch step.target {
        case .address(let reference):
            return try visit.resolve(reference, at: page.url, else: page.url)
        case .form:
            guard let form else {
                throw visit.failure(
                    "The login page has no form, whose action was to be used; has it changed? Look at it, and name where the "
                        + "form goes by `login.url`.", page)
            }
            return try action(of: form, visit)
        case .formEnding(let ending):
            guard let form else { return try visit.resolve(ending, at: entrance, else: entrance) }
            return try action(of: form, visit)
        }
    }

    /// What a page says must not send a secret anywhere else.
    private func action(of form: HTMLPage.Form, _ visit: GatewayVisit) throws(LoginFailure) -> WebURL {
        let written = form.action ?? ""
        guard let url = written.isEmpty ? page.url : base.resolving(written), url.origin == page.url.origin else {
            throw visit.failure(
                "The form of the login page goes to another server, so nothing was sent. If that is right, name its "
                    + "address by `login.url`.", page)
        }
        return url
    }

    /// The hidden inputs of the page's form, then the step's own parameters in their place or behind them.
    private func parameters(
        _ use: CredentialUse, _ visit: GatewayVisit
    ) throws(LoginFailure) -> [(name: String, value: Secret)] {
        var parameters: [(name: String, value: Secret)] = []
        let own = Set(step.parameters.map(\.name))
        if step.hiddenFields, let form {
            for input in form.inputs where input.type == "hidden" && !input.name.isEmpty && !own.contains(input.name) {
                parameters.append((input.name, Secret(input.value)))
            }
        }
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
