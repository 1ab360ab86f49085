// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A bearer token (RFC 6750) as one of a list of schemes: the token's own login wins it.
public struct BearerScheme: AuthenticationScheme {
    private let makeLogin: @Sendable (LoginOccasion) -> any SessionLogin

    /// The scheme; `makeLogin` makes the login for a token.
    public init(makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin) { self.makeLogin = makeLogin }

    /// `bearer`.
    public var name: String { "bearer" }

    /// A token is missing, is good no more, or needs more scope.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        let isOffered = challenges.contains { challenge in
            challenge.isScheme("Bearer") && (realm == nil || challenge["realm"] == realm)
                && [nil, "invalid_token", "insufficient_scope"].contains(challenge["error"])
        }
        return isOffered ? .challenged() : nil
    }

    /// A 403 that asks for more scope (RFC 6750 §3.1).
    public func refusal(in response: ExaminedResponse, realm: String?) -> Challenge {
        BearerDetector(realm: realm).examine(response, hasSession: true)
    }

    /// A session with a token. Its login looks the credential up by itself, since a token endpoint's word closes a latch of
    /// its own.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        let login = makeLogin(LoginOccasion(scope: occasion.scope, challenge: occasion.response))
        return .session(try await login.win(occasion.conversation))
    }
}

extension SchemeKind {
    /// `bearer`.
    package static let bearer = SchemeKind(rawValue: "bearer") { _, _, token in
        token.map { token in BearerScheme { token.login($0) } }
    }
}
