// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
package import Secrets
internal import System

/// A keyring file of mode 0600, which is only ever replaced as a whole.
///
/// A lock file next to the keyring prevents concurrent changes from losing values.
package struct KeyringFile: Sendable {
    /// The path of the file.
    package let path: String
    private let trust: PrivateFile.Trust

    /// Creates the file at `path`; `trust` names further trusted owners.
    package init(path: String, trust: FileTrust = .none) {
        self.path = path
        self.trust = trust.trust(in: path)
    }

    /// Creates the file at `path` for root as the administrator of a service.
    ///
    /// The owner of the directory is trusted as well.
    package init(administered path: String) {
        self.path = path
        trust = .ownerOnlyOrDirectory
    }

    /// Creates an empty keyring, and its directory if missing. Never replaces an existing file.
    package func create(passphrase: Secret, cost: ScryptCost = .standard) throws(KeyringError) {
        let content = try Keyring(passphrase: passphrase, cost: cost).serialized()
        try passphrase.requireOneLine("a passphrase")
        do {
            let directory = PrivateDirectory(path: FileSystem.parent(of: path))
            if !directory.exists { try directory.ensure() }
            if try FileReplacement(path: path).create(content) { return }
        } catch {
            throw KeyringError(error)
        }
        throw existsError
    }

    /// Throws `exists` if the file exists, before a person is asked for a passphrase.
    package func refuseExisting() throws(KeyringError) {
        if FileSystem.allows(path, F_OK) { throw existsError }
    }

    /// Reads and verifies the whole keyring.
    package func open(passphrase: Secret) throws(KeyringError) -> Keyring {
        try read(passphrase: passphrase, previous: nil).keyring
    }

    /// Reads, changes and replaces the keyring under the lock.
    ///
    /// If `change` throws, the file stays unchanged. The keys of `previous` are reused if they still apply.
    package func update<Result>(
        passphrase: Secret, previous: Keyring? = nil, _ change: (inout Keyring) throws(KeyringError) -> Result
    ) throws(KeyringError) -> Result {
        _ = try identity()
        let lock: FileLock
        do {
            lock = try FileLock(path + ".lock")
        } catch {
            throw KeyringError(error)
        }
        // As a `Result`, so that the lock is released on success and on failure.
        let outcome = Swift.Result { () throws(KeyringError) in
            try replace(passphrase: passphrase, previous: previous, change)
        }
        lock.release()
        return try outcome.get()
    }

    /// Changes the passphrase, with a new salt and new keys.
    package func rekey(
        from passphrase: Secret, to other: Secret, previous: Keyring? = nil, cost: ScryptCost = .standard
    ) throws(KeyringError) {
        try other.requireOneLine("a passphrase")
        try update(passphrase: passphrase, previous: previous) { (keyring) throws(KeyringError) in
            keyring = try keyring.rekeyed(passphrase: other, cost: cost)
        }
    }

    /// Returns the identity of the current file.
    func identity() throws(KeyringError) -> PrivateFile.Identity {
        do {
            return try file.identity()
        } catch {
            throw readError(error)
        }
    }

    /// Reads the keyring, reusing the keys of `previous` if they still apply. Also returns the identity of the file.
    func read(
        passphrase: Secret, previous: Keyring?
    ) throws(KeyringError) -> (keyring: Keyring, identity: PrivateFile.Identity) {
        let (content, identity): (Secret, PrivateFile.Identity)
        do {
            (content, identity) = try file.readWithIdentity()
        } catch {
            throw readError(error)
        }
        do {
            let keyring = try Keyring(reading: content.revealBytes(), passphrase: passphrase, previous: previous)
            return (keyring, identity)
        } catch {
            throw error.at(path)
        }
    }

    private func replace<Result>(
        passphrase: Secret, previous: Keyring?, _ change: (inout Keyring) throws(KeyringError) -> Result
    ) throws(KeyringError) -> Result {
        var keyring = try read(passphrase: passphrase, previous: previous).keyring
        let result = try change(&keyring)
        let replacement = FileReplacement(path: path)
        replacement.removeLeftovers()
        do {
            try replacement.write(keyring.serialized())
        } catch {
            throw KeyringError(error)
        }
        return result
    }

    private func readError(_ fault: FileFault) -> KeyringError {
        guard fault.kind == .missing else { return KeyringError(fault) }
        return KeyringError(.missing, "there is no keyring \(path); create one with: countersign keyring init")
    }

    private var existsError: KeyringError {
        KeyringError(.exists, "\(path): the file exists already; nothing was changed")
    }

    private var file: PrivateFile {
        PrivateFile(path: path, trust: trust, limit: KeyringFormat.limit)
    }
}
