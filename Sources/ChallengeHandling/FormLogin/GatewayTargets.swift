// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Where a form's credential may go within its origin (CONTRIBUTING, rule 11).
struct GatewayTargets {
    /// The upstream's address.
    let base: WebURL
    let entrance: GatewayEntrance
    /// The first proven form, where the page may say what its form's action is.
    let proven: ProvenForm.Form?

    /// Returns whether a preset's action is its own: in a folder of the upstream's address, or of the one that shows the page.
    func allows(_ url: WebURL, ending: String) -> Bool {
        var folders = base.folders.union(entrance.address.folders)
        folders.insert(base.path.hasSuffix("/") ? String(base.path.dropLast()).lowercased() : base.path.lowercased())
        if !entrance.isCallers { folders.formUnion(entrance.page.response.url.folders) }
        let name = (ending.hasPrefix("/") ? ending : "/\(ending)").lowercased()
        return folders.contains { url.pathWithoutParameters.lowercased() == $0 + name }
    }

    /// Why the action of the page's form is not the proven one; `nil` if it is, or if nothing was proven or need be.
    func objection(to form: ProvenForm.Form) -> String? {
        guard entrance.source != .named, let proven else { return nil }
        guard form.path == proven.path else {
            return "The form of the login page goes to \(form.path), but the first login that worked went to "
                + "\(proven.path), so nothing was sent. If the page has changed, name it by `login.page`, or name the "
                + "form's address by `login.url`."
        }
        guard !entrance.isCallers || form.hidden.isSubset(of: proven.hidden) else {
            return "The form of the login page has hidden fields that the first login that worked did not have, so "
                + "nothing was sent. If the page has changed, name it by `login.page`."
        }
        return nil
    }
}
