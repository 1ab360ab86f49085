// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import HTTPTypes

/// Where a bearer token comes from and where it goes.
package struct TokenSettings: Sendable, Equatable {
    /// How it is won.
    package enum Grant: String, Sendable, CaseIterable {
        /// RFC 6749 §4.4.
        case clientCredentials = "client-credentials"
        /// A confidential client of a MobileFirst server.
        case mobileFirst = "mobilefirst"
        /// RFC 6749 §4.3.
        case password
        /// RFC 6749 §6.
        case refreshToken = "refresh-token"
        /// The token service of a container registry.
        case registry
        /// The credential's field `token` as it is.
        case `static`
    }

    /// How the client authenticates at the token endpoint.
    package enum ClientAuthentication: String, Sendable, CaseIterable {
        /// By `Authorization: Basic` (RFC 6749 §2.3.1).
        case basic
        /// By parameters of the body.
        case body
        /// By a signed assertion (RFC 7523).
        case privateKeyJWT = "private-key-jwt"
    }

    /// How it is won.
    package var grant: Grant
    /// The token endpoint; `nil` with the grant `static`, and where `issuers` are named.
    package var url: WebURL?
    /// The authorization servers among which the resource may choose (RFC 9728); empty where `url` says it all.
    package var issuers: [AuthorizationServer]
    /// Where tokens are revoked (RFC 7009); `nil`: they are not.
    package var revocation: WebURL?
    /// The scope's elements.
    package var scope: [String]
    /// The audience, where the endpoint wants one named.
    package var audience: String?
    /// More parameters of the token request, in the order of the file.
    package var parameters: [NamedTemplate]
    /// How the client authenticates; `nil`: as its server would have it, where that says so, and else by Basic.
    package var clientAuthentication: ClientAuthentication?
    /// The field of the request that carries the token.
    package var field: HTTPField.Name
    /// The word before the token in that field, a space between; empty for none.
    package var prefix: String
}

/// A parameter and its value.
package struct NamedTemplate: Sendable, Hashable {
    /// The parameter's name.
    package var name: String
    /// Its value.
    package var value: TextTemplate
}
