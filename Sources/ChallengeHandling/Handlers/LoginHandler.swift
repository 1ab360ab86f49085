// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Gives name and password for a challenge: by asking a person, most often.
public protocol LoginHandler: Sendable {
    /// Name and password; `nil` gives up. Called again, with `isRepeated`, where they were wrong.
    func credentials(for request: ChallengeRequest) async throws -> LoginCredentials?
}

/// A name and a password.
public struct LoginCredentials: Sendable {
    /// The user's name.
    public let username: String
    /// The password.
    public let password: Secret

    /// A name and a password that is kept as a secret already.
    public init(username: String, password: Secret) {
        self.username = username
        self.password = password
    }

    /// A name and a password.
    public init(username: String, password: String) {
        self.init(username: username, password: Secret(password))
    }
}
