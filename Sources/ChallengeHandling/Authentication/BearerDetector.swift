// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Finds challenges for a bearer token (RFC 6750 §3).
public struct BearerDetector: ChallengeDetector {
    /// Only challenges of this realm; `nil`: of any.
    public let realm: String?

    /// A detector.
    public init(realm: String? = nil) { self.realm = realm }

    /// For `explain`.
    public var kind: String { "bearer" }

    /// 401 with `Bearer`, and 403 with its `insufficient_scope`.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> ChallengeVerdict {
        let verdict = MobileFirstResource.examine(status: response.status, fields: response.fields)
        guard verdict != .conflict else { return .notAChallenge }
        guard let realm else { return ChallengeVerdict(verdict) }
        let challenges = (try? AuthenticationChallenge.parse(response.fields[values: .wwwAuthenticate])) ?? []
        return challenges.contains { $0.isScheme("Bearer") && $0["realm"] == realm }
            ? ChallengeVerdict(verdict) : .notAChallenge
    }
}
