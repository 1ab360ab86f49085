// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// An RSA key pair that signs as RS256 (RFC 7518 §3.3: RSASSA-PKCS1-v1_5 with SHA-256).
public protocol SigningKey: Sendable {
    /// The public modulus, big-endian, without leading zero bytes.
    var modulus: [UInt8] { get }
    /// The public exponent, big-endian, without leading zero bytes.
    var exponent: [UInt8] { get }
    /// The private key in a form that the same `SigningKeys` can load again.
    var serialized: Secret { get }
    /// The signature over `message`.
    func signature(for message: [UInt8]) throws(StateError) -> [UInt8]
}

/// A private key that signs the parts of a JWS (RFC 7515).
public protocol AssertionKey: Sendable {
    /// The name of how it signs, as `alg` has it: `RS256`, `ES256`.
    var algorithm: String { get }
    /// The signature over `message`, in the form that a JWS carries (RFC 7518 §3.3, §3.4).
    func signature(for message: [UInt8]) throws(StateError) -> [UInt8]
}

/// Makes and loads signing keys; the cryptography itself lives elsewhere.
public protocol SigningKeys: Sendable {
    /// A fresh key of 2048 bits. That takes a processor up to a second, so it does not run on the caller's executor.
    func generate() async throws(StateError) -> any SigningKey
    /// The key that `serialized` was taken from.
    func load(_ serialized: Secret) throws(StateError) -> any SigningKey
    /// The private key of somebody else's making in `pem` (RFC 7468): RSA of 2048 bits or more (signs as RS256) or an
    /// elliptic one over P-256 (ES256), in PKCS #8 or in its own older form. A key that is itself encrypted is refused.
    func load(pem: Secret) throws(StateError) -> any AssertionKey
}
