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
    /// `{totp}` cannot be computed by this version.
    case oneTimePasswordUnsupported(credential: String)

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
            "The credential \"\(credential)\" is to give {totp}, and this version cannot compute one-time passwords yet."
        }
    }

    /// This error as the end of a login: without the field there is no credential to answer with, and nothing was sent.
    public func loginFailure(challenge: String) -> LoginFailure {
        LoginFailure(.noCredential, challenge: challenge, detail: reason)
    }
}
