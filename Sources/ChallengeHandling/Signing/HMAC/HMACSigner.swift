// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Signer of a canonical string with a message authentication code.
final class HMACSigner: RequestSigner {
    private let settings: HMACSignature
    private let text: [Part]
    private let fields: [(name: HTTPField.Name, parts: [Part])]
    private let secret: Secret
    private let challenge: String
    private let digests: any MessageDigests
    private let makeNonce: @Sendable () -> String

    /// Part of a template whose credential fields are filled in.
    private enum Part: Sendable {
        case base64([Part])
        case constant(Secret)
        /// Field of the request.
        case field(HTTPField.Name)
        case value(SignedValue)
    }

    /// Creates a signer with the fields of `credential`; throws `no-credential` if one is missing or unusable.
    init(
        _ settings: HMACSignature, _ credential: Credential, challenge: String, digests: any MessageDigests,
        makeNonce: @escaping @Sendable () -> String = HMACSigner.randomNonce
    ) throws(LoginFailure) {
        self.settings = settings
        self.challenge = challenge
        self.digests = digests
        self.makeNonce = makeNonce
        secret = try Self.secret(settings, credential, challenge)
        text = try Self.parts(settings.text, credential, challenge)
        var fields: [(name: HTTPField.Name, parts: [Part])] = []
        for field in settings.fields { fields.append((field.name, try Self.parts(field.value, credential, challenge))) }
        self.fields = fields
    }

    /// Names of the fields.
    var names: [HTTPField.Name] { fields.map(\.name) }

    /// Empty: responses change nothing.
    var learnsFrom: [HTTPField.Name]? { [] }

    /// Does nothing: responses do not change the signer.
    func learn(status: Int, fields: HTTPFields, target: String) {}

    /// Returns a reader of the body in the form that the templates need.
    func bodyReader(for target: String) -> (any BodyReader)? {
        let values = settings.bodyValues
        if values.isEmpty { return nil }
        let algorithms = Set(values.map(\.algorithm))
        // Several forms are all made of the body itself.
        guard algorithms.count == 1, let algorithm = algorithms.first ?? nil else { return BodyContent() }
        return digests.running(algorithm)
    }

    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        var values = SignedValues(request: request, digests: digests, nonce: makeNonce())
        let code = try bytes(of: text, values).withBytes { bytes in
            digests.authenticationCode(settings.hash.algorithm, key: secret, of: bytes)
        }
        values.signature =
            switch settings.encoding {
            case .base64: Base64.encode(code)
            case .base64url: Base64.encode(code, .url)
            case .hex: Hex.encode(code)
            case .hexUpper: Hex.encode(code).uppercased()
            }
        var signed: [InjectedField] = []
        for field in fields {
            signed.append(InjectedField(name: field.name, value: try bytes(of: field.parts, values).finish()))
        }
        return SignedFields(signed)
    }

    private func bytes(of parts: [Part], _ values: SignedValues) throws(LoginFailure) -> SecretBuilder {
        var text = SecretBuilder(capacity: 256)
        for part in parts {
            switch part {
            case .base64(let parts): text.append(try bytes(of: parts, values).finish().base64())
            case .constant(let secret): text.append(secret)
            case .field(let name):
                guard let fields = values.request.fields else { throw otherProxysFields }
                text.append(fields.bytes(of: name))
            case .value(let value):
                guard let bytes = values.bytes(of: value) else { throw bodyTooLong }
                text.append(bytes)
            }
        }
        return text
    }

    /// Failure of an auth request, whose fields another program sends.
    private var otherProxysFields: LoginFailure {
        LoginFailure(
            .unsignable, challenge: challenge,
            detail:
                "The signature covers a field of the request, which another proxy sends. Send such requests to a listener "
                + "that forwards them.")
    }

    private var bodyTooLong: LoginFailure {
        LoginFailure(
            .bodyTooLong, challenge: challenge,
            detail:
                "The signature covers the whole body, and this one is longer than what is kept before it is sent, or than "
                + "\(BodyContent.limit / 1_048_576) MiB if the body itself is signed. Raise `replay` of the upstream, or sign a "
                + "digest of the body.")
    }

    /// Returns a random UUID (RFC 9562 §5.4).
    static func randomNonce() -> String {
        var generator = SystemRandomNumberGenerator()
        var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let parts = [bytes[0..<4], bytes[4..<6], bytes[6..<8], bytes[8..<10], bytes[10..<16]]
        return parts.map { Hex.encode($0) }.joined(separator: "-")
    }
}

// The fields of the credential.
extension HMACSigner {
    private static func secret(
        _ settings: HMACSignature, _ credential: Credential, _ challenge: String
    ) throws(LoginFailure) -> Secret {
        let secret = try credential.required(settings.secret, for: challenge)
        let decoded: [UInt8]?
        switch settings.secretForm {
        case .text: return secret
        case .base64: decoded = Base64.decode(secret.revealText())
        case .hex: decoded = Hex.decode(secret.revealText())
        }
        guard var bytes = decoded, !bytes.isEmpty else {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail: "The field \"\(settings.secret)\" of the credential \"\(credential.name)\" is not in "
                    + "\(settings.secretForm.rawValue), as `secret-encoding` says. Store it so, or change `secret-encoding`."
            )
        }
        return Secret(taking: &bytes)
    }

    private static func parts(
        _ template: TextTemplate, _ credential: Credential, _ challenge: String
    ) throws(LoginFailure) -> [Part] {
        var parts: [Part] = []
        for part in template.parts {
            switch part {
            case .base64(let names):
                var inner: [Part] = []
                for name in names {
                    if !inner.isEmpty { inner.append(.constant(Secret(":"))) }
                    inner.append(try field(name, credential, challenge))
                }
                parts.append(.base64(inner))
            case .field(let name): parts.append(try field(name, credential, challenge))
            case .literal(let text): parts.append(.constant(Secret(text)))
            case .received(.header(let name)): parts.append(.field(name))
            // The reader of the configuration refuses the others.
            case .oneTimePassword, .received: continue
            }
        }
        return parts
    }

    private static func field(
        _ name: String, _ credential: Credential, _ challenge: String
    ) throws(LoginFailure) -> Part {
        if let value = SignedValue(rawValue: name) { return .value(value) }
        return .constant(try credential.required(name, for: challenge))
    }
}
