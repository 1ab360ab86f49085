// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import Crypto
internal import FoundationEssentials
public import Secrets

/// Digests by swift-crypto, and SHA-512/256, which it lacks, by `SHA512t256`.
public struct CryptoDigests: MessageDigests {
    /// Digests; holds nothing.
    public init() {}

    /// The digest of `bytes`.
    public func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> [UInt8] {
        switch algorithm {
        case .md5: Array(Insecure.MD5.hash(data: bytes))
        case .sha1: Array(Insecure.SHA1.hash(data: bytes))
        case .sha256: Array(SHA256.hash(data: bytes))
        case .sha512: Array(SHA512.hash(data: bytes))
        case .sha512t256: SHA512t256.hash(bytes)
        }
    }

    /// The digest of bytes that are lent out.
    public func digest(_ algorithm: DigestAlgorithm, of bytes: Span<UInt8>) -> [UInt8] {
        switch algorithm {
        case .md5: return hash(Insecure.MD5.self, bytes)
        case .sha1: return hash(Insecure.SHA1.self, bytes)
        case .sha256: return hash(SHA256.self, bytes)
        case .sha512: return hash(SHA512.self, bytes)
        case .sha512t256:
            var copy = bytes.indices.map { bytes[$0] }
            defer { _ = Secret(taking: &copy) }
            return SHA512t256.hash(copy)
        }
    }

    private func hash<Hash: HashFunction>(_: Hash.Type, _ bytes: Span<UInt8>) -> [UInt8] {
        var hash = Hash()
        unsafe bytes.withUnsafeBytes { unsafe hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }

    /// A digest of what comes piece by piece.
    public func running(_ algorithm: DigestAlgorithm) -> any RunningDigest {
        switch algorithm {
        case .md5: Running(algorithm, Insecure.MD5())
        case .sha1: Running(algorithm, Insecure.SHA1())
        case .sha256: Running(algorithm, SHA256())
        case .sha512: Running(algorithm, SHA512())
        case .sha512t256: RunningSHA512t256()
        }
    }

    /// The authentication code of `bytes` (RFC 2104).
    public func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: [UInt8]) -> [UInt8] {
        switch algorithm {
        case .md5: code(Insecure.MD5.self, key, bytes)
        case .sha1: code(Insecure.SHA1.self, key, bytes)
        case .sha256: code(SHA256.self, key, bytes)
        case .sha512: code(SHA512.self, key, bytes)
        case .sha512t256: SHA512t256.authenticationCode(key: key, of: bytes)
        }
    }

    private func code<Hash: HashFunction>(_: Hash.Type, _ key: Secret, _ bytes: [UInt8]) -> [UInt8] {
        key.withBytes { key in
            unsafe key.withUnsafeBytes { key in
                Array(HMAC<Hash>.authenticationCode(for: bytes, using: unsafe SymmetricKey(data: key)))
            }
        }
    }
}

/// One of swift-crypto's hash functions, under way.
private final class Running<Hash: HashFunction>: RunningDigest {
    let algorithm: DigestAlgorithm
    private var hash: Hash

    init(_ algorithm: DigestAlgorithm, _ hash: Hash) {
        self.algorithm = algorithm
        self.hash = hash
    }

    func update(_ bytes: ArraySlice<UInt8>) { hash.update(data: bytes) }

    func finish() -> [UInt8] { Array(hash.finalize()) }
}

/// Ours, under way.
private final class RunningSHA512t256: RunningDigest {
    let algorithm = DigestAlgorithm.sha512t256
    private var hash = SHA512t256()

    func update(_ bytes: ArraySlice<UInt8>) { hash.update(bytes) }

    func finish() -> [UInt8] { hash.finish() }
}
