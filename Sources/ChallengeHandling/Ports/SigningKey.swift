// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// RSA key pair that signs as RS256 (RFC 7518 §3.3: RSASSA-PKCS1-v1_5 with SHA-256).
public protocol SigningKey: Sendable {
    /// Public modulus, big-endian, without leading zero bytes.
    var modulus: [UInt8] { get }
    /// Public exponent, big-endian, without leading zero bytes.
    var exponent: [UInt8] { get }
    /// Private key in a form that `SigningKeys` can load.
    var serialized: Secret { get }
    /// Returns the signature of `message`.
    func signature(for message: [UInt8]) throws(StateError) -> [UInt8]
}

/// Private key that signs the parts of a JWS (RFC 7515).
public protocol AssertionKey: Sendable {
    /// Name of the algorithm for `alg`: `RS256`, `ES256`.
    var algorithm: String { get }
    /// Returns the signature of `message` in the format of a JWS (RFC 7518 §3.3, §3.4).
    func signature(for message: [UInt8]) throws(StateError) -> [UInt8]
}

/// Port that generates and loads signing keys; the cryptography is in another module.
public protocol SigningKeys: Sendable {
    /// Generates a key of 2048 bits.
    ///
    /// This takes up to a second of processor time, and does not run on the caller's executor.
    func generate() async throws(StateError) -> any SigningKey
    /// Loads a serialized key.
    func load(_ serialized: Secret) throws(StateError) -> any SigningKey
    /// Loads a private key of another program from PEM (RFC 7468).
    ///
    /// RSA of 2048 bits or more signs as RS256, and an elliptic key over P-256 as ES256. PKCS #8 and the older formats of both are
    /// accepted; an encrypted key is refused.
    func load(pem: Secret) throws(StateError) -> any AssertionKey
}

/// Algorithm of a key pair for HTTP message signatures, by its registered name (RFC 9421 §6.2.2).
public enum MessageKeyAlgorithm: String, Sendable, CaseIterable {
    /// ECDSA over P-256 with SHA-256 (§3.3.4).
    case ecdsaP256 = "ecdsa-p256-sha256"
    /// EdDSA over Curve25519 (§3.3.6).
    case ed25519
    /// RSASSA-PSS with SHA-512 and a salt of 64 bytes (§3.3.1).
    case rsaPSS = "rsa-pss-sha512"

    /// Name of the same algorithm in JOSE, for the member `alg` of a public key (RFC 7518 §3.1, RFC 8037 §3.1).
    public var joseName: String {
        switch self {
        case .ecdsaP256: "ES256"
        case .ed25519: "EdDSA"
        case .rsaPSS: "PS512"
        }
    }
}

/// Private key that signs HTTP messages.
public protocol MessageKey: Sendable {
    /// Members of the public key that its thumbprint covers: `kty` and the numbers (RFC 7638 §3.2).
    var publicMembers: [String: String] { get }
    /// Returns the signature of `message` as bytes (RFC 9421 §3.3).
    func signature(for message: [UInt8]) throws(StateError) -> [UInt8]
}

/// Port that loads keys for HTTP message signatures; the cryptography is in another module.
public protocol MessageKeys: Sendable {
    /// Loads a private key from PEM (RFC 7468). Throws if it is not a key for `algorithm`.
    func load(pem: Secret, for algorithm: MessageKeyAlgorithm) throws(StateError) -> any MessageKey
}
