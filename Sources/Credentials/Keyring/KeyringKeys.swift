// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Crypto
internal import CryptoExtras
internal import FoundationEssentials
internal import Secrets
internal import System

/// The keys of a keyring: scrypt of the passphrase (RFC 7914), then one key per purpose by HKDF (RFC 5869).
struct KeyringKeys: Sendable {
    /// The check value, which reveals only if the passphrase is right.
    let check: [UInt8]
    private let values: SymmetricKey
    private let code: SymmetricKey

    /// Derives the keys, which takes 0.1 s and 32 MiB at the standard cost.
    init(passphrase: Secret, cost: ScryptCost, salt: [UInt8]) throws(KeyringError) {
        guard !passphrase.isEmpty else { throw KeyringError(.noPassphrase, "the passphrase is empty") }
        var bytes = passphrase.revealBytes()
        defer { wipe(&bytes) }
        let master: SymmetricKey
        do {
            master = try KDF.Scrypt.deriveKey(
                from: bytes, salt: salt, outputByteCount: 32, rounds: 1 << Int(cost.log2N),
                blockSize: Int(cost.blockSize), parallelism: Int(cost.parallelism))
        } catch {
            throw KeyringError(
                .failed, "the key could not be derived; check the free memory (32 to 256 MiB are needed)")
        }
        values = Self.subkey(of: master, "countersign keyring 1 values")
        code = Self.subkey(of: master, "countersign keyring 1 code")
        check = Array(
            HMAC<SHA256>.authenticationCode(for: Array("countersign keyring 1 check".utf8), using: master).prefix(16))
    }

    /// Returns the authentication code of a file.
    func code(over bytes: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: bytes, using: code))
    }

    /// Returns true if `code` is the authentication code of `bytes`; in constant time.
    func isValidCode(_ code: [UInt8], over bytes: [UInt8]) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: self.code)
    }

    /// Seals a value under its name and field.
    func seal(_ value: Secret, name: String, field: String) throws(KeyringError) -> KeyringFormat.Entry {
        guard
            let box = Sealing.seal(
                value, key: values, associated: KeyringFormat.associatedData(name: name, field: field))
        else { throw KeyringError(.failed, "the value of \(name) \(field) could not be encrypted") }
        return KeyringFormat.Entry(
            name: name, field: field, nonce: box.nonce, ciphertext: box.ciphertext, tag: box.tag)
    }

    func open(_ entry: KeyringFormat.Entry) throws(KeyringError) -> Secret {
        let box = Sealing.Box(nonce: entry.nonce, ciphertext: entry.ciphertext, tag: entry.tag)
        let associated = KeyringFormat.associatedData(name: entry.name, field: entry.field)
        guard let value = Sealing.open(box, key: values, associated: associated) else {
            throw KeyringFormat.corrupt("the value of \(entry.name) \(entry.field) cannot be opened")
        }
        return value
    }

    /// Returns the SHA-256 checksum for a header.
    static func digest(_ bytes: [UInt8]) -> [UInt8] {
        Array(SHA256.hash(data: bytes))
    }

    private static func subkey(of master: SymmetricKey, _ purpose: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: master, info: Array(purpose.utf8), outputByteCount: 32)
    }
}

/// The cost of deriving keys from a passphrase (RFC 7914 §2).
///
/// Limited, because a foreign file must not exhaust the memory.
package struct ScryptCost: Sendable, Equatable {
    /// The binary logarithm of N; N = 2^15 takes 32 MiB.
    let log2N: UInt8
    /// The block size r.
    let blockSize: UInt8 = 8
    /// The parallelism p.
    let parallelism: UInt8 = 1

    /// The cost of new keyrings.
    package static let standard = ScryptCost(known: 15)
    /// The minimum accepted cost, for tests: a derivation takes one or two milliseconds.
    package static let minimum = ScryptCost(known: 10)
    /// The maximum accepted cost: 256 MiB, about a second.
    static let maximum = ScryptCost(known: 18)

    private init(known log2N: UInt8) {
        self.log2N = log2N
    }

    /// Creates a cost from the three bytes of a header.
    init(parameters: [UInt8]) throws(KeyringError) {
        guard parameters.count == 3, parameters[1] == 8, parameters[2] == 1,
            (Self.minimum.log2N...Self.maximum.log2N).contains(parameters[0])
        else {
            throw KeyringError(
                .unsupported,
                "its scrypt parameters are outside the accepted range (N = 2^10 to 2^18, r = 8, p = 1)")
        }
        log2N = parameters[0]
    }

    /// The three bytes of a header.
    var parameters: [UInt8] { [log2N, blockSize, parallelism] }
}
