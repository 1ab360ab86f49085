// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How a token is won from a token endpoint (RFC 6749 §3.2).
public struct TokenConfiguration: Sendable, Equatable {
    /// The grants that need nobody's presence.
    public enum Grant: String, Sendable {
        /// RFC 6749 §4.4.
        case clientCredentials = "client_credentials"
        /// RFC 6749 §4.3; fields `username` and `password`.
        case password
        /// RFC 6749 §6; field `refresh-token`.
        case refreshToken = "refresh_token"
    }

    /// How the client says who it is; fields `client-id`, and `client-secret` or `private-key`.
    public enum ClientAuthentication: String, Sendable, CaseIterable {
        /// `Authorization: Basic` (RFC 6749 §2.3.1).
        case basic
        /// Parameters of the body (RFC 6749 §2.3.1).
        case body
        /// A signed assertion (RFC 7523 §2.2).
        case privateKeyJWT = "private-key-jwt"
    }

    /// A further parameter of the token request. One of a standard name takes its place, and an empty one leaves it out.
    public typealias Parameter = NamedTemplate

    /// The token endpoint.
    public var url: WebURL
    /// How a token is asked for.
    public var grant: Grant
    /// How the client says who it is.
    public var clientAuthentication: ClientAuthentication
    /// For whom the token is to be, where the endpoint wants it named (`audience`, RFC 8693 §2.1).
    public var audience: String?
    /// The resource that the token is to be good for (RFC 8707), where one is known; an audience or a parameter that is configured takes its
    /// place.
    public var resource: String?
    /// Who a client's assertion is for; `nil`: the endpoint.
    public var assertionAudience: String?
    /// Further parameters.
    public var parameters: [Parameter]
    /// Where the token goes.
    public var placement: TokenPlacement

    /// A configuration.
    public init(
        url: WebURL, grant: Grant, clientAuthentication: ClientAuthentication = .basic, audience: String? = nil,
        parameters: [Parameter] = [], placement: TokenPlacement = TokenPlacement()
    ) {
        self.url = url
        self.grant = grant
        self.clientAuthentication = clientAuthentication
        self.audience = audience
        self.parameters = parameters
        self.placement = placement
    }
}
