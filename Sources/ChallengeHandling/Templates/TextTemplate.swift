// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Text with the fields of a credential in it: `"Bearer {token}"`.
///
/// `{name}` stands for a field, `{{` and `}}` for the signs themselves. A name is made of letters, digits, `-`, `_` and
/// `.`. The name `totp` is reserved: it stands for a one-time password computed from the field `totp-seed`.
public struct TextTemplate: Sendable, Hashable {
    /// One piece of the text.
    package enum Part: Sendable, Hashable {
        /// The field of that name.
        case field(String)
        /// Text as it is.
        case literal(String)
        /// A one-time password.
        case oneTimePassword
    }

    /// The text as it was written.
    public let source: String
    /// Its pieces in order; no two literals follow one another.
    package let parts: [Part]

    /// Parses `source`, or throws `TemplateError.malformed`.
    public init(_ source: String) throws(TemplateError) {
        self.source = source
        parts = try Self.parse(source)
    }

    /// The fields that a credential must have; `totp-seed` where a one-time password is asked for.
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

    /// The text with the fields of `credential` in it. Throws where a field is missing. Each `{totp}` uses up a one-time
    /// password, and throws where that of the present step is used up already.
    ///
    /// Fields stand in it byte for byte: who puts it into a header field or a form must see to what is allowed there.
    public func render(_ credential: Credential) throws(TemplateError) -> Secret {
        var bytes: [UInt8] = []
        for part in parts {
            switch part {
            case .field(let name):
                bytes += try Self.field(name, of: credential).revealBytes()
            case .literal(let text):
                bytes += text.utf8
            case .oneTimePassword:
                let (seed, passwords) = try Self.oneTimePasswords(of: credential)
                bytes += try passwords.password(from: seed, of: credential.name).revealBytes()
            }
        }
        return Secret(bytes)
    }

    /// Throws what `render` would throw at this moment, and uses nothing up.
    public func check(_ credential: Credential) throws(TemplateError) {
        for part in parts {
            switch part {
            case .field(let name): _ = try Self.field(name, of: credential)
            case .literal: continue
            case .oneTimePassword:
                let (seed, passwords) = try Self.oneTimePasswords(of: credential)
                try passwords.check(seed, of: credential.name)
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
                throw .malformed(reason: "A single } stands in the text; write }} for the sign itself.")
            case ("{", _):
                guard let end = rest.firstIndex(of: "}") else {
                    throw .malformed(reason: "A { has no }; write {{ for the sign itself.")
                }
                let name = rest[..<end]
                guard isFieldName(name) else {
                    throw .malformed(
                        reason: "A field's name is made of letters, digits, -, _ and .; write {{ for the sign { itself."
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
