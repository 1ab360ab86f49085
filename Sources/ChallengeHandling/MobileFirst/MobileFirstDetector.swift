// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Finds what a resource of MobileFirst 8.0 asks of the login of its upstream.
public struct MobileFirstDetector: ChallengeDetector {
    /// A detector.
    public init() {}

    /// For `explain`.
    public var kind: String { "mobilefirst" }

    /// Bearer challenges, `insufficient_scope`, `MFP-Conflict`.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        if Self.isConflict(status: response.status, fields: response.fields) { return .replay }
        return BearerDetector().examine(response, hasSession: hasSession)
    }

    /// Whether the answer is MobileFirst's "send it again"; the field's value says nothing.
    static func isConflict(status: Int, fields: HTTPFields) -> Bool {
        status == 409 && fields.contains { $0.name.canonicalName == "mfp-conflict" }
    }
}
