// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import Crypto
internal import CryptoExtras
internal import FoundationEssentials
public import Secrets
internal import System

/// RSA keys of 2048 bits that sign as RS256, serialized as PKCS #8 in DER (RFC 5208).
///
/// Also loads keys of other programs from PEM.
public struct RSASigningKeys: SigningKeys {
    /// Creates keys from the system's random numbers.
    public init() {}

    /// Generates a key of 2048 bits.
    public func generate() async throws(StateError) -> any SigningKey {
        let generated: _RSA.Signing.PrivateKey?
        do throws(ThreadError) {
            generated = try await onOwnThread(startThread) { try? _RSA.Signing.PrivateKey(keySize: .bits2048) }
        } catch {
            throw StateError(reason: "no RSA key could be generated: \(error)")
        }
        guard let generated else { throw StateError(reason: "no RSA key could be generated") }
        return try RSASigningKey(generated)
    }

    /// Loads a serialized key.
    public func load(_ serialized: Secret) throws(StateError) -> any SigningKey {
        var bytes = serialized.revealBytes()
        defer { wipe(&bytes) }
        guard let key = try? _RSA.Signing.PrivateKey(derRepresentation: bytes) else {
            throw StateError(reason: "the stored key is not an RSA key of 2048 bits or more in PKCS #8")
        }
        return try RSASigningKey(key)
    }

    /// Loads an RSA or P-256 key from PEM.
    public func load(pem: Secret) throws(StateError) -> any AssertionKey {
        let text = pem.revealText()
        if let key = try? P256.Signing.PrivateKey(pemRepresentation: text) { return EllipticSigningKey(key: key) }
        guard let key = try? _RSA.Signing.PrivateKey(pemRepresentation: text) else {
            throw StateError(
                reason:
                    "it is not a usable private key in PEM (RSA of 2048 bits or more, or EC over P-256, without a "
                    + "passphrase)")
        }
        return try RSASigningKey(key)
    }
}

/// ES256 (RFC 7518 §3.4): ECDSA over P-256 with SHA-256, with the signature as two numbers.
private struct EllipticSigningKey: AssertionKey {
    let key: P256.Signing.PrivateKey
    var algorithm: String { "ES256" }

    func signature(for message: [UInt8]) throws(StateError) -> [UInt8] {
        guard let signature = try? key.signature(for: message) else {
            throw StateError(reason: "the EC key could not sign")
        }
        return Array(signature.rawRepresentation)
    }
}

private struct RSASigningKey: SigningKey, AssertionKey {
    var algorithm: String { "RS256" }
    let modulus: [UInt8]
    let exponent: [UInt8]
    private let key: _RSA.Signing.PrivateKey

    init(_ key: _RSA.Signing.PrivateKey) throws(StateError) {
        guard let numbers = try? key.publicKey.getKeyPrimitives() else {
            throw StateError(reason: "the RSA key has no public key")
        }
        self.key = key
        modulus = Array(numbers.modulus.drop { $0 == 0 })
        exponent = Array(numbers.publicExponent.drop { $0 == 0 })
    }

    var serialized: Secret {
        var der = key.pkcs8DERRepresentation
        defer { der.resetBytes(in: der.startIndex..<der.endIndex) }
        return Secret(der)
    }

    func signature(for message: [UInt8]) throws(StateError) -> [UInt8] {
        // RFC 7518 §3.3 requires PKCS #1 v1.5, which the library calls insecure because of its use in encryption.
        guard let signature = try? key.signature(for: SHA256.hash(data: message), padding: .insecurePKCS1v1_5) else {
            throw StateError(reason: "the RSA key could not sign")
        }
        return Array(signature.rawRepresentation)
    }
}
