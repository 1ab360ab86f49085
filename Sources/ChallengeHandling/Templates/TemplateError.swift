// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A template that cannot be read, or cannot be filled from a credential. Holds names, never values.
public enum TemplateError: Error, Sendable, Equatable {
    /// The credential has no field of that name.
    case fieldMissing(field: String, credential: String)
    /// The field's bytes are no UTF-8, and the place where it is to stand takes only text.
    case fieldNotText(field: String, credential: String)
    /// The template is not written right; the reason says what is wrong and how to write it.
    case malformed(reason: String)
    /// The field `totp-seed` is nothing that one-time passwords can be computed from; the reason says why.
    case oneTimePasswordSeed(credential: String, reason: String)
    /// Nobody computes one-time passwords for this credential: a program gave it without.
    case oneTimePasswordUnsupported(credential: String)
    /// The one-time password of the present step was used already; the next comes then, in milliseconds since 1970.
    case oneTimePasswordUsed(credential: String, nextAt: Int64)

    /// What happened and what to do, without secrets.
    public var reason: String {
        switch self {
        case .fieldMissing(let field, let credential):
            "The credential \"\(credential)\" has no field \"\(field)\". Add it where the credential is kept, "
                + "for example with `countersign keyring set \(credential) \(field)`."
        case .fieldNotText(let field, let credential):
            "The field \"\(field)\" of the credential \"\(credential)\" is no UTF-8 text. Store it as text."
        case .malformed(let reason):
            reason
        case .oneTimePasswordUnsupported(let credential):
            "The credential \"\(credential)\" is to give {totp}, and nothing here computes one-time passwords for it."
        case .oneTimePasswordSeed(let credential, let reason):
            "The field \"totp-seed\" of the credential \"\(credential)\" \(reason). Store the seed in base32, or the whole "
                + "otpauth:// address that the server gave, for example with `countersign keyring set \(credential) "
                + "totp-seed`."
        case .oneTimePasswordUsed(let credential, _):
            "The one-time password of the credential \"\(credential)\" was used a moment ago, and none is used twice. Try "
                + "again with the next."
        }
    }

    /// This error as the end of a login: without the field there is no credential to answer with, and nothing was sent. A
    /// one-time password will be there again in a moment.
    public func loginFailure(challenge: String) -> LoginFailure {
        if case .oneTimePasswordUsed(_, let nextAt) = self {
            return LoginFailure(.failed, challenge: challenge, detail: reason, retryAt: nextAt)
        }
        return LoginFailure(.noCredential, challenge: challenge, detail: reason)
    }
}
