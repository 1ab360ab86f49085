// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Policy for the addresses of an origin that may receive a credential (CONTRIBUTING, rule 11).
struct FormActionPolicy {
    /// The upstream's address.
    let base: WebURL
    let loginPage: LoginPage
    /// The form with which the credential was accepted last, if a page determines the form's action.
    let accepted: AcceptedForm?

    /// Returns whether a preset's action is expected: in a folder of the upstream's address, or of the one that shows
    /// the page. A configured page may name any address of its origin.
    func allows(_ url: WebURL, ending: String) -> Bool {
        if loginPage.source == .named { return true }
        var folders = base.folders.union(loginPage.address.folders)
        folders.insert(base.path.hasSuffix("/") ? String(base.path.dropLast()).lowercased() : base.path.lowercased())
        if !loginPage.isCallers { folders.formUnion(loginPage.page.response.url.folders) }
        let name = (ending.hasPrefix("/") ? ending : "/\(ending)").lowercased()
        return folders.contains { url.pathWithoutParameters.lowercased() == $0 + name }
    }

    /// Returns the objection to the form of a page. `nil` if the form may get the credential.
    ///
    /// Without an accepted form, a page that only a caller has asked for decides nothing: somebody may have put that page there. What
    /// people put on a server comes with 200, a server's own demand with 401 or 403.
    func objection(to form: AcceptedForm) -> String? {
        guard loginPage.source != .named else { return nil }
        guard let accepted else {
            guard loginPage.isCallers, !loginPage.page.isLed, loginPage.page.response.status < 300 else { return nil }
            return
                "Only a caller has asked for the page \(loginPage.address.path), which has a login form, and the server did not "
                + "lead there. So nothing was sent: anybody may have put such a page there. If it is the login page, set "
                + "`login.page` to its address, or set `prove-at` to one that needs a session."
        }
        guard form.path == accepted.path && form.origin == accepted.origin || isReached(with: form, as: accepted) else {
            return "The form of the login page goes to \(form.path), but the first login that worked went to "
                + "\(accepted.path), so nothing was sent. If the page has changed, set `login.page` to its address, or "
                + "`login.url` to that of the form."
        }
        return objection(toInputs: form.inputs)
    }

    /// Returns the objection to inputs of the page that the accepted form did not have, if a caller chose the page.
    func objection(toInputs inputs: Set<String>) -> String? {
        guard let accepted, loginPage.source != .named else { return nil }
        guard !loginPage.isCallers || inputs.isSubset(of: accepted.inputs) else {
            return "The form of the login page has hidden fields that the first login that worked did not have, so "
                + "nothing was sent. If the page has changed, set `login.page` to its address."
        }
        return nil
    }

    /// Returns true for a form with the same inputs on a page to which the server leads from a configured address: its path may
    /// have changing segments (`/idp/RANDOM/resume`).
    private func isReached(with form: AcceptedForm, as accepted: AcceptedForm) -> Bool {
        loginPage.source == .configured && loginPage.page.isLed && form.origin == accepted.origin
            && form.inputs == accepted.inputs
    }
}
