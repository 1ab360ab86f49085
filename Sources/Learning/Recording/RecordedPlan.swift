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
            login.nameStep == nil,
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
        var lines = [
            ConfigurationLine("gateway: none", "a login that was recorded in a browser"),
            ConfigurationLine("detect: \(FormPlan.matcher(of: findings.asked))", "answer that asks for the login"),
            ConfigurationLine("login:"),
        ]
        lines += login.steps
        if let token = login.token {
            lines += [
                ConfigurationLine(
                    "\(login.nameStep == nil ? "  " : "    ")extract: { token: \(ConfigurationLine.scalar(token.pointer)) }",
                    "token in the answer"),
                ConfigurationLine(
                    "inject: { \(ConfigurationLine.scalar(token.field)): \(ConfigurationLine.quoted("\(token.prefix){token}")) }",
                    "field that carries it in later requests"),
            ]
        } else {
            lines.append(
                .proof(findings.asked.address, "shows that a login worked: without one it answers \(first.status)"))
        }
        self.init(lines: lines, fields: login.fields, hasUnknownRefusal: true)
    }
}

extension RecordedLogin {
    /// The lines of its steps, a list if there are two.
    fileprivate var steps: [ConfigurationLine] {
        let step = Self.lines(
            page: usesHiddenInputs ? page : nil, url, parameters, isJSON: isJSON, usesHiddenInputs: usesHiddenInputs)
        guard let nameStep else { return step.map { ConfigurationLine("  \($0.text)", $0.comment) } }
        let first = Self.lines(
            page: nameStep.usesHiddenInputs ? nameStep.page : nil, nameStep.url, nameStep.parameters,
            usesHiddenInputs: nameStep.usesHiddenInputs)
        // The page of the second step is the answer to the first.
        let second = Self.lines(page: nil, url, parameters, isJSON: isJSON, usesHiddenInputs: usesHiddenInputs)
        return [first, second].flatMap { lines in
            lines.enumerated().map { ConfigurationLine(($0 == 0 ? "  - " : "    ") + $1.text, $1.comment) }
        }
    }

    private static func lines(
        page: WebURL?, _ url: WebURL, _ parameters: [Parameter], isJSON: Bool = false, usesHiddenInputs: Bool
    ) -> [ConfigurationLine] {
        let written = parameters.map {
            "\(ConfigurationLine.scalar($0.name)): \(ConfigurationLine.quoted($0.template))"
        }
        var lines: [ConfigurationLine] = []
        if let page {
            lines.append(ConfigurationLine("page: \(ConfigurationLine.address(page))", "page with the hidden inputs"))
        }
        lines.append(
            ConfigurationLine(
                "url: \(ConfigurationLine.address(url))", "address that the browser sent the login to"))
        if isJSON { lines.append(ConfigurationLine("body: json", "as the browser sent it")) }
        lines.append(
            ConfigurationLine(
                "parameters: { \(written.joined(separator: ", ")) }", "values of the browser's request"))
        if usesHiddenInputs { lines.append(ConfigurationLine("fields: hidden", "hidden inputs go along")) }
        return lines
    }
}
