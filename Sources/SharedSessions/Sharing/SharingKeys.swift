// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeHandling
internal import Credentials
internal import Crypto
internal import FoundationEssentials
package import Secrets
internal import Synchronization

/// The keys that all nodes have in common, from a credential.
///
/// The field `key` seals and opens. During a change of keys, the field `previous-key` opens what other nodes have
/// sealed.
///
/// Each key is at least 32 unguessable bytes, taken without white space at both ends; `openssl rand -base64 32` makes one. The sealed
/// form is `CSSHARE1`, the number of the key (4 bytes), a nonce (12), the ciphertext, and a tag (16), by AES-256-GCM. The
/// associated data are `countersign shared session 1`, a zero byte and the name, so that a session cannot be put under another name.
/// Everything is derived by HKDF-SHA256 (RFC 5869), with an `info` for each purpose.
///
/// To change the key: give all nodes the new one as `previous-key` first, then as `key` with the old one as
/// `previous-key`, then remove the old one. With any other order, nodes only establish separate sessions meanwhile.
package struct SharingKeys: SessionSealing {
    /// Fewest bytes of a key.
    package static let minimumLength = 32

    private static let magic = Array("CSSHARE1".utf8)
    private static let numberLength = 4

    /// The current one first.
    private let keys: [Key]

    /// The keys of `credential`. Throws, with a remedy, if it has no usable one.
    package init(_ credential: Credential) throws(CredentialError) {
        guard let current = credential["key"] else {
            throw CredentialError(
                reason:
                    "the credential \(credential.name) has no field `key`, with which sessions are sealed for all nodes: "
                    + "make one by `openssl rand -base64 32`, the same on all nodes")
        }
        var keys = [try Key(current, field: "key", of: credential.name)]
        if let previous = credential["previous-key"] {
            let key = try Key(previous, field: "previous-key", of: credential.name)
            if key.number != keys[0].number { keys.append(key) }
        }
        self.keys = keys
    }

    /// Returns `value` sealed under the current key, for `name` only; `nil` if the library refuses.
    package func sealed(_ value: Secret, as name: String) -> [UInt8]? {
        guard let key = keys.first else { return nil }
        return Sealing.seal(value, key: key.sealing, associated: Self.associatedData(name)).map { box in
            Self.magic + key.number + box.bytes
        }
    }

    /// Returns the value sealed for `name` under any known key; `nil` for anything else.
    package func opened(_ bytes: [UInt8], as name: String) -> Secret? {
        let head = Self.magic.count + Self.numberLength
        guard bytes.count > head, bytes.starts(with: Self.magic),
            let key = keys.first(where: { bytes[Self.magic.count..<head].elementsEqual($0.number) }),
            let box = Sealing.Box(bytes[head...])
        else { return nil }
        return Sealing.open(box, key: key.sealing, associated: Self.associatedData(name))
    }

    /// Returns keyed digests of `value` in hexadecimal, under the current key first.
    package func digests(of value: Secret) -> [String] {
        keys.map { key in
            value.withBytes { bytes in
                unsafe bytes.withUnsafeBytes { bytes in
                    var code = HMAC<SHA256>(key: key.digesting)
                    unsafe code.update(data: bytes)
                    return Hex.encode(code.finalize())
                }
            }
        }
    }

    private static func associatedData(_ name: String) -> [UInt8] {
        Array("countersign shared session 1".utf8) + [0] + name.utf8
    }

    /// One key, and the values derived from it.
    private struct Key: Sendable {
        /// Derived number that identifies the key and reveals nothing of it.
        let number: [UInt8]
        let sealing: SymmetricKey
        let digesting: SymmetricKey

        init(_ value: Secret, field: String, of credential: String) throws(CredentialError) {
            let (material, count) = value.withBytes { bytes in
                unsafe bytes.withUnsafeBytes { bytes in
                    let blanks: [UInt8?] = [9, 10, 13, 32]
                    // A file may end with a line end on one node only.
                    let start = unsafe bytes.firstIndex { !blanks.contains($0) } ?? bytes.endIndex
                    let end = unsafe (bytes.lastIndex { !blanks.contains($0) } ?? start - 1) + 1
                    let key = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<end])
                    return unsafe (SymmetricKey(data: key), key.count)
                }
            }
            guard count >= SharingKeys.minimumLength else {
                throw CredentialError(
                    reason:
                        "the field `\(field)` of the credential \(credential) has \(count) bytes; it needs at least "
                        + "\(SharingKeys.minimumLength): make one by `openssl rand -base64 32`")
            }
            number = unsafe Self.derive(material, "number", SharingKeys.numberLength).withUnsafeBytes {
                unsafe Array($0)
            }
            sealing = Self.derive(material, "seal", 32)
            digesting = Self.derive(material, "digest", 32)
        }

        private static func derive(_ material: SymmetricKey, _ purpose: String, _ count: Int) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: material, info: Array("countersign shared \(purpose) 1".utf8), outputByteCount: count)
        }
    }
}

/// The shared keys, looked up at start and after each change of a credential file.
package final class HeldSharingKeys: SessionSealing {
    private let name: String
    private let onUnusable: @Sendable (CredentialError) -> Void
    private let keys = Mutex<SharingKeys?>(nil)

    /// Keys of a credential, unknown until `refresh`. `onUnusable` is called after a failed look-up.
    package init(credential name: String, onUnusable: @escaping @Sendable (CredentialError) -> Void) {
        self.name = name
        self.onUnusable = onUnusable
    }

    /// True if a look-up succeeded.
    package var areKnown: Bool { keys.withLock { $0 != nil } }

    /// Looks the keys up. A failure keeps the present ones.
    package func refresh(from credentials: any CredentialProvider) async {
        do throws(CredentialError) {
            guard let credential = try await credentials.credential(named: name) else {
                throw CredentialError(
                    reason: "no source knows the credential \(name), which `sessions.key` names; make one by "
                        + "`openssl rand -base64 32`, the same on all nodes")
            }
            let found = try SharingKeys(credential)
            keys.withLock { $0 = found }
        } catch {
            onUnusable(error)
        }
    }

    /// `value` sealed under the current key; see `SessionSealing`.
    package func sealed(_ value: Secret, as name: String) -> [UInt8]? {
        keys.withLock { $0 }?.sealed(value, as: name)
    }

    /// The value that was sealed for `name`; see `SessionSealing`.
    package func opened(_ bytes: [UInt8], as name: String) -> Secret? {
        keys.withLock { $0 }?.opened(bytes, as: name)
    }

    /// Keyed digests of `value`; see `SessionSealing`.
    package func digests(of value: Secret) -> [String] { keys.withLock { $0 }?.digests(of: value) ?? [] }
}
