// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The form of a challenge's first verified login, with `url: form`. A later page may not send the credential
/// elsewhere.
///
/// It is kept until the process ends, is shared by the upstreams of an origin, and survives a reload.
public final class VerifiedForm: Sendable {
    /// The action of a form and its hidden inputs.
    struct Form: Sendable, Equatable {
        /// The path of the action, without parameters (`;jsessionid=…`).
        var path: String
        /// The names of the inputs that went along with the credential: hidden ones, or all that a browser would send.
        var hidden: Set<String>
    }

    private let known = Mutex<Form?>(nil)

    /// Creates a record without a form.
    public init() {}

    /// The form of the first verified login.
    var form: Form? { known.withLock { $0 } }

    /// Records the form of the first login that worked.
    func record(_ form: Form) {
        known.withLock { known in
            if known == nil { known = form }
        }
    }
}

/// The verified forms of all login pages.
public final class VerifiedForms: Sendable {
    private let known = Mutex<[LatchKey: VerifiedForm]>([:])

    /// Creates a table without forms.
    public init() {}

    /// Returns the verified form of a challenge with a credential at an origin.
    public func form(of key: LatchKey) -> VerifiedForm {
        known.withLock { known in
            if let there = known[key] { return there }
            let made = VerifiedForm()
            known[key] = made
            return made
        }
    }
}

/// Policy for the addresses of an origin that may receive a credential (CONTRIBUTING, rule 11).
struct FormActionPolicy {
    /// The upstream's address.
    let base: WebURL
    let loginPage: LoginPage
    /// The form of the first login that worked, if the page determines the form's action.
    let verified: VerifiedForm.Form?

    /// Returns whether a preset's action is expected: in a folder of the upstream's address, or of the one that shows
    /// the page.
    func allows(_ url: WebURL, ending: String) -> Bool {
        var folders = base.folders.union(loginPage.address.folders)
        folders.insert(base.path.hasSuffix("/") ? String(base.path.dropLast()).lowercased() : base.path.lowercased())
        if !loginPage.isCallers { folders.formUnion(loginPage.page.response.url.folders) }
        let name = (ending.hasPrefix("/") ? ending : "/\(ending)").lowercased()
        return folders.contains { url.pathWithoutParameters.lowercased() == $0 + name }
    }

    /// Returns the objection to a form that differs from the verified one. `nil` if it is the same form, or if no check
    /// is needed.
    func objection(to form: VerifiedForm.Form) -> String? {
        guard loginPage.source != .named, let verified else { return nil }
        guard form.path == verified.path else {
            return "The form of the login page goes to \(form.path), but the first login that worked went to "
                + "\(verified.path), so nothing was sent. If the page has changed, set `login.page` to its address, or "
                + "`login.url` to that of the form."
        }
        return objection(toInputs: form.hidden)
    }

    /// Returns the objection to inputs of the page that the verified form did not have, if a caller chose the page.
    func objection(toInputs inputs: Set<String>) -> String? {
        guard let verified, loginPage.source != .named else { return nil }
        guard !loginPage.isCallers || inputs.isSubset(of: verified.hidden) else {
            return "The form of the login page has hidden fields that the first login that worked did not have, so "
                + "nothing was sent. If the page has changed, set `login.page` to its address."
        }
        return nil
    }
}
