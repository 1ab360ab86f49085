// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Error of a malformed template, or of one that a credential cannot fill. It holds names, never values.
public enum TemplateError: Error, Sendable, Equatable {
    /// The credential has no field of that name.
    case fieldMissing(field: String, credential: String)
    /// The field's bytes are not UTF-8, but the template needs text.
    case fieldNotText(field: String, credential: String)
    /// The field cannot be part of a path: it is empty, or has control characters or dot segments.
    case fieldUnfitForPath(field: String, credential: String)
    /// The template is malformed; the reason describes the error and the correct form.
    case malformed(reason: String)
    /// The field `totp-seed` is not a valid seed of one-time passwords, for that reason.
    case oneTimePasswordSeed(credential: String, reason: String)
    /// The field is put before a colon, but has one itself.
    case fieldHasColon(field: String, credential: String)
    /// The server has sent nothing at `source` that a field can carry.
    case valueNotFound(source: String)
    /// The credential has no source of one-time passwords: a program supplied it without.
    case oneTimePasswordUnsupported(credential: String)
    /// The current one-time password was used already. The next one starts at `nextAt`, in milliseconds since 1970.
    case oneTimePasswordUsed(credential: String, nextAt: Int64)

    /// The error and its remedy, without secrets.
    public var reason: String {
        switch self {
        case .fieldMissing(let field, let credential):
            "The credential \"\(credential)\" has no field \"\(field)\". Add it to the source "
                + "that the credential comes from; `countersign doctor` says how."
        case .fieldNotText(let field, let credential):
            "The field \"\(field)\" of the credential \"\(credential)\" is not UTF-8 text. Store it as text."
        case .fieldHasColon(let field, let credential):
            "The field \"\(field)\" of the credential \"\(credential)\" holds a colon: the text after it would be read as "
                + "the next field."
        case .fieldUnfitForPath(let field, let credential):
            "The field \"\(field)\" of the credential \"\(credential)\" cannot be part of a path: it is empty, or holds "
                + "control characters or a segment . or .. that would lead elsewhere."
        case .valueNotFound(let source):
            "The server has sent nothing at {\(source)} that a field can carry. Check the name or the expression against "
                + "what `countersign login --verbose` shows of the answers."
        case .malformed(let reason):
            reason
        case .oneTimePasswordUnsupported(let credential):
            "The credential \"\(credential)\" cannot provide {totp}: this program computes no one-time passwords for it."
        case .oneTimePasswordSeed(let credential, let reason):
            "The field \"totp-seed\" of the credential \"\(credential)\" \(reason). Store the seed in base32, or the whole "
                + "otpauth:// address that the server gave, for example with `countersign keyring set \(credential) "
                + "totp-seed`."
        case .oneTimePasswordUsed(let credential, _):
            "The one-time password of the credential \"\(credential)\" was used a moment ago, and none is used twice. Try "
                + "again with the next one."
        }
    }

    /// Returns the login failure of this error. Without the field there is no credential, and nothing was sent; the
    /// next one-time password is available in a moment.
    public func loginFailure(challenge: String) -> LoginFailure {
        if case .oneTimePasswordUsed(_, let nextAt) = self {
            return LoginFailure(.failed, challenge: challenge, detail: reason, retryAt: nextAt)
        }
        if case .valueNotFound = self { return LoginFailure(.failed, challenge: challenge, detail: reason) }
        return LoginFailure(.noCredential, challenge: challenge, detail: reason)
    }
}
