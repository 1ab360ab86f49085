// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeHandling

/// An input that a browser submits as it stands on the page.
package struct FormConstant: Sendable, Equatable {
    /// Its name.
    package let name: String
    /// Its value.
    package let value: String
}

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
    /// The other inputs that a browser submits, without the hidden ones; empty for a form that `gateway: form` recognises.
    package let constants: [FormConstant]

    /// The largest number of text inputs beside a password. Forms with more register or search.
    private static let textLimit = 4

    /// Returns the first login form of a page. A form with one password input counts even if the page calls the password a new one,
    /// or asks for more than a name.
    package init?(on page: ExaminedResponse) {
        let html = HTMLPage(page)
        if let form = html.passwordForm {
            userField = form.userField
            passwordField = form.passwordField
            actionPath = String(form.form.actionPath)
            isStandard = true
            constants = []
            return
        }
        for form in html.forms {
            guard let found = LoginForm(unusual: form) else { continue }
            self = found
            return
        }
        return nil
    }

    private init?(unusual form: HTMLPage.Form) {
        let inputs = form.inputs.filter { !$0.name.isEmpty && !$0.isDisabled }
        let passwords = inputs.indices.filter { inputs[$0].type == "password" }
        guard form.isPost, passwords.count == 1, let password = passwords.first else { return nil }
        let texts = inputs.indices.filter { NameForm.textTypes.contains(inputs[$0].type) }
        guard texts.count <= Self.textLimit else { return nil }
        let named =
            texts.first { inputs[$0].autocomplete.split(separator: " ").contains("username") }
            ?? texts.first { NameForm.isNameOfUser(inputs[$0].name) }
        let user = named ?? texts.last { $0 < password }
        userField = user.map { inputs[$0].name }
        passwordField = inputs[password].name
        actionPath = String(form.actionPath)
        isStandard = false
        constants = form.constants(without: [userField, passwordField].compactMap(\.self))
    }

    /// The names of both inputs.
    var names: [String] { [userField, passwordField].compactMap(\.self) }

    /// The fields of the credential that the form needs.
    var fields: [String] { (userField == nil ? [] : ["username"]) + ["password"] }

    /// The parameters of a step that submits the form, as YAML.
    var parameters: String {
        let filled = zip(names, fields).map { "\(ConfigurationLine.scalar($0)): \"{\($1)}\"" }
        return (filled + constants.map(\.parameter)).joined(separator: ", ")
    }
}

/// A form that asks for the user's name alone: the password is asked for on the next page.
package struct NameForm: Sendable, Equatable {
    /// The types of inputs for a user's name.
    static let textTypes: Set<String> = ["email", "number", "search", "tel", "text", "url"]
    private static let userWords = ["user", "login", "email", "mail", "account", "identifier", "uid"]

    /// The input for the user's name.
    package let userField: String
    /// The other inputs that a browser submits, without the hidden ones.
    package let constants: [FormConstant]

    /// Returns the form of a page that asks for a name and for nothing else, at an address of a login.
    package init?(on page: ExaminedResponse) {
        guard SiteProbe.namesLogin(page.url) else { return nil }
        for form in HTMLPage(page).forms where form.isPost {
            let inputs = form.inputs.filter { !$0.name.isEmpty && !$0.isDisabled }
            let texts = inputs.filter { Self.textTypes.contains($0.type) }
            guard !inputs.contains(where: { $0.type == "password" }), texts.count == 1, let text = texts.first,
                Self.isNameOfUser(text.name) || text.autocomplete.contains("username") || text.type == "email"
            else { continue }
            userField = text.name
            constants = form.constants(without: [text.name])
            return
        }
        return nil
    }

    /// Returns whether an input of that name is for a user's name.
    static func isNameOfUser(_ name: String) -> Bool {
        let name = name.lowercased()
        return userWords.contains { name.contains($0) }
    }

    /// The parameters of a step that submits the form, as YAML.
    var parameters: String {
        (["\(ConfigurationLine.scalar(userField)): \"{username}\""] + constants.map(\.parameter)).joined(
            separator: ", ")
    }
}

extension FormConstant {
    /// The longest value that a configuration repeats, in bytes.
    fileprivate static let longest = 200

    /// A parameter of a step, as YAML.
    fileprivate var parameter: String {
        "\(ConfigurationLine.scalar(name)): \(ConfigurationLine.quoted(ConfigurationLine.literal(value)))"
    }
}

extension HTMLPage.Form {
    /// Returns the visible inputs that a browser submits by the first button, in order, except those with these names.
    fileprivate func constants(without filled: [String]) -> [FormConstant] {
        var constants: [FormConstant] = []
        for input in inputs
        where !input.name.isEmpty && !input.isDisabled && input.type != "hidden" && !filled.contains(input.name) {
            if input.isButton, input != submitter { continue }
            if ["checkbox", "radio"].contains(input.type), !input.isChecked { continue }
            if ["file", "image", "password"].contains(input.type) { continue }
            let bytes = input.type.hasPrefix("select-") ? input.selectedValues.first ?? [] : input.bytes
            guard bytes.count <= FormConstant.longest, let text = String(validating: bytes, as: UTF8.self),
                text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
                !constants.contains(where: { $0.name == input.name })
            else { continue }
            constants.append(FormConstant(name: input.name, value: text))
        }
        return constants
    }
}
