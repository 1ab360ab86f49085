// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes
internal import SettingsReading

/// Settings of the logout on a clean stop.
package struct LogoutSettings: Sendable, Equatable {
    /// Address.
    package var url: AddressReference
    /// Method.
    package var method: HTTPRequest.Method = .get
    /// Page that is fetched first, for values that the request must have.
    package var page: AddressReference?
    /// Parameters of the request.
    package var parameters: [NamedTemplate] = []
    /// More fields of the request.
    package var headers: [InjectedTemplate] = []

    /// Creates a request to `url`.
    package init(url: AddressReference, method: HTTPRequest.Method = .get) {
        self.url = url
        self.method = method
    }
}

extension LogoutSettings {
    private enum Keys {
        static let url = Key(
            required: "url", .addressOrPath, "Address of the request, which carries the session's own cookies.")
        static let method = Key("method", .method, default: .get, "Method of the request.")
        static let page = Key(
            "page", .addressOrPath, "Page that is fetched before, for a token that the request must have.")
        static let parameters = Key(
            "parameters", ValueForm<[NamedTemplate]>("mapping of templates") { $0.parameters(inLogin: true) },
            "Parameters of the request, with values such as `{page:/expression/}` and `{cookie:NAME}`.")
        static let headers = Key(
            "headers", .fieldTemplatesOfLogin, "More fields of the request, with the same values.")
    }

    /// Table of `challenges.logout`.
    static let section = KeySection(
        "challenges.logout", [Keys.url, Keys.method, Keys.page, Keys.parameters, Keys.headers])

    /// Reads the logout.
    static func read(_ fields: Fields) -> LogoutSettings? {
        guard let url = fields[Keys.url] else { return nil }
        var settings = LogoutSettings(url: url, method: fields[Keys.method])
        settings.page = fields[Keys.page]
        settings.parameters = fields[Keys.parameters] ?? []
        settings.headers = fields[Keys.headers] ?? []
        if let name = settings.parameters.fieldNames.union(settings.headers.fieldNames).min() {
            fields.value.report(
                "{\(name)} is a field of a credential, which a logout does not send: use values of the session, such as "
                    + "{cookie:NAME}")
        }
        return settings
    }

    /// Returns the logout of a challenge, with addresses at its upstream; nil if one is not valid there.
    func logout(of challenge: String, at upstream: WebURL) -> GatewayLogout? {
        guard let url = url.resolved(at: upstream) else { return nil }
        return GatewayLogout(
            name: challenge, url: url, method: method, page: page.flatMap { $0.resolved(at: upstream) },
            parameters: parameters, headers: headers)
    }
}
