// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling

/// Kaazing's sample: Basic at the locations of `pattern`, with one login for each realm.
///
/// `otherwise` serves all other realms. Throws if `pattern` is malformed.
public func basicLogins(
    at pattern: String, realms: [String: LoginCredentials], otherwise: any LoginHandler
) throws(LocationError) -> DispatchChallengeHandler {
    let basic = BasicChallengeHandler(otherwise)
    for (realm, credentials) in realms { basic.setRealmLoginHandler(realm, FixedLogin(credentials)) }
    return try DispatchChallengeHandler().register(basic, at: pattern)
}

/// Login handler with one fixed name and password.
public struct FixedLogin: LoginHandler {
    private let login: LoginCredentials

    /// Creates a handler that answers with `login`.
    public init(_ login: LoginCredentials) { self.login = login }

    /// Returns the login, but only once: a rejected login would be rejected again.
    public func credentials(for request: ChallengeRequest) async throws -> LoginCredentials? {
        request.isRepeated ? nil : login
    }
}
