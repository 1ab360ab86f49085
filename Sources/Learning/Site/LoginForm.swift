// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// A login form of a page, as `learn` recognises it.
package struct LoginForm: Sendable, Equatable {
    /// The input for the user's name; `nil` if the form asks for a password alone.
    package let userField: String?
    /// The input for the password.
    package let passwordField: String
    /// The action's path as written.
    package let actionPath: String
    /// True if `gateway: form` recognises the form.
    package let isStandard: Bool

    /// Returns the first login form of a page. A form with one password input counts even if the page calls the password a new one.
    package init?(on page: ExaminedResponse) {
        let html = HTMLPage(page)
        if let form = html.passwordForm {
            self.init(form, isStandard: true)
            return
        }
        for var form in html.forms where form.isPost {
            for index in form.inputs.indices where form.inputs[index].type == "password" {
                form.inputs[index].autocomplete = ""
            }
            guard let found = PasswordForm(form) else { continue }
            self.init(found, isStandard: false)
            return
        }
        return nil
    }

    private init(_ form: PasswordForm, isStandard: Bool) {
        userField = form.userField
        passwordField = form.passwordField
        actionPath = String(form.form.actionPath)
        self.isStandard = isStandard
    }

    /// The names of both inputs.
    var names: [String] { [userField, passwordField].compactMap(\.self) }

    /// The fields of the credential that the form needs.
    var fields: [String] { (userField == nil ? [] : ["username"]) + ["password"] }
}
