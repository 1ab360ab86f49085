// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a response of a MobileFirst resource means to the login of its upstream.
public struct MobileFirstDetector: ChallengeDetector {
    /// A detector.
    public init() {}

    /// For `explain`.
    public var kind: String { "mobilefirst" }

    /// Bearer challenges, `insufficient_scope`, `MFP-Conflict`.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> ChallengeVerdict {
        ChallengeVerdict(MobileFirstResource.examine(status: response.status, fields: response.fields))
    }
}

extension ChallengeVerdict {
    init(_ verdict: ResourceVerdict) {
        self =
            switch verdict {
            case .conflict: .conflict
            case .insufficientScope(let words): .insufficientScope(words)
            case .notAChallenge: .notAChallenge
            case .tokenInvalid, .tokenMissing: .challenge
            }
    }
}
