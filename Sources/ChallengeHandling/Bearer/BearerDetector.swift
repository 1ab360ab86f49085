// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Finds challenges for a bearer token (RFC 6750 §3).
public struct BearerDetector: ChallengeDetector {
    /// Only challenges of this realm; `nil`: of any.
    public let realm: String?
    /// Whether a token for more scope can be had.
    public let canGrow: Bool

    /// A detector.
    public init(realm: String? = nil, canGrow: Bool = true) {
        self.realm = realm
        self.canGrow = canGrow
    }

    /// For `explain`.
    public var kind: String { "bearer" }

    /// 401 with `Bearer`, and 403 with its `insufficient_scope`. Other parameters say nothing here; `resource_metadata` (RFC
    /// 9728) is for `TokenDiscovery`, where the configuration allows servers by name.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard response.status == 401 || response.status == 403,
            let challenges = try? AuthenticationChallenge.parse(response.fields[values: .wwwAuthenticate]),
            let challenge = challenges.first(where: isMeant)
        else { return .pass }
        switch (response.status, challenge["error"]) {
        case (401, nil), (401, "invalid_token"):
            // A token that cannot grow is the same one again.
            return hasSession && !canGrow ? .refused : .challenged()
        case (403, "insufficient_scope"):
            // Without words there is nothing to ask for that the session does not have.
            let scope = Scope(text: challenge["scope"] ?? "")
            return scope.isEmpty || !canGrow ? .pass : .challenged(scope: scope.words)
        default:
            return .pass
        }
    }

    private func isMeant(_ challenge: AuthenticationChallenge) -> Bool {
        challenge.isScheme("Bearer") && (realm == nil || challenge["realm"] == realm)
    }
}
