// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes

extension SchemeSettings {
    /// `scheme:` and what belongs to it.
    static func read(_ fields: Fields, place: ChallengePlace?, upstreams: [UpstreamSettings]) -> SchemeSettings? {
        let elements = fields.required("scheme")?.listOrOne() ?? []
        var schemes: [Scheme] = []
        var isInList = false
        for element in elements {
            guard let scheme = element.choice(Scheme.self) else { continue }
            if schemes.contains(scheme) { element.report("this scheme stands in the list already") }
            schemes.append(scheme)
        }
        if elements.isEmpty { fields["scheme"]?.report("is empty: no scheme would be answered") }
        if schemes.contains(.bearer), Set(schemes).count > 1 {
            isInList = true
        }
        let realm = fields["realm"]?.word()
        let spnValue = fields["spn"]
        let spn = spnValue?.word()
        let tokenValue = schemes.contains(.bearer) ? fields.required("token") : fields["token"]
        let token = tokenValue.flatMap { TokenSettings.read($0, place: place, upstreams: upstreams) }
        if isInList, token?.grant == .registry {
            tokenValue?.report("the grant registry stands alone: write a challenge of its own for the other schemes")
        }
        if !schemes.isEmpty, !schemes.contains(.bearer) { tokenValue?.report("belongs to the scheme bearer") }
        if !schemes.isEmpty, !schemes.contains(.negotiate) { spnValue?.report("belongs to the scheme negotiate") }
        guard !schemes.isEmpty else { return nil }
        return SchemeSettings(schemes: schemes, realm: realm, servicePrincipal: spn, token: token)
    }
}

extension TokenSettings {
    fileprivate static func read(
        _ value: Value, place: ChallengePlace?, upstreams: [UpstreamSettings]
    ) -> TokenSettings? {
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
        let url = urlValue == nil ? standardURL(grant, place: place, upstreams: upstreams) : written
        if urlValue == nil, url == nil, issuersValue == nil, grant != .static { _ = fields.required("url") }
        if grant == .static { urlValue?.report("the grant static asks nobody") }
        if ![.clientCredentials, .password, .refreshToken].contains(grant) {
            revocationValue?.report("belongs to the grants client-credentials, password and refresh-token")
        } else if issuersValue != nil {
            revocationValue?.report("stands beside `issuers`: it belongs to one server, that of `url`")
        }
        if let issuersValue {
            if let urlValue {
                issuersValue.report("stands beside `url`, in line \(urlValue.keyMark.line): a token has one of them")
            } else if ![.clientCredentials, .password, .refreshToken].contains(grant) {
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

    /// The token endpoint of the upstream's own MobileFirst server.
    private static func standardURL(_ grant: Grant, place: ChallengePlace?, upstreams: [UpstreamSettings]) -> WebURL? {
        guard grant == .mobileFirst, case .upstream(let name)? = place,
            let upstream = upstreams.first(where: { $0.name == name })
        else { return nil }
        let api = upstream.mobileFirst?.api ?? WebURL(origin: upstream.url.origin, path: "/mfp/api")
        return api.appending(path: "az/v1/token")
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
