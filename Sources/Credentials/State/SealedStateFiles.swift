// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Crypto
internal import FoundationEssentials
internal import Glibc
package import Secrets
internal import System

/// Files of stored state, used by the state thread. Each call blocks until its file is read or on disk.
package protocol StateFiles: Sendable {
    /// Returns the value stored under `name`, or `nil`.
    func load(_ name: String) throws(StateError) -> Secret?
    /// Stores `value` under `name`. The value is on disk when the call returns.
    func save(_ value: Secret, as name: String) throws(StateError)
    /// Removes the value stored under `name`, if there is one.
    func remove(_ name: String) throws(StateError)
    /// Calls `body` while no other process changes the state.
    func exclusively<Value>(_ body: () throws(StateError) -> Value) throws(StateError) -> Value
}

extension StateFiles {
    /// Calls `body`; by default no other process has the state.
    package func exclusively<Value>(_ body: () throws(StateError) -> Value) throws(StateError) -> Value { try body() }
}

/// State in a directory of mode 0700, with one sealed file of mode 0600 per name.
///
/// Root also works on the state of a service that runs as another user (`countersign login` next to the daemon). Files
/// that root writes there belong to that user.
///
/// A file `NAME.sealed` consists of `CSIGNST1`, a nonce (12 bytes), the AES-256-GCM ciphertext, and a tag (16 bytes). The
/// associated data are `countersign state 1`, a zero byte and the name, so a value cannot be moved under another name. The key is
/// derived by HKDF-SHA256 from the caller's key, or else from 32 random bytes in the file `key` of the directory. The latter
/// protects against copies of single files, not against a user who can read the whole directory. The replacement of a file by an
/// older copy is not detected.
///
/// For use on a state thread only; a debug build stops on other threads.
package struct SealedStateFiles: StateFiles {
    static let magic = Array("CSIGNST1".utf8)
    private static let limit = 16 << 20

    /// The path of the directory.
    let directory: String
    let key: SymmetricKey

    /// Opens the directory, and creates it if missing.
    ///
    /// `key` is the systemd credential `state-key` with at least 16 bytes. Without it, the key in the directory is used or created.
    init(directory: String, key: Secret?) throws(StateError) {
        assert(StateThread.isCurrent, "state is opened on another thread")
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

    /// Reads and opens the file of that name; `nil` if it does not exist.
    package func load(_ name: String) throws(StateError) -> Secret? {
        assert(StateThread.isCurrent, "state is read on another thread")
        let path = try path(of: name)
        let content: Secret
        do {
            content = try PrivateFile(path: path, trust: .ownerOnlyOrDirectory, limit: Self.limit).read()
        } catch {
            if error.kind == .missing { return nil }
            throw StateError(reason: error.reason)
        }
        var reader = ByteReader(content.revealBytes())
        guard reader.read(8) == Self.magic else {
            throw StateError(reason: "\(path) is not sealed state of this version; move the file away")
        }
        guard let nonce = reader.read(12), let ciphertext = reader.read(content.count - 36), let tag = reader.read(16)
        else {
            throw StateError(reason: "\(path) is truncated; restore a backup, or remove the file to start without it")
        }
        let box = Sealing.Box(nonce: nonce, ciphertext: ciphertext, tag: tag)
        guard let value = Sealing.open(box, key: key, associated: Self.associatedData(name)) else {
            throw StateError(
                reason: "\(path) was sealed with another key, or is damaged; restore the key (the systemd credential "
                    + "state-key, or \(directory)/key) or the file, or remove the file to start without it")
        }
        return value
    }

    /// Seals `value` and replaces the file of that name. The file is on disk when the call returns.
    package func save(_ value: Secret, as name: String) throws(StateError) {
        assert(StateThread.isCurrent, "state is written on another thread")
        let path = try path(of: name)
        guard value.count <= Self.limit - 36 else { throw StateError(reason: "\(path) would exceed 16 MiB") }
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

    /// Calls `body` while no other process changes the state: `countersign login` and `run` use that of a service.
    package func exclusively<Value>(_ body: () throws(StateError) -> Value) throws(StateError) -> Value {
        let lock = try lock()
        let value = try body()
        lock.release()
        return value
    }

    private func lock() throws(StateError) -> FileLock {
        do throws(FileFault) {
            return try FileLock("\(directory)/lock")
        } catch {
            throw StateError(reason: error.reason)
        }
    }

    /// Removes the file of that name, if there is one.
    package func remove(_ name: String) throws(StateError) {
        assert(StateThread.isCurrent, "state is removed on another thread")
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
            throw StateError(reason: "\"\(name)\" is not a valid name for state; use letters, digits, - _ . only")
        }
        return "\(directory)/\(name).sealed"
    }

    static func associatedData(_ name: String) -> [UInt8] {
        Array("countersign state 1".utf8) + [0] + name.utf8
    }

    /// Returns the key in the directory.
    ///
    /// If two processes find no key at once, one creates it and both use it.
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
