// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling

/// Kaazing's sample: Basic, with another login for each realm, at some places only.
public func basicLogins(
    at pattern: String, realms: [String: LoginCredentials], otherwise: any LoginHandler
) throws(LocationError) -> DispatchChallengeHandler {
    let basic = BasicChallengeHandler(otherwise)
    for (realm, credentials) in realms { basic.setRealmLoginHandler(realm, FixedLogin(credentials)) }
    return try DispatchChallengeHandler().register(basic, at: pattern)
}

/// A login that is always the same.
public struct FixedLogin: LoginHandler {
    private let login: LoginCredentials

    /// That login.
    public init(_ login: LoginCredentials) { self.login = login }

    /// Once only: the same again would be wrong again.
    public func credentials(for request: ChallengeRequest) async throws -> LoginCredentials? {
        request.isRepeated ? nil : login
    }
}
