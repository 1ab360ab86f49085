// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Finds challenges of container registries, which name the scope that the request needs.
public struct RegistryDetector: ChallengeDetector {
    /// Only challenges of this realm, which is the token service's address; `nil`: of any.
    public let realm: String?

    /// A detector.
    public init(realm: String? = nil) { self.realm = realm }

    /// For `explain`.
    public var kind: String { "bearer of a registry" }

    /// 401 with `Bearer` and a realm. Registries answer with 401 also where the token is good and covers too little, and tell
    /// that by `insufficient_scope` or not at all.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard let challenge = RegistryChallenge(status: response.status, fields: response.fields),
            realm == nil || challenge.realm == realm
        else { return .pass }
        let words = challenge.scope.words
        switch challenge.error {
        case nil where !hasSession, "insufficient_scope":
            return words.isEmpty && hasSession ? .pass : .challenged(scope: words)
        case nil, "invalid_token":
            return .challenged()
        default:
            return .pass
        }
    }
}
