// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A form that asks for a password, recognised by its inputs alone, and what a browser would submit with it.
package struct PasswordForm: Sendable, Equatable {
    /// Largest number of visible text inputs beside the password. Forms with more register or search.
    private static let textLimit = 2
    /// Types of inputs for a user's name.
    private static let textTypes: Set<String> = ["text", "email", "tel", ""]

    /// The form on its page.
    package let form: HTMLPage.Form
    /// Name of the input for the user's name; `nil` if the form asks for a password alone.
    package let userField: String?
    /// Name of the input for the password.
    package let passwordField: String

    /// Returns `nil` unless `form` has exactly one password input, which is not one for a new password.
    ///
    /// A form with method GET is meant for a script: its action is not the address for the password.
    package init?(_ form: HTMLPage.Form) {
        let usable = form.inputs.indices.filter { !form.inputs[$0].name.isEmpty && !form.inputs[$0].isDisabled }
        guard form.isPost, form.inputs.count(where: { $0.type == "password" }) == 1,
            let password = usable.first(where: { form.inputs[$0].type == "password" }),
            form.inputs[password].autocomplete != "new-password"
        else { return nil }
        let texts = usable.filter { Self.textTypes.contains(form.inputs[$0].type) }
        guard texts.count <= Self.textLimit else { return nil }
        // An input after the password is for something else, such as a code.
        let before = texts.filter { $0 < password }
        let named = before.last { form.inputs[$0].autocomplete.split(separator: " ").contains("username") }
        self.form = form
        userField = (named ?? before.last).map { form.inputs[$0].name }
        passwordField = form.inputs[password].name
    }

    /// The other inputs that a browser submits, in order (WHATWG HTML §4.10.21.4): hidden and text inputs, selected
    /// boxes, and the form's first submit button.
    package var otherInputs: [HTMLPage.Input] {
        var others: [HTMLPage.Input] = []
        var hasButton = false
        for input in form.inputs where !input.isDisabled {
            if input.type == "submit" {
                guard !hasButton else { continue }
                hasButton = true
            }
            guard !input.name.isEmpty, input.name != userField, input.name != passwordField else { continue }
            switch input.type {
            case "checkbox", "radio": if input.isChecked { others.append(input) }
            case "button", "reset", "image", "file": continue
            default: others.append(input)
            }
        }
        return others
    }
}

extension HTMLPage {
    /// The first login form of the page; `nil` if the page has none.
    package var passwordForm: PasswordForm? {
        for form in forms {
            if let login = PasswordForm(form) { return login }
        }
        return nil
    }
}
