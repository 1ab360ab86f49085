// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

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
