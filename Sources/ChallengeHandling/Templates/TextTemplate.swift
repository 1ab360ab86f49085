// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// A text template over the fields of a credential: `"Bearer {token}"`.
///
/// `{name}` is replaced by a field, `{{` and `}}` by single braces. A name consists of letters, digits, `-`, `_` and
/// `.`. The name `totp` is reserved for a one-time password computed from the field `totp-seed`.
/// `{base64:username:password}` is replaced by the base64 text of fields joined by colons. In a gateway's login, a
/// `ValueSource` in braces, such as `{cookie:csrftoken}`, is replaced by a value that the server has sent.
public struct TextTemplate: Sendable, Hashable {
    /// A part of the text.
    package enum Part: Sendable, Hashable {
        /// Fields joined by colons, in base64.
        case base64([String])
        /// The field of that name.
        case field(String)
        /// Literal text.
        case literal(String)
        /// A one-time password.
        case oneTimePassword
        /// A value that the server has sent.
        case received(ValueSource)
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

    /// The text, if it has no fields and no values of a server; nil otherwise.
    package var constant: String? {
        guard parts.count <= 1 else { return nil }
        guard let part = parts.first else { return "" }
        if case .literal(let text) = part { return text }
        return nil
    }

    /// The required fields of a credential, including `totp-seed` for a one-time password.
    public var fieldNames: Set<String> {
        Set(
            parts.flatMap { part -> [String] in
                switch part {
                case .base64(let names): names
                case .field(let name): [name]
                case .literal, .received: []
                case .oneTimePassword: ["totp-seed"]
                }
            })
    }

    /// The sources of values that the server sends.
    public var sources: [ValueSource] {
        parts.compactMap { if case .received(let source) = $0 { source } else { nil } }
    }

    /// Returns the text with the fields of `credential`. Throws if a field is missing. Each `{totp}` uses up a one-time
    /// password, and throws if the current one is used up already.
    ///
    /// Fields are inserted byte for byte: a header field or a form needs its own check of allowed characters.
    /// `received` returns values that the server has sent.
    public func render(
        _ credential: Credential, received: (ValueSource) -> Secret? = { _ in nil }
    ) async throws(TemplateError) -> Secret {
        var values: [Secret] = []
        for part in parts { values.append(try await Self.value(of: part, credential, received)) }
        return .joining(values)
    }

    /// Returns the value of one part.
    package static func value(
        of part: Part, _ credential: Credential, _ received: (ValueSource) -> Secret?
    ) async throws(TemplateError) -> Secret {
        switch part {
        case .base64(let names): return try base64(names, of: credential)
        case .field(let name): return try field(name, of: credential)
        case .literal(let text): return Secret(text)
        case .oneTimePassword:
            let (seed, passwords) = try oneTimePasswords(of: credential)
            return try await passwords.password(from: seed, of: credential.name)
        case .received(let source):
            guard let value = received(source) else { throw .valueNotFound(source: source.text) }
            return value
        }
    }

    /// Throws the error that `render` would throw now, without using up a password.
    public func check(_ credential: Credential) async throws(TemplateError) {
        for part in parts {
            switch part {
            case .base64(let names): _ = try Self.base64(names, of: credential)
            case .field(let name): _ = try Self.field(name, of: credential)
            case .literal, .received: continue
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

    private static func base64(_ names: [String], of credential: Credential) throws(TemplateError) -> Secret {
        var joined: [Secret] = []
        for (index, name) in names.enumerated() {
            let value = try field(name, of: credential)
            let isLast = index + 1 == names.count
            guard isLast || !value.revealBytes().contains(UInt8(ascii: ":")) else {
                throw .fieldHasColon(field: name, credential: credential.name)
            }
            joined += isLast ? [value] : [value, Secret(":")]
        }
        return Secret.joining(joined).base64()
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
                guard let end = end(of: rest) else {
                    throw .malformed(reason: "A { has no }; write {{ for the character itself.")
                }
                if !literal.isEmpty { parts.append(.literal(literal)) }
                literal = ""
                parts.append(try part(rest[..<end]))
                rest = rest[rest.index(after: end)...]
            default:
                literal.append(sign)
            }
        }
        if !literal.isEmpty { parts.append(.literal(literal)) }
        return parts
    }

    /// Returns the end of the text in braces. A regular expression may contain braces itself.
    private static func end(of rest: Substring) -> Substring.Index? {
        guard rest.hasPrefix("page:/") else { return rest.firstIndex(of: "}") }
        var before: Character?
        var index = rest.index(rest.startIndex, offsetBy: 6)
        while index < rest.endIndex {
            if rest[index] == "}", before == "/" { return index }
            // An escaped character cannot end the expression.
            before = before == "\\" ? nil : rest[index]
            index = rest.index(after: index)
        }
        return nil
    }

    private static func part(_ text: Substring) throws(TemplateError) -> Part {
        if text == "totp" { return .oneTimePassword }
        if isFieldName(text) { return .field(String(text)) }
        if let source = try ValueSource(parsing: text) { return .received(source) }
        let words = text.split(separator: ":", omittingEmptySubsequences: false)
        if words.first == "base64", words.count > 1, words.dropFirst().allSatisfy(isFieldName) {
            return .base64(words.dropFirst().map(String.init))
        }
        throw .malformed(
            reason: "A field's name is made of letters, digits, -, _ and .; write {{ for the character { itself.")
    }

    private static func isFieldName(_ name: Substring) -> Bool {
        !name.isEmpty && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
    }
}
