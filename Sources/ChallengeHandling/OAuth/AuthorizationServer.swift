// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A server that gives out tokens, by the name that it has in its own metadata (its issuer identifier, RFC 8414 §2).
public struct AuthorizationServer: Sendable, Hashable {
    /// The identifier, letter by letter: it is compared as it is written.
    public let issuer: String
    /// The same as an address.
    public let url: WebURL

    /// The server of that identifier. `nil` where it is none: another scheme than https (http only to this machine), a
    /// query, or a fragment (RFC 8414 §2).
    public init?(_ issuer: String) {
        guard !issuer.contains("?"), !issuer.contains("#"), let url = WebURL(issuer) else { return nil }
        guard url.origin.scheme == .https || url.origin.isLoopback else { return nil }
        self.issuer = issuer
        self.url = url
    }

    /// Where its metadata is: first as RFC 8414 §3.1 has it, then by the name of OpenID Connect, there (§5) and where OpenID Connect
    /// Discovery 1.0 §4 has it, which older servers know alone.
    var metadataAddresses: [WebURL] {
        let (inserted, appended) = (
            url.wellKnown("openid-configuration"), url.appending(path: "/.well-known/openid-configuration")
        )
        let openID = inserted == appended ? [appended] : [inserted, appended]
        return [url.wellKnown("oauth-authorization-server")] + openID
    }
}

extension WebURL {
    /// The address of what `name` tells of the resource or the server here: between the host and the path, without a slash
    /// at the end (RFC 8414 §3.1, RFC 9728 §3.1).
    func wellKnown(_ name: String) -> WebURL {
        let rest = path.hasSuffix("/") ? String(path.dropLast()) : path
        return WebURL(origin: origin, path: "/.well-known/\(name)\(rest)", query: query)
    }
}
