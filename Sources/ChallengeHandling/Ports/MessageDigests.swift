// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
public import Secrets

/// Hash function of a challenge or a one-time password.
public enum DigestAlgorithm: Sendable, CaseIterable {
    /// MD5 (RFC 1321), 16 bytes. Only because servers still require MD5.
    case md5
    /// SHA-1 (FIPS 180-4), 20 bytes. Only for one-time passwords.
    case sha1
    /// SHA-256 (FIPS 180-4), 32 bytes.
    case sha256
    /// SHA-512 (FIPS 180-4), 64 bytes.
    case sha512
    /// SHA-512/256 (FIPS 180-4 §5.3.6.2), 32 bytes; not the first half of SHA-512.
    case sha512t256
}

/// Port for message digests; the cryptography is in another module. Called on any thread.
public protocol MessageDigests: Sendable {
    /// Returns the digest of `bytes`.
    func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> [UInt8]
    /// Returns the digest of borrowed bytes, without leaving a copy in memory.
    func digest(_ algorithm: DigestAlgorithm, of bytes: Span<UInt8>) -> [UInt8]
    /// Returns a digest that is computed incrementally.
    func running(_ algorithm: DigestAlgorithm) -> any RunningDigest
    /// Returns the authentication code of `bytes` with `key` (HMAC, RFC 2104).
    func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: [UInt8]) -> [UInt8]
    /// Returns the authentication code of borrowed bytes, without leaving a copy in memory.
    func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: Span<UInt8>) -> [UInt8]
    /// Returns an authenticator that has prepared the key for many messages.
    func authenticator(_ algorithm: DigestAlgorithm, key: Secret) -> any MessageAuthenticator
}

extension MessageDigests {
    /// Returns the authentication code of a copy, which is overwritten afterwards.
    public func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: Span<UInt8>) -> [UInt8] {
        var copy = bytes.array
        defer { _ = Secret(taking: &copy) }
        return authenticationCode(algorithm, key: key, of: copy)
    }

    /// Returns the digest of a copy, which is overwritten afterwards.
    public func digest(_ algorithm: DigestAlgorithm, of bytes: Span<UInt8>) -> [UInt8] {
        var copy = bytes.array
        defer { _ = Secret(taking: &copy) }
        return digest(algorithm, of: copy)
    }

    /// Returns an authenticator that prepares the key for each message.
    public func authenticator(_ algorithm: DigestAlgorithm, key: Secret) -> any MessageAuthenticator {
        PlainAuthenticator(digests: self, algorithm: algorithm, key: key)
    }
}

/// Authentication codes with one key, for use by one thread at a time.
public protocol MessageAuthenticator: AnyObject {
    /// Returns the authentication code of borrowed bytes (HMAC, RFC 2104).
    func code(of bytes: Span<UInt8>) -> [UInt8]
}

/// Authenticator that prepares the key for each message.
package final class PlainAuthenticator: MessageAuthenticator {
    private let digests: any MessageDigests
    private let algorithm: DigestAlgorithm
    private let key: Secret

    /// Creates an authenticator by `digests`.
    package init(digests: any MessageDigests, algorithm: DigestAlgorithm, key: Secret) {
        self.digests = digests
        self.algorithm = algorithm
        self.key = key
    }

    /// Returns the authentication code of borrowed bytes.
    package func code(of bytes: Span<UInt8>) -> [UInt8] { digests.authenticationCode(algorithm, key: key, of: bytes) }
}

/// Incremental digest, for use by one thread at a time.
public protocol RunningDigest: BodyReader {
    /// Hash function.
    var algorithm: DigestAlgorithm { get }
}
