// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import SettingsReading

extension TokenSettings {
    /// Reads `token`.
    static func read(_ value: Value, _ context: ChallengeContext) -> TokenSettings? {
        guard let fields = value.fields() else { return nil }
        let grant = fields.required("grant")?.choice(Grant.self)
        let urlValue = fields["url"]
        let written = urlValue?.webURL()
        let issuersValue = fields["issuers"]
        let issuers = (issuersValue?.listOrOne() ?? []).compactMap { $0.authorizationServer() }
        let revocationValue = fields["revocation"]
        let revocation = revocationValue?.webURL()
        let scope = fields["scope"]?.words() ?? []
        let audience = fields["audience"]?.word()
        let parameters = fields["parameters"]?.parameters() ?? []
        let authentication = fields["client-auth"]?.choice(ClientAuthentication.self)
        let field = fields["field"].flatMap { value in value.word().flatMap(value.fieldName) }
        let prefix = fields["prefix"]?.text()
        fields.finish()
        guard let grant else { return nil }
        let url = urlValue == nil ? context.upstream.flatMap(grant.endpoint) : written
        if urlValue == nil, url == nil, issuersValue == nil, !grant.asksNobody { _ = fields.required("url") }
        if grant.asksNobody { urlValue?.report("the grant \(grant.rawValue) asks nobody") }
        if !grant.isOfOAuth {
            revocationValue?.report("belongs to the grants client-credentials, password and refresh-token")
        } else if issuersValue != nil {
            revocationValue?.report("stands beside `issuers`: it belongs to one server, that of `url`")
        }
        if let issuersValue {
            if let urlValue {
                issuersValue.report("stands beside `url`, in line \(urlValue.keyMark.line): a token has one of them")
            } else if !grant.isOfOAuth {
                issuersValue.report("belongs to the grants client-credentials, password and refresh-token")
            } else if issuersValue.listOrOne().isEmpty {
                issuersValue.report("is empty: no server would be asked")
            }
        }
        return TokenSettings(
            grant: grant, url: url, issuers: issuers, revocation: revocation, scope: scope, audience: audience,
            parameters: parameters,
            clientAuthentication: authentication, field: field ?? .authorization,
            prefix: prefix ?? (field.map { $0 == .authorization } ?? true ? "Bearer" : ""))
    }
}

extension Value {
    /// The issuer identifier of an authorization server.
    fileprivate func authorizationServer() -> AuthorizationServer? {
        guard let text = word() else { return nil }
        guard let server = AuthorizationServer(text) else {
            report(
                "is no issuer of tokens: an address of https:// (http:// on this machine only) without a query, letter by "
                    + "letter as the server's metadata has it (RFC 8414)")
            return nil
        }
        return server
    }
}
