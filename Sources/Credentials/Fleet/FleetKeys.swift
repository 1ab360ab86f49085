// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Crypto
internal import FoundationEssentials
package import Secrets

/// The keys that the hosts of a fleet have in common, out of a credential: its field `key`, and while keys are changed
/// `previous-key`, by which what others have sealed still opens, and nothing is sealed.
///
/// Each is 32 bytes or more that nobody can guess, taken as they stand but for white space at their ends; `openssl rand -base64 32`
/// makes one. What is sealed is `CSFLEET1`, the number of the key (4 bytes), a nonce (12), the ciphertext, and a tag (16), by
/// AES-256-GCM. The associated data are `countersign fleet session 1`, a zero byte and the name: a session cannot be put under
/// another name. Everything is derived by HKDF-SHA256 (RFC 5869), each purpose with an `info` of its own.
///
/// To change the key: give all hosts the new one as `previous-key` first, then as `key` with the old one as `previous-key`, then
/// take the old one away. In any other order hosts win a session of their own meanwhile, and nothing worse happens.
package struct FleetKeys: FleetSealing {
    /// The fewest bytes of a key.
    package static let shortest = 32

    private static let magic = Array("CSFLEET1".utf8)
    private static let numberLength = 4

    /// The current one first.
    private let keys: [Key]

    /// The keys of `credential`. Throws where it has none that can be used, with what to do.
    package init(_ credential: Credential) throws(CredentialError) {
        guard let current = credential["key"] else {
            throw CredentialError(
                reason:
                    "the credential \(credential.name) has no field `key`, with which sessions are sealed for the fleet: "
                    + "make one by `openssl rand -base64 32`, the same on all hosts")
        }
        var keys = [try Key(current, field: "key", of: credential.name)]
        if let previous = credential["previous-key"] {
            let key = try Key(previous, field: "previous-key", of: credential.name)
            if key.number != keys[0].number { keys.append(key) }
        }
        self.keys = keys
    }

    /// `value` sealed under the current key, for `name` alone; `nil` should the library refuse.
    package func sealed(_ value: Secret, as name: String) -> [UInt8]? {
        guard let key = keys.first else { return nil }
        return Sealing.seal(value, key: key.sealing, associated: Self.associatedData(name)).map { box in
            Self.magic + key.number + box.nonce + box.ciphertext + box.tag
        }
    }

    /// What was sealed for `name` under any key that is known here; `nil` for anything else.
    package func opened(_ bytes: [UInt8], as name: String) -> Secret? {
        var reader = ByteReader(bytes)
        let length = bytes.count - Self.magic.count - Self.numberLength - 28
        guard reader.take(Self.magic.count) == Self.magic, let number = reader.take(Self.numberLength),
            let key = keys.first(where: { $0.number == number }), let nonce = reader.take(12),
            let ciphertext = reader.take(length), let tag = reader.take(16)
        else { return nil }
        let box = Sealing.Box(nonce: nonce, ciphertext: ciphertext, tag: tag)
        return Sealing.open(box, key: key.sealing, associated: Self.associatedData(name))
    }

    /// Keyed digests of `value`, in hexadecimal: under the current key first, then under the previous one.
    package func digests(of value: Secret) -> [String] {
        keys.map { key in
            value.withBytes { bytes in
                unsafe bytes.withUnsafeBytes { bytes in
                    var code = HMAC<SHA256>(key: key.digesting)
                    unsafe code.update(data: bytes)
                    return hexadecimal(Array(code.finalize()))
                }
            }
        }
    }

    private static func associatedData(_ name: String) -> [UInt8] {
        Array("countersign fleet session 1".utf8) + [0] + name.utf8
    }

    /// One key, and what is derived from it.
    private struct Key: Sendable {
        /// Tells it from others, and says nothing of it.
        let number: [UInt8]
        let sealing: SymmetricKey
        let digesting: SymmetricKey

        init(_ value: Secret, field: String, of credential: String) throws(CredentialError) {
            var bytes = value.revealBytes()
            defer { wipe(&bytes) }
            let blanks: [UInt8?] = [9, 10, 13, 32]
            // A file ends with a line end on one host, and not on another.
            let start = bytes.firstIndex { !blanks.contains($0) } ?? bytes.endIndex
            let end = (bytes.lastIndex { !blanks.contains($0) } ?? start - 1) + 1
            guard end - start >= FleetKeys.shortest else {
                throw CredentialError(
                    reason:
                        "the field `\(field)` of the credential \(credential) has \(end - start) bytes; it needs at least "
                        + "\(FleetKeys.shortest): make one by `openssl rand -base64 32`")
            }
            let material = SymmetricKey(data: bytes[start..<end])
            number = unsafe Self.derive(material, "number", FleetKeys.numberLength).withUnsafeBytes { unsafe Array($0) }
            sealing = Self.derive(material, "seal", 32)
            digesting = Self.derive(material, "digest", 32)
        }

        private static func derive(_ material: SymmetricKey, _ purpose: String, _ count: Int) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: material, info: Array("countersign fleet \(purpose) 1".utf8), outputByteCount: count)
        }
    }
}

private func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
