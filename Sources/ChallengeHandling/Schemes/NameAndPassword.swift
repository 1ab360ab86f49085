// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// The fields `username` and `password` of a credential, fit for HTTP authentication.
///
/// They go out as the UTF-8 that they are kept in, sign by sign: nothing is normalised.
public struct NameAndPassword: Sendable {
    /// The user's name.
    public let username: Secret
    /// The password; it may be empty.
    public let password: Secret

    /// Takes both from `credential`. Throws `no-credential` where one is missing, is no UTF-8, or holds a control
    /// character, which neither Basic nor Digest can carry (RFC 7617 §2).
    public init(_ credential: Credential, challenge: String) throws(LoginFailure) {
        username = try Self.field("username", of: credential, challenge)
        password = try Self.field("password", of: credential, challenge)
    }

    private static func field(
        _ name: String, of credential: Credential, _ challenge: String
    ) throws(LoginFailure) -> Secret {
        guard let value = credential[name] else {
            throw TemplateError.fieldMissing(field: name, credential: credential.name).loginFailure(
                challenge: challenge)
        }
        guard String(validating: value.revealBytes(), as: UTF8.self) != nil else {
            throw TemplateError.fieldNotText(field: name, credential: credential.name).loginFailure(
                challenge: challenge)
        }
        let isClean = value.withBytes { bytes in
            for index in bytes.indices where bytes[index] < 0x20 || bytes[index] == 0x7F { return false }
            return true
        }
        guard isClean else {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail:
                    "The field \"\(name)\" of the credential \"\(credential.name)\" holds a control character, perhaps "
                    + "the end of a line, which HTTP authentication cannot carry. Store it without.")
        }
        return value
    }
}
