// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Public key as a JSON Web Key (RFC 7517), for verifiers of signatures.
package struct PublicKey: Sendable {
    /// Members that describe the key itself: `kty` and the numbers.
    package let members: [String: String]
    /// Name of the algorithm in JOSE.
    package let algorithm: String
    /// Identifier that the signatures name; nil: the thumbprint.
    package let identifier: String?

    /// Creates the public key of `key`.
    package init(_ key: any MessageKey, algorithm: String, identifier: String? = nil) {
        members = key.publicMembers
        self.algorithm = algorithm
        self.identifier = identifier
    }

    /// Returns the thumbprint by SHA-256 (RFC 7638 §3).
    package func thumbprint(by digests: any MessageDigests) -> String {
        // No value has a character that JSON escapes.
        let text = members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",")
        return Base64.encode(digests.digest(.sha256, of: Array("{\(text)}".utf8)), .url)
    }

    /// Returns the key as JSON, with `kid`, `alg` and `use` (RFC 7517 §4).
    package func json(by digests: any MessageDigests) -> JSONValue {
        var object = members.mapValues { JSONValue.string($0) }
        object["alg"] = .string(algorithm)
        object["kid"] = .string(identifier ?? thumbprint(by: digests))
        object["use"] = "sig"
        return .object(object)
    }
}

/// Kind of challenge whose answers are signed by a key pair, and verified by the public key.
package protocol PublicKeyPublisher {
    /// Returns the public key of a credential; nil if the kind does not sign with a key pair. Throws `no-credential`
    /// without a usable key.
    func publicKey(of credential: Credential, challenge: String, keys: any MessageKeys) throws(LoginFailure)
        -> PublicKey?
    /// True if the kind signs with a key pair.
    var signsByKeyPair: Bool { get }
}

extension MessageSignature: PublicKeyPublisher {
    /// False with a shared secret.
    package var signsByKeyPair: Bool { algorithm.pair != nil }

    /// Returns the public key, with the identifier that the signatures name.
    package func publicKey(
        of credential: Credential, challenge: String, keys: any MessageKeys
    ) throws(LoginFailure) -> PublicKey? {
        guard let pair = algorithm.pair else { return nil }
        let key = try keys.load(of: credential, for: pair, challenge: challenge)
        return PublicKey(key, algorithm: pair.joseName, identifier: keyID)
    }
}

extension SignSettings: PublicKeyPublisher {
    private var publisher: (any PublicKeyPublisher)? { signature as? any PublicKeyPublisher }

    /// True if the signature is made with a key pair.
    package var signsByKeyPair: Bool { publisher?.signsByKeyPair == true }

    /// Returns the public key of the signature.
    package func publicKey(
        of credential: Credential, challenge: String, keys: any MessageKeys
    ) throws(LoginFailure) -> PublicKey? {
        try publisher?.publicKey(of: credential, challenge: challenge, keys: keys)
    }
}

extension SchemeSettings: PublicKeyPublisher {
    /// True if a token request proves the client by its key (`private-key-jwt`).
    package var signsByKeyPair: Bool { token?.clientAuthentication == .privateKeyJWT }

    /// Returns the public key that verifies the client's assertions.
    package func publicKey(
        of credential: Credential, challenge: String, keys: any MessageKeys
    ) throws(LoginFailure) -> PublicKey? {
        guard signsByKeyPair else { return nil }
        let pem = try credential.required("private-key", for: challenge)
        let identifier = credential["key-id"]?.revealText()
        // As `SigningKeys.load(pem:)` chooses.
        if let key = try? keys.load(pem: pem, for: .ecdsaP256) {
            return PublicKey(key, algorithm: "ES256", identifier: identifier)
        }
        let key = try keys.load(of: credential, for: .rsaPSS, challenge: challenge)
        return PublicKey(key, algorithm: "RS256", identifier: identifier)
    }
}
