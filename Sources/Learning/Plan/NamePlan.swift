// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import HTTPTypes

/// Plan of a login whose first page asks for the user's name alone. The next page is known only once the name was submitted.
package struct NamePlan: Sendable {
    private let findings: SiteFindings
    private let page: SiteVisit
    private let form: NameForm

    /// Creates a plan; `nil` if the site asks in another way.
    package init?(_ findings: SiteFindings) {
        guard let page = [findings.asked, findings.loginPage].compactMap(\.self).first(where: { $0.nameForm != nil }),
            let form = page.nameForm
        else { return nil }
        (self.findings, self.page, self.form) = (findings, page, form)
    }

    /// Returns the plan with the form of the next page; without one, that of the first step alone.
    package func plan(then next: LoginForm?) -> LearnedPlan {
        var lines = [
            ConfigurationLine(
                "gateway: none", "\(page.last.url.path) asks for \(ServerText.name(form.userField)) alone"),
            ConfigurationLine("detect: \(FormPlan.matcher(of: findings.asked))", "answer that asks for the login"),
            ConfigurationLine("login:"),
            ConfigurationLine("  - page: \(ConfigurationLine.address(page.address))", "address of the first form"),
            ConfigurationLine("    url: form", "the form's own action"),
            ConfigurationLine("    parameters: { \(form.parameters) }", "its inputs"),
            ConfigurationLine("    fields: hidden", "hidden inputs go along"),
        ]
        if let next {
            lines += [
                ConfigurationLine("  - url: form", "the form of the next page"),
                ConfigurationLine("    parameters: { \(next.parameters) }", "its inputs"),
                ConfigurationLine("    fields: hidden", "hidden inputs go along"),
            ]
        }
        lines.append(.proof(findings.asked.address, "shows that a login worked: without one it asks for it"))
        return LearnedPlan(lines: lines, fields: ["username", "password"], hasUnknownRefusal: true)
    }

    /// Returns the form for the password in the answers to the name, the last first. Throws without one.
    package func next(in answers: [ExaminedResponse]) throws(LearnDefeat) -> LoginForm {
        for answer in answers.reversed() where answer.url != page.last.url || answer.method == .post {
            if let form = LoginForm(on: answer) { return form }
        }
        let last = answers.last
        throw LearnDefeat(
            last.map { "\($0.method.rawValue) \($0.url.path): \($0.status)" } ?? page.summary,
            "the page asks for \(ServerText.name(form.userField)) alone, and no form with a password came after it. Nothing is known "
                + "of the password. Record the login in a browser (`--har FILE`).")
    }
}
