// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How the fake OAuth 2 server behaves; a test may change it.
package struct OAuthRules: Sendable {
    /// A client that has registered by hand.
    package struct Client: Sendable {
        /// Its identifier.
        package var id: String
        /// Its secret; `nil`: it has none (a public client), or a key.
        package var secret: String?
        /// Its public key, with which it signs assertions.
        package var key: JSON?
        /// What it may ask for.
        package var grants: Set<String>

        /// A client.
        package init(
            id: String, secret: String?, key: JSON? = nil,
            grants: Set<String> = ["client_credentials", "password", "refresh_token"]
        ) {
            self.id = id
            self.secret = secret
            self.key = key
            self.grants = grants
        }
    }

    /// The clients. The secret has signs in it that Basic must carry encoded (RFC 6749 §2.3.1).
    package var clients = [Client(id: "demo", secret: "demo:secret+%")]
    /// Users and their passwords.
    package var users = ["ann": "demo"]
    /// The elements of scopes that there are; the first is what a client gets that asks for none.
    package var scopes = ["read", "write", "admin"]
    /// How long a token lives, in seconds.
    package var tokenLife: Int64 = 300
    /// Whether the answer says how long, and whether as text.
    package var tellsLife = true
    /// Whether a refresh token is good once, and its second use revokes all that came of it (RFC 9700 §4.14.2).
    package var rotates = true

    /// The rules of most tests.
    package init() {}
}
