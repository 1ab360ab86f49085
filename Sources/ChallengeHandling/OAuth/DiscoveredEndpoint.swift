// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A token endpoint, and what was said of it on the way there by the resource (RFC 9728) and by its authorization server (RFC 8414).
public struct DiscoveredEndpoint: Sendable, Equatable {
    /// The endpoint.
    public let url: WebURL
    /// The server that it belongs to.
    public let server: AuthorizationServer
    /// The resource, as its metadata writes it: what the token is to be good for (RFC 8707).
    public let resource: String
    /// How the server would have a client say who it is, by the names of RFC 7591 §2.
    let methods: [String]
    /// What the resource names for its scope; empty where nothing is to be asked for on its word.
    public internal(set) var scope: Scope

    /// How a client says who it is whose configuration does not tell: by its secret in the way that the server takes, the safer
    /// one first; by a key of its own only where the server takes no secret.
    var clientAuthentication: TokenConfiguration.ClientAuthentication {
        let known: [(String, TokenConfiguration.ClientAuthentication)] = [
            ("client_secret_basic", .basic), ("client_secret_post", .body), ("private_key_jwt", .privateKeyJWT),
        ]
        return known.first { methods.contains($0.0) }?.1 ?? .basic
    }

    /// The same, with nothing asked for on the resource's word.
    var unscoped: DiscoveredEndpoint {
        var endpoint = self
        endpoint.scope = .empty
        return endpoint
    }
}

extension TokenConfiguration {
    /// A configuration for an endpoint that was found; without `clientAuthentication` the server's metadata decides.
    public init(
        _ found: DiscoveredEndpoint, grant: Grant, clientAuthentication: ClientAuthentication? = nil,
        audience: String? = nil, parameters: [Parameter] = [], placement: TokenPlacement = TokenPlacement()
    ) {
        self.init(
            url: found.url, grant: grant, clientAuthentication: clientAuthentication ?? found.clientAuthentication,
            audience: audience, parameters: parameters, placement: placement)
        resource = found.resource
        assertionAudience = found.server.issuer
    }
}
