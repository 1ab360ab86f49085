// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// A hash function that a challenge or a one-time password names.
public enum DigestAlgorithm: Sendable, CaseIterable {
    /// MD5 (RFC 1321), 16 bytes. Only because servers still ask for it.
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

/// Computes digests; the cryptography itself lives elsewhere. Called from any thread.
public protocol MessageDigests: Sendable {
    /// The digest of `bytes`.
    func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> [UInt8]
    /// The digest of bytes that are lent out, of which no copy stays behind.
    func digest(_ algorithm: DigestAlgorithm, of bytes: Span<UInt8>) -> [UInt8]
    /// A digest of what is not there as a whole.
    func running(_ algorithm: DigestAlgorithm) -> any RunningDigest
    /// The authentication code of `bytes` under `key` (HMAC, RFC 2104).
    func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: [UInt8]) -> [UInt8]
}

extension MessageDigests {
    /// By a copy, which is overwritten.
    public func digest(_ algorithm: DigestAlgorithm, of bytes: Span<UInt8>) -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(bytes.count)
        for index in bytes.indices { copy.append(bytes[index]) }
        defer { _ = Secret(taking: &copy) }
        return digest(algorithm, of: copy)
    }
}

/// The digest of bytes that come piece by piece. Used by one thread at a time.
public protocol RunningDigest: AnyObject {
    /// By which function.
    var algorithm: DigestAlgorithm { get }
    /// The next bytes.
    func update(_ bytes: ArraySlice<UInt8>)
    /// The digest of all of them. Nothing may follow.
    func finish() -> [UInt8]
}
