// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A scheme that `scheme` may name. Each is one folder, and one line of `allCases`.
package struct SchemeKind: Sendable {
    /// Its name in the configuration.
    package let rawValue: String
    /// True if it does with what GSS-API has: the ticket cache or keytab of the process.
    var needsCredential = true
    /// True if it authenticates a connection, which no other program can use.
    var authenticatesConnections = false
    /// The scheme at a site. `token`: the authenticator of the settings' `token`. `nil` where that is what it takes, and there is none.
    let make: @Sendable (SchemeSettings, LoginSite, _ token: Authenticator?) -> (any AuthenticationScheme)?
}

extension SchemeKind: CaseIterable {
    /// All schemes.
    package static let allCases: [SchemeKind] = [.basic, .bearer, .digest, .negotiate, .ntlm]
}

extension SchemeKind: RawRepresentable, Hashable {
    /// The scheme of that name.
    package init?(rawValue: String) {
        guard let kind = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = kind
    }
}
