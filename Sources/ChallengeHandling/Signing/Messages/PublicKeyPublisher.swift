// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

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
