// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Crypto
internal import CryptoExtras
internal import FoundationEssentials
internal import Secrets

/// The keys of one keyring: from the passphrase by scrypt (RFC 7914), then one per purpose by HKDF (RFC 5869).
struct KeyringKeys: Sendable {
    /// Tells whether the passphrase was right, and nothing else about it.
    let check: [UInt8]
    private let values: SymmetricKey
    private let code: SymmetricKey

    /// Derives the keys; takes a tenth of a second and 32 MiB at the standard cost.
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
            throw KeyringError(.failed, "the key could not be derived; is there memory enough (32 to 256 MiB)?")
        }
        values = Self.subkey(of: master, "countersign keyring 1 values")
        code = Self.subkey(of: master, "countersign keyring 1 code")
        check = Array(
            HMAC<SHA256>.authenticationCode(for: Array("countersign keyring 1 check".utf8), using: master).prefix(16))
    }

    /// The code over a whole file.
    func code(over bytes: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: bytes, using: code))
    }

    /// Whether `code` is that over `bytes`; in constant time.
    func isCode(_ code: [UInt8], over bytes: [UInt8]) -> Bool {
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

    /// Opens an entry.
    func open(_ entry: KeyringFormat.Entry) throws(KeyringError) -> Secret {
        let box = Sealing.Box(nonce: entry.nonce, ciphertext: entry.ciphertext, tag: entry.tag)
        let associated = KeyringFormat.associatedData(name: entry.name, field: entry.field)
        guard let value = Sealing.open(box, key: values, associated: associated) else {
            throw KeyringFormat.corrupt("the value of \(entry.name) \(entry.field) cannot be opened")
        }
        return value
    }

    /// SHA-256, the sum in a header.
    static func digest(_ bytes: [UInt8]) -> [UInt8] {
        Array(SHA256.hash(data: bytes))
    }

    private static func subkey(of master: SymmetricKey, _ purpose: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: master, info: Array(purpose.utf8), outputByteCount: 32)
    }
}
