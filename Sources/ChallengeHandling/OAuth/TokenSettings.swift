// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes
internal import SettingsReading

/// Settings of `token`: the source of a bearer token, and the field that carries the token.
package struct TokenSettings: Sendable, Equatable {
    /// Kind of token request.
    package typealias Grant = TokenGrant
    /// Method of client authentication.
    package typealias ClientAuthentication = TokenConfiguration.ClientAuthentication

    /// Kind of token request.
    package var grant: Grant
    /// Token endpoint; nil with the grant `static`, or if `issuers` are named.
    package var url: WebURL?
    /// Authorization servers that the resource may choose from (RFC 9728); empty if `url` names the endpoint.
    package var issuers: [AuthorizationServer]
    /// Address of token revocation (RFC 7009); nil: tokens are not revoked.
    package var revocation: WebURL?
    /// Lifetime of a token if its server states none; nil: the token is used until it is refused.
    package var lifetime: Duration?
    /// Matchers of responses that ask for a token although they name no scheme; one is enough.
    package var detect: [ResponseMatcher] = []
    /// Scope.
    package var scope: [String]
    /// Audience, if the endpoint needs one.
    package var audience: String?
    /// More parameters of the token request, in the order of the file.
    package var parameters: [NamedTemplate]
    /// Method of client authentication; nil: the method that the server's metadata names, or else Basic.
    package var clientAuthentication: ClientAuthentication?
    /// TLS of the connections to the token's servers; nil: as to the upstream, without its certificate.
    package var tls: TLSSettings?
    /// Field of the request that carries the token.
    package var field: HTTPField.Name
    /// Word before the token in the field, followed by a space; may be empty.
    package var prefix: String

    /// Creates the source of a token.
    package init(
        grant: Grant, url: WebURL? = nil, issuers: [AuthorizationServer] = [], revocation: WebURL? = nil,
        scope: [String] = [], audience: String? = nil, parameters: [NamedTemplate] = [],
        clientAuthentication: ClientAuthentication? = nil, field: HTTPField.Name = .authorization,
        prefix: String = "Bearer"
    ) {
        self.grant = grant
        self.url = url
        self.issuers = issuers
        self.revocation = revocation
        self.scope = scope
        self.audience = audience
        self.parameters = parameters
        self.clientAuthentication = clientAuthentication
        self.field = field
        self.prefix = prefix
    }

    /// Adds every setting except `revocation`, `lifetime` and `tls`.
    func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("token.grant", grant.rawValue)
        let server = upstream.mobileFirst != nil ? grant.endpoint(upstream) : nil
        terms.add("token.url", (url ?? server).map { "\($0)" })
        terms.add("token.issuers", issuers.map(\.issuer).sorted())
        terms.add("token.scope", Set(scope).sorted())
        terms.add("token.audience", audience)
        terms.add("token.parameters", parameters.map { ($0.name, $0.value.source) })
        terms.add("token.client-auth", (clientAuthentication ?? .basic).rawValue)
        terms.add("token.field", field.canonicalName)
        terms.add("token.prefix", prefix)
    }
}

extension TokenSettings {
    private enum Keys {
        static let grant = Key(required: "grant", ValueForm<Grant>.choice, "Method of obtaining the token.")
        static let url = Key(
            "url", .address,
            without: "with `mobilefirst` and `upstream`: that server's; else required, but not with `static`",
            "Token endpoint.")
        static let issuers = Key(
            "issuers", .filledList(of: .issuer, else: "is empty: name at least one server"),
            "Authorization servers that the resource may choose from (RFC 9728), instead of `url`.")
        static let revocation = Key(
            "revocation", .address,
            "Address at which access tokens are revoked (RFC 7009) when they are no longer needed.")
        static let lifetime = Key(
            "lifetime", .duration(atLeast: .seconds(5)), without: "until it is refused",
            "Lifetime of a token if the server sends no `expires_in`; a new token is obtained before its end.")
        static let detect = Key(
            "detect", .matchers, without: "401 with `WWW-Authenticate: Bearer`",
            "Matchers of further responses that ask for a token, for an API whose 401 names no scheme.")
        static let scope = Key(
            "scope", .words, default: [], words: "with `issuers`, what the resource names; else none",
            "Scope that is always requested.")
        static let audience = Key(
            "audience", .word,
            without: "with `issuers`, the resource itself by `resource` (RFC 8707); else none",
            "Service that the token is for; with `registry`, the only name that the registry may give itself.")
        static let parameters = Key(
            "parameters", .parameters, without: "none",
            "More parameters of the token request; an empty value removes a standard parameter.")
        static let clientAuthentication = Key(
            "client-auth", ValueForm<ClientAuthentication>.choice,
            without: "with `issuers`, what the server's metadata names; else `basic`",
            "Method of client authentication at the token endpoint.")
        static let tls = Key(
            "tls", .mapping(TLSSettings.section, TLSSettings.read),
            without: "the `ca` and `minimum` of the upstream's `tls`, and no certificate",
            "TLS settings for the token's servers, as in `upstreams.*.tls`.")
        static let field = Key<HTTPField.Name>(
            "field", .fieldName, default: .authorization, "Field of the request that carries the token.")
        static let prefix = Key(
            "prefix", .text, without: "`Bearer`; nothing with another `field`",
            "Word before the token in that field.")
    }

