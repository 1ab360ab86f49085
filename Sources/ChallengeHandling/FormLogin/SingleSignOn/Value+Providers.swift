// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import SettingsReading

extension ValueForm where Content == [Origin] {
    /// Origins of identity providers; at least one.
    static let providers = ValueForm.filledList(
        of: .provider,
        else: "is empty: name the origin of the server that shows the login form, such as "
            + "https://idp.example.com")
}

extension ValueForm where Content == Origin {
    /// The origin of an identity provider.
    fileprivate static let provider = ValueForm("origin", plural: "origins") { value in
        guard let url = value.webURL(allowsQuery: true) else { return nil }
        guard url.query == nil, url.path.isEmpty || url.path == "/" else {
            value.report("names a server, not a page: write \(url.origin)")
            return nil
        }
        return url.origin
    }
}

extension GatewaySettings {
    /// Origins of the identity providers; empty without single sign-on.
    package var through: [Origin] { login.first?.through ?? [] }

    /// Reports keys that have no effect on a single sign-on, and a provider that is the upstream itself.
    func checkProviders(_ login: Value?, at upstream: ProtectedUpstream?) {
        guard !through.isEmpty, let value = login?.listOrOne().first?.member("through") else { return }
        if preset != .form, preset != .none {
            value.report(
                "is for `gateway: form` and `gateway: none`: the preset \(preset.rawValue) has a form of its own")
        }
        if self.login.contains(where: { !$0.extraction.isEmpty }) {
            value.report("cannot be combined with `extract`: the session is made of the upstream's cookies")
        }
        if let origin = upstream?.url.origin, through.contains(origin) {
            value.report("names the upstream's own origin \(origin), whose forms need no `through`")
        }
    }
}
