// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
package import Secrets

/// A keyring on disk: a file of mode 0600 that is only ever replaced as a whole, and beside it a lock file, so that two
/// shells that set a value at once lose none.
package struct KeyringFile: Sendable {
    /// Where it is.
    package let path: String
    private let trust: PrivateFile.Trust

    /// The keyring at `path`; `trust` says whose else it may be.
    package init(path: String, trust: FileTrust = .none) {
        self.path = path
        self.trust = trust.trust(in: path)
    }

    /// The keyring at `path`, for root as the administrator of a service with a user of its own: it may be the file of the owner
    /// of its directory.
    package init(administered path: String) {
        self.path = path
        trust = .ownerOnlyOrDirectory
    }

    /// Creates an empty keyring, and its directory where that is missing; an existing file is never touched.
    package func create(passphrase: Secret, cost: ScryptCost = .standard) throws(KeyringError) {
        let content = try Keyring(passphrase: passphrase, cost: cost).serialized()
        try passphrase.requireOneLine("a passphrase")
        do {
            let directory = PrivateDirectory(path: parentDirectory(of: path))
            if !directory.exists { try directory.ensure() }
            if try FileReplacement(path: path).create(content) { return }
        } catch {
            throw KeyringError(error)
        }
        throw existing
    }

    /// Throws `exists` where there is something at the path: for before a person is asked for a passphrase.
    package func refuseExisting() throws(KeyringError) {
        if unsafe access(path, F_OK) == 0 { throw existing }
    }

    /// Reads and checks all of it.
    package func open(passphrase: Secret) throws(KeyringError) -> Keyring {
        try read(passphrase: passphrase, previous: nil).keyring
    }

    /// Changes it: locked, read, changed, replaced. Where `change` throws, the file stays as it was. The keys of `previous`
    /// are used where they still fit.
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
        // As a value, so that the lock is let go on either way.
        let outcome = Swift.Result { () throws(KeyringError) in
            try replace(passphrase: passphrase, previous: previous, change)
        }
        lock.release()
        return try outcome.get()
    }

    /// Replaces the passphrase, and with it salt and keys.
    package func rekey(
        from passphrase: Secret, to other: Secret, previous: Keyring? = nil, cost: ScryptCost = .standard
    ) throws(KeyringError) {
        try other.requireOneLine("a passphrase")
        try update(passphrase: passphrase, previous: previous) { (keyring) throws(KeyringError) in
            keyring = try keyring.rekeyed(passphrase: other, cost: cost)
        }
    }

    /// Which state of the file is there now.
    func identity() throws(KeyringError) -> PrivateFile.Identity {
        do {
            return try file.identity()
        } catch {
            throw unreadable(error)
        }
    }

    /// Reads it, with the keys of `previous` where they still fit, and tells which state it is of.
    func read(
        passphrase: Secret, previous: Keyring?
    ) throws(KeyringError) -> (keyring: Keyring, identity: PrivateFile.Identity) {
        let (content, identity): (Secret, PrivateFile.Identity)
        do {
            (content, identity) = try file.readWithIdentity()
        } catch {
            throw unreadable(error)
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

    private func unreadable(_ fault: FileFault) -> KeyringError {
        guard fault.kind == .missing else { return KeyringError(fault) }
        return KeyringError(.missing, "there is no keyring \(path); make one with: countersign keyring init")
    }

    private var existing: KeyringError {
        KeyringError(.exists, "\(path): there is a file already; nothing was changed")
    }

    private var file: PrivateFile {
        PrivateFile(path: path, trust: trust, limit: KeyringFormat.limit)
    }
}