    /// Table of `challenges.token`.
    static let section = KeySection(
        "challenges.token",
        [
            Keys.grant, Keys.url, Keys.issuers, Keys.revocation, Keys.lifetime, Keys.detect, Keys.scope, Keys.audience,
            Keys.parameters, Keys.clientAuthentication, Keys.tls, Keys.field, Keys.prefix,
        ])

    /// Reads `token`.
    static func read(_ fields: Fields, _ context: ChallengeContext) -> TokenSettings? {
        let grant = fields[Keys.grant]
        let written = fields[Keys.url]
        let urlValue = fields.written(Keys.url)
        let issuers = fields[Keys.issuers] ?? []
        let revocation = fields[Keys.revocation]
        let lifetime = fields[Keys.lifetime]
        let (scope, audience) = (fields[Keys.scope], fields[Keys.audience])
        let parameters = fields[Keys.parameters] ?? []
        let authentication = fields[Keys.clientAuthentication]
        let tls = fields[Keys.tls]
        let field = fields[Keys.field]
        let standardPrefix = field == .authorization ? "Bearer" : ""
        if fields.written(Keys.prefix) == nil { fields.assume(Keys.prefix, standardPrefix, isPlain: false) }
        let prefix = fields[Keys.prefix] ?? standardPrefix
        guard let grant else { return nil }
        let url = urlValue == nil ? context.upstream.flatMap(grant.endpoint) : written
        if urlValue == nil, let url { fields.assume(Keys.url, "\(url)") }
        checkServers(of: grant, url: url, fields)
        var settings = TokenSettings(
            grant: grant, url: url, issuers: issuers, revocation: revocation, scope: scope, audience: audience,
            parameters: parameters, clientAuthentication: authentication, field: field, prefix: prefix)
        settings.lifetime = lifetime
        settings.tls = tls
        settings.checkTLS(fields)
        settings.detect = fields[Keys.detect] ?? []
        return settings
    }

    /// Reports `tls` that is never used, and a client without the certificate that authenticates it (RFC 8705 §2).
    private func checkTLS(_ fields: Fields) {
        let servers = [url].compactMap(\.self) + issuers.map(\.url)
        let tlsValue = fields.written(Keys.tls)
        if grant.asksNobody {
            tlsValue?.report("the grant \(grant.rawValue) uses no server")
        } else if !servers.isEmpty, servers.allSatisfy({ $0.origin.scheme == .http }) {
            tlsValue?.report("the token's server is reached without TLS, through http://", severity: .warning)
        }
        guard clientAuthentication == .tls else { return }
        let value = fields.written(Keys.clientAuthentication)
        if tls?.certificate == nil {
            value?.report("needs the client's certificate: add `tls` with `certificate` and `key`")
        } else if servers.contains(where: { $0.origin.scheme == .http }) {
            value?.report("needs an https:// address: without TLS no certificate is sent")
        }
    }

    /// Reports addresses that contradict each other or the grant.
    private static func checkServers(of grant: Grant, url: WebURL?, _ fields: Fields) {
        let issuersValue = fields.written(Keys.issuers)
        let revocationValue = fields.written(Keys.revocation)
        let urlValue = fields.written(Keys.url)
        if urlValue == nil, url == nil, issuersValue == nil, !grant.asksNobody { fields.reportMissing(Keys.url) }
        if grant.asksNobody { urlValue?.report("the grant \(grant.rawValue) uses no server") }
        if !grant.isOfOAuth {
            revocationValue?.report("belongs to the grants client-credentials, password and refresh-token")
        } else if issuersValue != nil {
            revocationValue?.report("cannot be combined with `issuers`: it belongs to the one server of `url`")
        }
        guard let issuersValue else { return }
        if let urlValue {
            issuersValue.report(
                "cannot be combined with `url` in line \(urlValue.keyMark.line): a token has only one of them")
        } else if !grant.isOfOAuth {
            issuersValue.report("belongs to the grants client-credentials, password and refresh-token")
        }
    }
}

extension ValueForm where Content == AuthorizationServer {
    /// The issuer identifier of an authorization server.
    fileprivate static let issuer = ValueForm("address", plural: "addresses") { value in
        guard let text = value.word() else { return nil }
        guard let server = AuthorizationServer(text) else {
            value.report(
                "is not an issuer (use an https:// address without a query, exactly as in the server's metadata, RFC 8414; "
                    + "http:// on this machine only)")
            return nil
        }
        return server
    }
}
