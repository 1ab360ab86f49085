// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
public import ChallengeHandling
internal import Crypto
internal import FoundationEssentials
public import Secrets

/// Digests by swift-crypto, and by `SHA512t256` for SHA-512/256, which swift-crypto lacks.
public struct CryptoDigests: MessageDigests {
    /// Creates digests, without any state.
    public init() {}

    /// Returns the digest of `bytes`.
    public func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> [UInt8] {
        switch algorithm {
        case .md5: Array(Insecure.MD5.hash(data: bytes))
        case .sha1: Array(Insecure.SHA1.hash(data: bytes))
        case .sha256: Array(SHA256.hash(data: bytes))
        case .sha512: Array(SHA512.hash(data: bytes))
        case .sha512t256: SHA512t256.hash(bytes)
        }
    }

    /// Returns the digest of borrowed bytes.
    public func digest(_ algorithm: DigestAlgorithm, of bytes: Span<UInt8>) -> [UInt8] {
        switch algorithm {
        case .md5: return hash(Insecure.MD5.self, bytes)
        case .sha1: return hash(Insecure.SHA1.self, bytes)
        case .sha256: return hash(SHA256.self, bytes)
        case .sha512: return hash(SHA512.self, bytes)
        case .sha512t256:
            var copy = bytes.array
            defer { _ = Secret(taking: &copy) }
            return SHA512t256.hash(copy)
        }
    }

    private func hash<Hash: HashFunction>(_: Hash.Type, _ bytes: Span<UInt8>) -> [UInt8] {
        var hash = Hash()
        unsafe bytes.withUnsafeBytes { unsafe hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }

    /// Returns a digest that is computed incrementally.
    public func running(_ algorithm: DigestAlgorithm) -> any RunningDigest {
        switch algorithm {
        case .md5: IncrementalDigest(algorithm, Insecure.MD5())
        case .sha1: IncrementalDigest(algorithm, Insecure.SHA1())
        case .sha256: IncrementalDigest(algorithm, SHA256())
        case .sha512: IncrementalDigest(algorithm, SHA512())
        case .sha512t256: IncrementalSHA512t256()
        }
    }

    /// Returns the message authentication code of `bytes` (HMAC, RFC 2104).
    public func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: [UInt8]) -> [UInt8] {
        switch algorithm {
        case .md5: code(Insecure.MD5.self, key, bytes)
        case .sha1: code(Insecure.SHA1.self, key, bytes)
        case .sha256: code(SHA256.self, key, bytes)
        case .sha512: code(SHA512.self, key, bytes)
        case .sha512t256: SHA512t256.authenticationCode(key: key, of: bytes)
        }
    }

    /// Returns the message authentication code of borrowed bytes.
    public func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: Span<UInt8>) -> [UInt8] {
        switch algorithm {
        case .md5: return code(Insecure.MD5.self, key, bytes)
        case .sha1: return code(Insecure.SHA1.self, key, bytes)
        case .sha256: return code(SHA256.self, key, bytes)
        case .sha512: return code(SHA512.self, key, bytes)
        case .sha512t256:
            var copy = bytes.array
            defer { _ = Secret(taking: &copy) }
            return SHA512t256.authenticationCode(key: key, of: copy)
        }
    }

    /// Returns an authenticator that has prepared the key.
    public func authenticator(_ algorithm: DigestAlgorithm, key: Secret) -> any MessageAuthenticator {
        switch algorithm {
        case .md5: KeyedHash<Insecure.MD5>(key)
        case .sha1: KeyedHash<Insecure.SHA1>(key)
        case .sha256: KeyedHash<SHA256>(key)
        case .sha512: KeyedHash<SHA512>(key)
        case .sha512t256: PlainAuthenticator(digests: self, algorithm: algorithm, key: key)
        }
    }

    private func code<Hash: HashFunction>(_: Hash.Type, _ key: Secret, _ bytes: Span<UInt8>) -> [UInt8] {
        KeyedHash<Hash>(key).code(of: bytes)
    }

    private func code<Hash: HashFunction>(_: Hash.Type, _ key: Secret, _ bytes: [UInt8]) -> [UInt8] {
        key.withBytes { key in
            unsafe key.withUnsafeBytes { key in
                Array(HMAC<Hash>.authenticationCode(for: bytes, using: unsafe SymmetricKey(data: key)))
            }
        }
    }
}

/// Authentication codes by swift-crypto, which has hashed the key once.
private final class KeyedHash<Hash: HashFunction>: MessageAuthenticator {
    private let start: HMAC<Hash>

    init(_ key: Secret) {
        start = key.withBytes { key in
            unsafe key.withUnsafeBytes { unsafe HMAC<Hash>(key: SymmetricKey(data: $0)) }
        }
    }

    func code(of bytes: Span<UInt8>) -> [UInt8] {
        var code = start
        unsafe bytes.withUnsafeBytes { unsafe code.update(data: $0) }
        return Array(code.finalize())
    }
}

/// Incremental digest by swift-crypto.
private final class IncrementalDigest<Hash: HashFunction>: RunningDigest {
    let algorithm: DigestAlgorithm
    private var hash: Hash

    init(_ algorithm: DigestAlgorithm, _ hash: Hash) {
        self.algorithm = algorithm
        self.hash = hash
    }

    func update(_ bytes: ArraySlice<UInt8>) { hash.update(data: bytes) }

    func finish() -> [UInt8] { Array(hash.finalize()) }
}

private final class IncrementalSHA512t256: RunningDigest {
    let algorithm = DigestAlgorithm.sha512t256
    private var hash = SHA512t256()

    func update(_ bytes: ArraySlice<UInt8>) { hash.update(bytes) }

    func finish() -> [UInt8] { hash.finish() }
}
