// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A way to a token that `grant` may name. Each is one folder, and one line of `allCases`.
package struct TokenGrant: Sendable {
    /// Its name in the configuration.
    package let rawValue: String
    /// The fields that it takes from a credential.
    let neededFields: @Sendable (TokenSettings) -> Set<String>
    /// True if it is one of OAuth 2, by an endpoint that `issuers` may name and that revokes.
    var isOfOAuth = false
    /// True if nobody is asked for the token.
    var asksNobody = false
    /// True if it cannot be one of several schemes.
    var standsAlone = false
    /// The endpoint that an upstream has for it, where none is written.
    var endpoint: @Sendable (ProtectedUpstream) -> WebURL? = { _ in nil }
    /// The authenticator; `nil` where the settings name no server.
    let make: @Sendable (TokenLogins) -> Authenticator?
}

extension TokenGrant: CaseIterable {
    /// All ways.
    package static let allCases: [TokenGrant] = [
        .clientCredentials, .mobileFirst, .password, .refreshToken, .registry, .static,
    ]
}

extension TokenGrant: RawRepresentable, Hashable {
    /// The way of that name.
    package init?(rawValue: String) {
        guard let grant = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = grant
    }
}
