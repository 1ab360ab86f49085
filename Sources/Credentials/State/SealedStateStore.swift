// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Crypto
internal import FoundationEssentials
internal import Glibc
package import Secrets

/// State in a directory of mode 0700, one file of mode 0600 for each name, sealed with AES-256-GCM under its name. Root
/// also works on the state of a service with a user of its own (`countersign login` beside the daemon); what it writes
/// there stays that user's.
///
/// A file `NAME.sealed` is `CSIGNST1`, a nonce (12 bytes), the ciphertext, and a tag (16). The associated data are
/// `countersign state 1`, a zero byte and the name, so a value cannot be moved under another name. The key is derived by
/// HKDF-SHA256 from what the caller gives, or else from 32 random bytes in the file `key` of the same directory; that
/// one guards against copies of single files, not against somebody who can read the whole directory. Putting an older
/// copy of a file in its place is not noticed.
package struct SealedStateStore: StateStore {
    static let magic = Array("CSIGNST1".utf8)
    private static let limit = 16 << 20

    private let directory: String
    let key: SymmetricKey

    /// Opens the directory, and creates it where it is missing. `key`: 16 bytes or more, the systemd credential
    /// `state-key`; without it the directory's own key is used or created.
    package init(directory: String, key: Secret? = nil) throws(StateError) {
        self.directory = directory
        do throws(FileFault) {
            try PrivateDirectory(path: directory).ensure()
            let material: Secret
            if let key { material = key } else { material = try Self.keyInDirectory(directory) }
            guard material.count >= 16 else {
                throw FileFault(
                    .failed, "the key of the state directory has \(material.count) bytes; it needs at least 16")
            }
            var bytes = material.revealBytes()
            defer { wipe(&bytes) }
            self.key = HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: bytes), info: Array("countersign state 1".utf8),
                outputByteCount: 32)
        } catch {
            throw StateError(reason: error.reason)
        }
    }

    /// Opens the file of that name; `nil` where there is none.
    package func load(_ name: String) throws(StateError) -> Secret? {
        let path = try path(of: name)
        let content: Secret
        do {
            content = try PrivateFile(path: path, trust: .ownerOnlyOrDirectory, limit: Self.limit).read()
        } catch {
            if error.kind == .missing { return nil }
            throw StateError(reason: error.reason)
        }
        var reader = ByteReader(content.revealBytes())
        guard reader.take(8) == Self.magic else {
            throw StateError(reason: "\(path) is not a sealed state of this version; move it away")
        }
        guard let nonce = reader.take(12), let ciphertext = reader.take(content.count - 36), let tag = reader.take(16)
        else { throw StateError(reason: "\(path) was cut off; restore a copy of it, or remove it to start anew") }
        let box = Sealing.Box(nonce: nonce, ciphertext: ciphertext, tag: tag)
        guard let value = Sealing.open(box, key: key, associated: Self.associatedData(name)) else {
            throw StateError(
                reason: "\(path) was sealed with another key, or is damaged; restore the key (the systemd credential "
                    + "state-key, or \(directory)/key) or the file, or remove the file to start anew")
        }
        return value
    }

    /// Seals `value` and replaces the file of that name, durably before it returns.
    package func save(_ value: Secret, as name: String) throws(StateError) {
        let path = try path(of: name)
        guard value.count <= Self.limit - 36 else { throw StateError(reason: "\(path) would have more than 16 MiB") }
        guard let box = Sealing.seal(value, key: key, associated: Self.associatedData(name)) else {
            throw StateError(reason: "\(path) could not be encrypted")
        }
        do {
            let replacement = FileReplacement(path: path)
            replacement.removeLeftovers()
            try replacement.write(Self.magic + box.nonce + box.ciphertext + box.tag)
        } catch {
            throw StateError(reason: error.reason)
        }
    }

    /// Removes the file of that name, if there is one.
    package func remove(_ name: String) throws(StateError) {
        do {
            try FileReplacement(path: path(of: name)).remove()
        } catch let error as StateError {
            throw error
        } catch let fault as FileFault {
            throw StateError(reason: fault.reason)
        } catch {
            throw StateError(reason: "\(name) could not be removed")
        }
    }

    private func path(of name: String) throws(StateError) -> String {
        let isUsable =
            (1...200).contains(name.utf8.count) && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
        guard isUsable else {
            throw StateError(reason: "\"\(name)\" is no name for a state: letters, digits, - _ . only")
        }
        return "\(directory)/\(name).sealed"
    }

    static func associatedData(_ name: String) -> [UInt8] {
        Array("countersign state 1".utf8) + [0] + name.utf8
    }

    /// The directory's own key. Of two processes that find none at once, one creates it and both use it.
    private static func keyInDirectory(_ directory: String) throws(FileFault) -> Secret {
        let file = PrivateFile(path: directory + "/key", trust: .ownerOnlyOrDirectory, limit: 4096)
        do {
            return try file.read()
        } catch {
            guard error.kind == .missing else { throw error }
        }
        var fresh = Sealing.randomBytes(32)
        defer { wipe(&fresh) }
        _ = try FileReplacement(path: file.path).create(fresh)
        return try file.read()
    }
}
