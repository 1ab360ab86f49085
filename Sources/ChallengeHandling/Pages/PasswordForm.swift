// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Charsets
package import Secrets

/// A form that asks for a password, recognised by its inputs alone, and what a browser would submit with it.
package struct PasswordForm: Sendable, Equatable {
    /// Largest number of visible text inputs beside the password. Forms with more register or search.
    private static let textLimit = 2
    /// Types of inputs for a user's name.
    private static let textTypes: Set<String> = ["email", "number", "search", "tel", "text", "url"]
    /// Words on the button of a login form.
    private static let buttonWords = ["log in", "login", "log on", "logon", "sign in", "signin", "sign-in", "anmelden"]

    /// The form on its page.
    package let form: HTMLPage.Form
    /// Name of the input for the user's name; `nil` if the form asks for a password alone.
    package let userField: String?
    /// Name of the input for the password.
    package let passwordField: String
    /// Name of an empty text input in a form that has none for the user's name.
    package let emptyField: String?

    /// Returns `nil` unless `form` has exactly one password input.
    ///
    /// A password that the page calls a new one (`autocomplete="new-password"`) is that of a login if an input for the user's name
    /// stands before it and the button says so: some pages switch off the browser's memory by that word. A form with method GET is
    /// meant for a script: its action is not the address for the password.
    package init?(_ form: HTMLPage.Form) {
        let usable = form.inputs.indices.filter { !form.inputs[$0].name.isEmpty && !form.inputs[$0].isDisabled }
        guard form.isPost, form.inputs.count(where: { $0.type == "password" }) == 1,
            let password = usable.first(where: { form.inputs[$0].type == "password" })
        else { return nil }
        let texts = usable.filter { Self.textTypes.contains(form.inputs[$0].type) }
        guard texts.count <= Self.textLimit else { return nil }
        // An input after the password is for something else, such as a code.
        let before = texts.filter { $0 < password }
        let named = texts.last { form.inputs[$0].autocomplete.split(separator: " ").contains("username") }
        let user = named ?? before.last
        if form.inputs[password].autocomplete == "new-password" {
            guard user != nil, Self.asksForLogin(form) else { return nil }
        }
        self.form = form
        userField = user.map { form.inputs[$0].name }
        passwordField = form.inputs[password].name
        let empty = texts.first { form.inputs[$0].bytes.isEmpty }
        emptyField = user == nil ? empty.map { form.inputs[$0].name } : nil
    }

    /// Returns the entries that a browser submits, in order, with these values filled in.
    package func entries(in charset: Charset, user: Secret?, password: Secret?) -> [FormEntry] {
        form.entries(
            in: charset,
            filling: { input in
                if input.type == "password", input.name == passwordField { return password }
                return input.name == userField && Self.textTypes.contains(input.type) ? user : nil
            })
    }

    private static func asksForLogin(_ form: HTMLPage.Form) -> Bool {
        guard let button = form.submitter else { return false }
        let text = "\(button.label) \(button.value)".lowercased()
        return buttonWords.contains { text.contains($0) }
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
