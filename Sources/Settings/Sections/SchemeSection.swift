// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes

extension SchemeSettings {
    /// `scheme:` and what belongs to it.
    static func read(_ fields: Fields, place: ChallengePlace?, upstreams: [UpstreamSettings]) -> SchemeSettings? {
        let elements = fields.required("scheme")?.listOrOne() ?? []
        var schemes: [Scheme] = []
        for element in elements {
            guard let scheme = element.choice(Scheme.self) else { continue }
            if schemes.contains(scheme) { element.report("this scheme stands in the list already") }
            schemes.append(scheme)
        }
        if elements.isEmpty { fields["scheme"]?.report("is empty: no scheme would be answered") }
        let realm = fields["realm"]?.word()
        let spn = fields["spn"]
        let token = schemes.contains(.bearer) ? fields.required("token") : fields["token"]
        if !schemes.isEmpty, !schemes.contains(.bearer) { token?.report("belongs to the scheme bearer") }
        if !schemes.isEmpty, !schemes.contains(.negotiate) { spn?.report("belongs to the scheme negotiate") }
        guard !schemes.isEmpty else { return nil }
        return SchemeSettings(
            schemes: schemes, realm: realm, servicePrincipal: spn?.word(),
            token: token.flatMap { TokenSettings.read($0, place: place, upstreams: upstreams) })
    }
}

extension TokenSettings {
    fileprivate static func read(
        _ value: Value, place: ChallengePlace?, upstreams: [UpstreamSettings]
    ) -> TokenSettings? {
        guard let fields = value.fields() else { return nil }
        let grant = fields.required("grant")?.choice(Grant.self)
        let written = fields["url"]
        let scope = fields["scope"]?.words() ?? []
        let audience = fields["audience"]?.word()
        let parameters = fields["parameters"]?.parameters() ?? []
        let authentication = fields["client-auth"]?.choice(ClientAuthentication.self)
        let fieldValue = fields["field"]
        let prefix = fields["prefix"]
        fields.finish()
        let field = fieldValue.flatMap { value in value.word().flatMap(value.fieldName) }
        guard let grant else { return nil }
        let url = written.map { $0.webURL() } ?? standardURL(grant, place: place, upstreams: upstreams)
        if written == nil, url == nil, grant != .static { _ = fields.required("url") }
        if grant == .static { written?.report("the grant static asks nobody") }
        return TokenSettings(
            grant: grant, url: url, scope: scope, audience: audience, parameters: parameters,
            clientAuthentication: authentication ?? .basic, field: field ?? .authorization,
            prefix: prefix?.text() ?? (field.map { $0 == .authorization } ?? true ? "Bearer" : ""))
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
