// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// What a connection to the upstream is authenticated with, where the scheme is one of connections and not of requests (NTLM,
/// MS-NTHT). The exchange of messages is libcurl's; a connection of one credential carries no request of another.
public struct ConnectionCredential: Sendable, Equatable {
    /// `user`, or `DOMAIN\user`.
    public var username: Secret
    /// The password.
    public var password: Secret

    /// A credential.
    public init(username: Secret, password: Secret) {
        self.username = username
        self.password = password
    }
}
