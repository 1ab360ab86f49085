// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// A text template over the fields of a credential: `"Bearer {token}"`.
///
/// `{name}` is replaced by a field, `{{` and `}}` by single braces. A name consists of letters, digits, `-`, `_` and
/// `.`. The name `totp` is reserved for a one-time password computed from the field `totp-seed`.
public struct TextTemplate: Sendable, Hashable {
    /// A part of the text.
    package enum Part: Sendable, Hashable {
        /// The field of that name.
        case field(String)
        /// Literal text.
        case literal(String)
        /// A one-time password.
        case oneTimePassword
    }

    /// The template as written.
    public let source: String
    /// The parts in order, never two literals in a row.
    package let parts: [Part]

    /// Parses `source`, or throws `TemplateError.malformed`.
    public init(_ source: String) throws(TemplateError) {
        self.source = source
        parts = try Self.parse(source)
    }

    /// The required fields of a credential, including `totp-seed` for a one-time password.
    public var fieldNames: Set<String> {
        Set(
            parts.compactMap { part in
                switch part {
                case .field(let name): name
                case .literal: nil
                case .oneTimePassword: "totp-seed"
                }
            })
    }

    /// Returns the text with the fields of `credential`. Throws if a field is missing. Each `{totp}` uses up a one-time
    /// password, and throws if the current one is used up already.
    ///
    /// Fields are inserted byte for byte: a header field or a form needs its own check of allowed characters.
    public func render(_ credential: Credential) async throws(TemplateError) -> Secret {
        var bytes: [UInt8] = []
        for part in parts {
            switch part {
            case .field(let name):
                bytes += try Self.field(name, of: credential).revealBytes()
            case .literal(let text):
                bytes += text.utf8
            case .oneTimePassword:
                let (seed, passwords) = try Self.oneTimePasswords(of: credential)
                bytes += try await passwords.password(from: seed, of: credential.name).revealBytes()
            }
        }
        return Secret(bytes)
    }

    /// Throws the error that `render` would throw now, without using up a password.
    public func check(_ credential: Credential) async throws(TemplateError) {
        for part in parts {
            switch part {
            case .field(let name): _ = try Self.field(name, of: credential)
            case .literal: continue
            case .oneTimePassword:
                let (seed, passwords) = try Self.oneTimePasswords(of: credential)
                try await passwords.check(seed, of: credential.name)
            }
        }
    }

    private static func field(_ name: String, of credential: Credential) throws(TemplateError) -> Secret {
        guard let field = credential[name] else { throw .fieldMissing(field: name, credential: credential.name) }
        return field
    }

    private static func oneTimePasswords(
        of credential: Credential
    ) throws(TemplateError) -> (seed: Secret, passwords: any OneTimePasswords) {
        let seed = try field("totp-seed", of: credential)
        guard let passwords = credential.oneTimePasswords else {
            throw .oneTimePasswordUnsupported(credential: credential.name)
        }
        return (seed, passwords)
    }
}

extension TextTemplate {
    private static func parse(_ source: String) throws(TemplateError) -> [Part] {
        var parts: [Part] = []
        var literal = ""
        var rest = source[...]
        while let sign = rest.first {
            rest.removeFirst()
            switch (sign, rest.first) {
            case ("{", "{"), ("}", "}"):
                rest.removeFirst()
                literal.append(sign)
            case ("}", _):
                throw .malformed(reason: "The text has a single }; write }} for the character itself.")
            case ("{", _):
                guard let end = rest.firstIndex(of: "}") else {
                    throw .malformed(reason: "A { has no }; write {{ for the character itself.")
                }
                let name = rest[..<end]
                guard isFieldName(name) else {
                    throw .malformed(
                        reason:
                            "A field's name is made of letters, digits, -, _ and .; write {{ for the character { itself."
                    )
                }
                if !literal.isEmpty { parts.append(.literal(literal)) }
                literal = ""
                parts.append(name == "totp" ? .oneTimePassword : .field(String(name)))
                rest = rest[rest.index(after: end)...]
            default:
                literal.append(sign)
            }
        }
        if !literal.isEmpty { parts.append(.literal(literal)) }
        return parts
    }

    private static func isFieldName(_ name: Substring) -> Bool {
        !name.isEmpty && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
    }
}

/// Error of a malformed template, or of one that a credential cannot fill. It holds names, never values.
public enum TemplateError: Error, Sendable, Equatable {
    /// The credential has no field of that name.
    case fieldMissing(field: String, credential: String)
    /// The field's bytes are not UTF-8, but the template needs text.
    case fieldNotText(field: String, credential: String)
    /// The template is malformed; the reason describes the error and the correct form.
    case malformed(reason: String)
    /// The field `totp-seed` is not a valid seed of one-time passwords; the reason says why.
    case oneTimePasswordSeed(credential: String, reason: String)
    /// The credential has no source of one-time passwords: a program supplied it without.
    case oneTimePasswordUnsupported(credential: String)
    /// The current one-time password was used already. The next one starts at `nextAt`, in milliseconds since 1970.
    case oneTimePasswordUsed(credential: String, nextAt: Int64)

    /// The error and its remedy, without secrets.
    public var reason: String {
        switch self {
        case .fieldMissing(let field, let credential):
            "The credential \"\(credential)\" has no field \"\(field)\". Add it where the credential is stored, "
                + "for example with `countersign keyring set \(credential) \(field)`."
        case .fieldNotText(let field, let credential):
            "The field \"\(field)\" of the credential \"\(credential)\" is not UTF-8 text. Store it as text."
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

    /// Returns the login failure of this error. Without the field there is no credential, and nothing was sent; a
    /// one-time password is available again in a moment.
    public func loginFailure(challenge: String) -> LoginFailure {
        if case .oneTimePasswordUsed(_, let nextAt) = self {
            return LoginFailure(.failed, challenge: challenge, detail: reason, retryAt: nextAt)
        }
        return LoginFailure(.noCredential, challenge: challenge, detail: reason)
    }
}

/// A parameter and the template of its value.
public struct NamedTemplate: Sendable, Hashable {
    /// The parameter's name.
    public var name: String
    /// The template of its value.
    public var value: TextTemplate

    /// Creates a parameter.
    public init(name: String, value: TextTemplate) {
        self.name = name
        self.value = value
    }
}

/// A field of a request and the template of its value.
public struct InjectedTemplate: Sendable, Hashable {
    /// The field's name.
    public var name: HTTPField.Name
    /// The template of its value.
    public var value: TextTemplate

    /// Creates a field.
    public init(name: HTTPField.Name, value: TextTemplate) {
        self.name = name
        self.value = value
    }
}

extension [NamedTemplate] {
    /// The credential's fields that the templates use.
    var fieldNames: Set<String> { reduce(into: []) { $0.formUnion($1.value.fieldNames) } }
}

extension [InjectedTemplate] {
    /// The credential's fields that the templates use.
    var fieldNames: Set<String> { reduce(into: []) { $0.formUnion($1.value.fieldNames) } }
}
