// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

extension LearnedPlan {
    /// Returns a plan for a recorded login, with the site's own answers as conditions of the login.
    ///
    /// A form that `gateway: form` recognises on its page needs no recording. Throws if the site demands no login.
    package init(_ findings: SiteFindings, recorded login: RecordedLogin) throws(LearnDefeat) {
        if let page = findings.loginPage ?? (findings.asked.form == nil ? nil : findings.asked),
            let form = page.form, form.passwordField == login.passwordName, !login.isJSON, login.token == nil,
            page.last.url.resolving(form.actionPath)?.path == login.url.path
        {
            self = try FormPlan(findings).plan
            return
        }
        let first = findings.asked.first
        guard LearnedKind.asks(findings.asked) || findings.asked.responses.count > 1 else {
            throw LearnDefeat(
                findings.asked.summary, "the address is open to everybody. Name an address that needs the login.")
        }
        let parameters = login.parameters.map { "\(ConfigurationLine.scalar($0.name)): \(Self.quoted($0.template))" }
        var lines = [
            ConfigurationLine("gateway: none", "a login that was recorded in a browser"),
            ConfigurationLine("detect: \(FormPlan.matcher(of: findings.asked))", "answer that asks for the login"),
            ConfigurationLine("login:"),
        ]
        if login.usesHiddenInputs, let page = login.page {
            lines.append(ConfigurationLine("  page: \(ConfigurationLine.address(page))", "page with the hidden inputs"))
        }
        lines.append(
            ConfigurationLine(
                "  url: \(ConfigurationLine.address(login.url))", "address that the browser sent the login to"))
        if login.isJSON { lines.append(ConfigurationLine("  body: json", "as the browser sent it")) }
        lines.append(
            ConfigurationLine(
                "  parameters: { \(parameters.joined(separator: ", ")) }", "values of the browser's request"))
        if login.usesHiddenInputs { lines.append(ConfigurationLine("  fields: hidden", "hidden inputs go along")) }
        if let token = login.token {
            lines += [
                ConfigurationLine(
                    "  extract: { token: \(ConfigurationLine.scalar(token.pointer)) }", "token in the answer"),
                ConfigurationLine(
                    "inject: { \(ConfigurationLine.scalar(token.field)): \(Self.quoted("\(token.prefix){token}")) }",
                    "field that carries it in later requests"),
            ]
        } else {
            lines.append(
                .proof(findings.asked.address, "shows that a login worked: without one it answers \(first.status)"))
        }
        self.init(lines: lines, fields: login.fields, hasUnknownRefusal: true)
    }

    /// Returns a template in quotes, since YAML reads a brace as a mapping.
    private static func quoted(_ template: String) -> String {
        let text = ConfigurationLine.scalar(template)
        return text.hasPrefix("\"") ? text : "\"\(text)\""
    }
}
