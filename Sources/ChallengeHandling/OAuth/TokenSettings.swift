// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes

/// The source of a bearer token, and the field that it goes in.
package struct TokenSettings: Sendable, Equatable {
    /// The way to it.
    package typealias Grant = TokenGrant
    /// The client's proof of who it is.
    package typealias ClientAuthentication = TokenConfiguration.ClientAuthentication

    /// The way to it.
    package var grant: Grant
    /// The token endpoint; `nil` with the grant `static`, and where `issuers` are named.
    package var url: WebURL?
    /// The authorization servers among which the resource may choose (RFC 9728); empty where `url` says it all.
    package var issuers: [AuthorizationServer]
    /// The address at which tokens are revoked (RFC 7009); `nil`: they are not.
    package var revocation: WebURL?
    /// The scope's elements.
    package var scope: [String]
    /// The audience, where the endpoint wants one named.
    package var audience: String?
    /// More parameters of the token request, in the order of the file.
    package var parameters: [NamedTemplate]
    /// The client's proof of who it is; `nil`: as its server would have it, where that says so, and else by Basic.
    package var clientAuthentication: ClientAuthentication?
    /// The field of the request that carries the token.
    package var field: HTTPField.Name
    /// The word before the token in that field, a space between; empty for none.
    package var prefix: String

    /// The source of a token.
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

    /// All but the address of revocation.
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
