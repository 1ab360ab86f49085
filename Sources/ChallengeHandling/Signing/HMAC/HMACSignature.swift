// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

/// Settings of `sign: { hmac: … }`: a message authentication code (RFC 2104) of a text that a template describes.
package struct HMACSignature: SignatureKind {
    /// Hash function.
    package enum Hash: String, Sendable, CaseIterable {
        case md5, sha1, sha256, sha512

        var algorithm: DigestAlgorithm {
            switch self {
            case .md5: .md5
            case .sha1: .sha1
            case .sha256: .sha256
            case .sha512: .sha512
            }
        }
    }

    /// Form of the signature.
    package enum Encoding: String, Sendable, CaseIterable {
        case base64, base64url, hex
        case hexUpper = "hex-upper"
    }

    /// Form of the secret in the credential.
    package enum SecretForm: String, Sendable, CaseIterable {
        case base64, hex, text
    }

    /// Hash function.
    package var hash: Hash
    /// Template of the text that is signed.
    package var text: TextTemplate
    /// Fields that are added, with the templates of their values.
    package var fields: [InjectedTemplate]
    /// Form of the signature.
    package var encoding: Encoding
    /// Name of the credential's field with the secret.
    package var secret: String
    /// Form of the secret.
    package var secretForm: SecretForm

    /// Fields of the credential in templates, and the secret.
    package var neededFields: Set<String> {
        let names = fields.reduce(into: text.fieldNames) { $0.formUnion($1.value.fieldNames) }
        return names.filter { SignedValue(rawValue: $0) == nil }.union([secret])
    }

    /// True if the signed text depends on the body.
    var needsBody: Bool { !bodyValues.isEmpty }

    /// Values of the body in the templates.
    var bodyValues: Set<SignedValue> {
        let names = fields.reduce(into: text.fieldNames) { $0.formUnion($1.value.fieldNames) }
        return Set(names.compactMap(SignedValue.init).filter(\.needsBody))
    }

    /// Returns whether both set one field.
    package func conflicts(with other: HMACSignature) -> Bool {
        fields.contains { field in other.fields.contains { $0.name == field.name } }
    }

    /// Adds the hash function, the text and the fields.
    package func add(to terms: inout LoginTerms) {
        terms.add("sign.hmac", hash.rawValue)
        terms.add("sign.over", text.source)
        terms.add("sign.fields", fields.terms)
        terms.add("sign.encoding", encoding.rawValue)
    }

    /// Returns an authenticator that signs every request.
    package func authenticator(
        of challenge: ChallengeSettings, _ key: SessionKey, at site: LoginSite
    ) -> Authenticator {
        let (settings, digests) = (self, site.material.digests)
        let login = SigningLogin(key: key) { credential throws(LoginFailure) in
            try HMACSigner(settings, credential, challenge: key.challenge, digests: digests)
        }
        var authenticator = Authenticator(
            name: challenge.name, trigger: .ahead, isAhead: true, key: key, credentials: [key.credential],
            isShareable: false, makeLogin: { _ in login })
        authenticator.signsBodies = needsBody
        return authenticator
    }
}

extension HMACSignature {
    private enum Keys {
        static let hash = Key(
            required: "hmac", ValueForm<Hash>.choice, "Hash function of a message authentication code.")
        static let text = Key<Value?>(
            required: "over", ValueForm("template") { $0 }, "Text that is signed, with values of the request.")
        static let field = Key(
            "field", .fieldName, without: "required unless `fields` carry it", "Field that carries the signature.")
        static let encoding = Key<Encoding>("encoding", .choice, default: .hex, "Form of the signature.")
        static let fields = Key<Value?>(
            "fields", ValueForm("mapping of templates") { $0 },
            "More fields, with values of the request, of the credential, and `{signature}`.")
        static let secret = Key(
            "secret", .word, without: "`secret`", "Field of the credential that holds the secret.")
        static let secretForm = Key<SecretForm>(
            "secret-encoding", .choice, default: .text, "Form in which the credential holds the secret.")
    }

    /// The hash function, and the text that is signed.
    package static let keys: [any SchemaKey] = [
        Keys.hash, Keys.text, Keys.field, Keys.encoding, Keys.fields, Keys.secret, Keys.secretForm,
    ]

    /// Reads the settings.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> HMACSignature? {
        let (hash, name, encoding) = (fields[Keys.hash], fields[Keys.field], fields[Keys.encoding])
        let (secret, form) = (fields[Keys.secret], fields[Keys.secretForm])
        let written = fields[Keys.text]
        let text = written?.template(inLogin: true)
        var added = fields[Keys.fields]?.fieldTemplates(inLogin: true, ofSession: false) ?? []
        if let name {
            if added.contains(where: { $0.name == name }) {
                fields.written(Keys.field)?.report("is also in `fields`: write it once")
            }
            guard let value = try? TextTemplate("{signature}") else { return nil }
            added.append(InjectedTemplate(name: name, value: value))
        }
        guard let hash, let text else { return nil }
        if let written { check(text, isSigned: true, written) }
        for field in added { fields.written(Keys.fields).map { check(field.value, isSigned: false, $0) } }
        guard added.contains(where: { $0.value.fieldNames.contains("signature") }) else {
            fields.value.report("has no field for the signature: add `field`, or `{signature}` in `fields`")
            return nil
        }
        return HMACSignature(
            hash: hash, text: text, fields: added, encoding: encoding, secret: secret ?? "secret", secretForm: form)
    }

    /// Reports values that no request has.
    private static func check(_ template: TextTemplate, isSigned: Bool, _ value: Value) {
        if isSigned, template.fieldNames.contains("signature") {
            value.report("has {signature}, which is made of this text")
        }
        for source in template.sources {
            if case .header = source { continue }
            value.report("has {\(source.text)}: of a request only {header:NAME} is known here")
        }
        if template.parts.contains(.oneTimePassword) { value.report("has {totp}, which is not for every request") }
    }
}
