// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// What a resource server of MobileFirst says about the token that a request carried.
public enum ResourceVerdict: Sendable, Equatable {
    /// The server's view of the client changed meanwhile: the same request may be sent again, at most 7 times.
    case conflict
    /// The token is good and does not cover the resource; these words name what does.
    case insufficientScope([String])
    /// Nothing that a token would change.
    case notAChallenge
    /// The token is unknown or expired.
    case tokenInvalid
    /// There was no token.
    case tokenMissing
}

/// A resource that a MobileFirst 8.0 server protects.
public enum MobileFirstResource {
    /// What the response says, by its status and fields alone (RFC 6750 §3; 409 with `MFP-Conflict` is MobileFirst's).
    /// A 401 or 403 without `Bearer`, or with a `WWW-Authenticate` that follows no grammar, is an ordinary answer.
    public static func examine(status: Int, fields: HTTPFields) -> ResourceVerdict {
        switch status {
        case 401:
            guard let challenge = bearer(fields) else { return .notAChallenge }
            switch challenge["error"] {
            case nil: return .tokenMissing
            case "invalid_token": return .tokenInvalid
            default: return .notAChallenge
            }
        case 403:
            guard let challenge = bearer(fields), challenge["error"] == "insufficient_scope" else {
                return .notAChallenge
            }
            // Without words there is nothing to ask for that the session does not have.
            let scope = Scope(text: challenge["scope"] ?? "")
            return scope.isEmpty ? .notAChallenge : .insufficientScope(scope.words)
        case 409:
            return isConflict(status: status, fields: fields) ? .conflict : .notAChallenge
        default:
            return .notAChallenge
        }
    }

    /// Whether the answer is MobileFirst's "send it again"; the field's value says nothing.
    static func isConflict(status: Int, fields: HTTPFields) -> Bool {
        status == 409 && fields.contains { $0.name.canonicalName == "mfp-conflict" }
    }

    private static func bearer(_ fields: HTTPFields) -> AuthenticationChallenge? {
        guard let challenges = try? AuthenticationChallenge.parse(fields[values: .wwwAuthenticate]) else { return nil }
        return challenges.first { $0.isScheme("Bearer") }
    }
}
