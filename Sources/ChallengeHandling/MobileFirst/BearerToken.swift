// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// The answer of a token endpoint (RFC 6749 §5.1), read strictly.
struct BearerToken {
    /// The session that injects it.
    let session: Session
    /// How long the server says it lives, in seconds.
    let seconds: Int64?

    /// Reads `body`, the answer to a request sent at `sentAt` (milliseconds since 1970): from then on the life counts,
    /// so that the session never outlives the token. `nil` where there is no bearer token that a field can carry.
    init?(_ body: [UInt8], sentAt: Int64) {
        guard let value = JSONValue(parsing: body), let token = value["access_token"]?.stringValue,
            Self.isToken(token), (value["token_type"]?.stringValue ?? "Bearer").lowercased() == "bearer"
        else { return nil }
        // A life beyond ten years is a mistake in units; it is cut, so that nothing can overflow.
        seconds = value["expires_in"]?.integerValue.map { min(max($0, 0), 10 * 366 * 86400) }
        let end = seconds.map { sentAt.addingReportingOverflow($0 * 1000) }
        session = Session(
            fields: [InjectedField(name: .authorization, value: Secret("Bearer \(token)"))],
            expiresAt: end.flatMap { $0.overflow ? nil : $0.partialValue })
    }

    /// b64token = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"=" (RFC 6750 §2.1)
    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default:
                    "-._~+/=".utf8.contains(byte)
                }
            }
    }
}
