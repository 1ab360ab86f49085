// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes

/// Plan of a login with a form: the answers that start it, the address of the page, and the address that proves it.
struct FormPlan {
    private let findings: SiteFindings
    private let page: SiteVisit
    private let form: LoginForm

    /// Creates a plan. Throws if the findings have no form.
    init(_ findings: SiteFindings) throws(LearnDefeat) {
        guard let page = findings.asked.form != nil ? findings.asked : findings.loginPage, let form = page.form else {
            throw LearnDefeat(
                findings.asked.summary,
                "the page has no form with one password input. If a script builds it, record a login in a browser "
                    + "(`--har FILE`).")
        }
        self.findings = findings
        self.page = page
        self.form = form
    }

    var plan: LearnedPlan {
        let gateway = ConfigurationLine(
            "gateway: \(preset)",
            "\(page.last.url.path) has a login form with \(form.names.map(ServerText.name).joined(separator: " and "))")
        return LearnedPlan(lines: [gateway] + rules, fields: form.fields, hasUnknownRefusal: true)
    }

    /// The preset for the server that the form's action shows.
    private var preset: String {
        guard form.isStandard else { return "none" }
        let action = form.actionPath.lowercased()
        if action.hasSuffix("j_security_check") { return "j-security-check" }
        return action.hasSuffix("pkmslogin.form") ? "webseal" : "form"
    }

    /// The lines after `gateway`. A redirect to the page is the more precise condition: public pages can contain the
    /// form, too.
    private var rules: [ConfigurationLine] {
        let isRootProof = findings.root.form != nil && (isShown(findings.asked) || redirect(of: findings.root) != nil)
        let proofs = isRootProof ? [] : [proof]
        guard form.isStandard else { return [detect] + description + [proof] }
        if findings.asked.form != nil { return (isShown(findings.asked) ? [] : [detect]) + proofs }
        let address = ConfigurationLine.address(page.address)
        return [detect, ConfigurationLine("login: { page: \(address) }", "address of the form"), proof]
    }

    /// The steps for a form that no preset recognises.
    private var description: [ConfigurationLine] {
        [
            ConfigurationLine("login:"),
            ConfigurationLine("  page: \(ConfigurationLine.address(page.address))", "address of the form"),
            ConfigurationLine("  url: form", "the form's own action"),
            ConfigurationLine("  parameters: { \(form.parameters) }", "its inputs"),
            ConfigurationLine("  fields: hidden", "hidden inputs go along"),
        ]
    }

    /// Returns whether the first answer of a visit is the page with the form itself, and no redirect.
    private func isShown(_ visit: SiteVisit) -> Bool { visit.form != nil && visit.responses.count == 1 }

    /// Returns the condition for the last redirect of a visit, if a redirect leads to the form.
    private func redirect(of visit: SiteVisit) -> String? {
        guard visit.form != nil, let last = visit.responses.last(where: { $0.fields[.location] != nil }),
            let target = last.redirectTarget
        else { return nil }
        return Self.redirect(last, to: target)
    }

    /// Returns the condition for a redirect. Every address contains a slash, so a redirect to the root is recognized by
    /// the text of its body.
    private static func redirect(_ response: ExaminedResponse, to target: WebURL) -> String {
        let text = target.path == "/" ? target.target : target.path
        let body = String(decoding: response.body ?? [], as: UTF8.self)
        let piece = ["&quot;/&quot;", "\"/\"", "'/'"].first { body.contains($0) }
        if text == "/", let piece {
            return "{ status: \(response.status), body-contains: \(ConfigurationLine.scalar(piece)) }"
        }
        return "{ status: \(response.status), redirect-to: \(ConfigurationLine.scalar(text)) }"
    }

    private var proof: ConfigurationLine {
        .proof(findings.asked.address, "shows that a login worked: without one it asks for it")
    }

    /// Conditions for every kind of answer that was seen to ask for the login.
    private var detect: ConfigurationLine {
        var matchers: [String] = []
        if !isShown(findings.asked) {
            let link = findings.loginLink.map { "{ body-contains: \(ConfigurationLine.scalar($0)) }" }
            matchers.append(link ?? Self.matcher(of: findings.asked))
        }
        if isShown(findings.asked) {
            matchers.append("{ form-fields: \(ConfigurationLine.list(form.names)) }")
        } else if let redirect = redirect(of: findings.root) {
            matchers.append(redirect)
        } else if findings.root.form != nil, findings.asked.form == nil {
            matchers.append("{ form-fields: \(ConfigurationLine.list(form.names)) }")
        }
        var known: Set<String> = []
        matchers = matchers.filter { known.insert($0).inserted }
        return ConfigurationLine(
            "detect: \(matchers.count == 1 ? matchers[0] : "[\(matchers.joined(separator: ", "))]")",
            "answers that ask for the login")
    }

    /// Returns the condition for the first answer of a visit.
    static func matcher(of visit: SiteVisit) -> String {
        let first = visit.first
        if let target = first.redirectTarget {
            return redirect(first, to: target)
        }
        guard first.status < 400, let title = PageLinks(parsing: first.body ?? []).title else {
            let type = MediaType(first.fields[.contentType] ?? "").essence
            let condition = type.isEmpty ? "" : ", content-type: \(ConfigurationLine.scalar(type))"
            return "{ status: \(first.status)\(condition) }"
        }
        return "{ body-contains: \(ConfigurationLine.scalar("<title>\(title)")) }"
    }
}

/// A field against forged requests, which scripts of pages fill in from a cookie.
package struct ForgeryToken: Sendable, Equatable {
    /// The tokens of frameworks by their cookies: Django; Tornado and Jupyter; Laravel, Angular and Spring.
    private static let known = [
        ForgeryToken(cookie: "csrftoken", field: "X-CSRFToken", value: "{cookie:csrftoken}"),
        ForgeryToken(cookie: "_xsrf", field: "X-XSRFToken", value: "{cookie:_xsrf}"),
        ForgeryToken(cookie: "XSRF-TOKEN", field: "X-XSRF-TOKEN", value: "{decoded-cookie:XSRF-TOKEN}"),
    ]

    private let cookie: String
    private let field: String
    private let value: String

    /// Returns the line `inject` for the cookies of a session; `nil` if no cookie is such a token.
    package static func line(for cookies: Set<String>) -> ConfigurationLine? {
        let tokens = known.filter { cookies.contains($0.cookie) }
        guard !tokens.isEmpty else { return nil }
        let fields = tokens.map { token in
            "\(token.field): { value: \"\(token.value)\", on: [POST, PUT, PATCH, DELETE] }"
        }
        return ConfigurationLine(
            "inject: { \(fields.joined(separator: ", ")) }", "token against forged requests, from the session's cookie")
    }
}
