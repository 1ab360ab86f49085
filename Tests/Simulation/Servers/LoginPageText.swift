// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The text of a login page.
struct LoginPageText {
    let traits: FormTraits
    /// The words by which the configuration recognises the page.
    let words: String
    var message = "Please log in."
    var action: String
    /// The hidden inputs.
    var hidden: [(name: String, value: String)] = []
    /// The name of a box that is checked.
    var box: String?
    /// The value that the login must have in a field.
    var nonce: String?
    var base: String?

    init(_ traits: FormTraits, words: String) {
        self.traits = traits
        self.words = words
        action = Self.action(of: traits)
    }

    /// The address of the form.
    static func action(of traits: FormTraits) -> String {
        traits.preset == .jSecurityCheck ? "/base/j_security_check" : "/base/login"
    }

    /// The names of the inputs for user and password.
    static func names(of traits: FormTraits) -> (user: String, password: String) {
        traits.preset == .jSecurityCheck ? ("j_username", "j_password") : ("user", "pass")
    }

    var html: String {
        let names = Self.names(of: traits)
        var text = "<html><head>"
        if let base { text += "<base href=\"\(base)\">" }
        text += "</head><body class=\"\(words)\"><p>\(message)</p>"
        if let nonce { text += "<i data-nonce=\"\(nonce)\"></i>" }
        text += "<form method=\"post\" action=\"\(action)\">"
        for input in hidden { text += "<input type=\"hidden\" name=\"\(input.name)\" value=\"\(input.value)\">" }
        if let box { text += "<input type=\"checkbox\" checked name=\"\(box)\" value=\"1\">" }
        text += "<input type=\"text\" name=\"\(names.user)\"><input type=\"password\" name=\"\(names.password)\">"
        return text + "<input type=\"submit\" value=\"Log in\"></form></body></html>"
    }
}
