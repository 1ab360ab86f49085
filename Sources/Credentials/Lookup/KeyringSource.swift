// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// Credentials in a keyring file. Read again whenever the file has changed; the keys are derived once, as long as the
/// passphrase stays.
package final class KeyringSource: CredentialLookup {
    private let file: KeyringFile
    private let passphrase: KeyringPassphrase
    private let opened = Mutex<(keyring: Keyring, identity: PrivateFile.Identity)?>(nil)

    /// The keyring at `path`, opened when it is first asked.
    /// `trust` says whose it may be.
    package init(path: String, passphrase: KeyringPassphrase, trust: FileTrust = .none) {
        file = KeyringFile(path: path, trust: trust)
        self.passphrase = passphrase
    }

    /// The keyring.
    package var files: FileStates { FileStates(of: [file.path]) }

    /// Opens it, for who wants to know only whether that can be done.
    package func open() throws(KeyringError) { _ = try current() }

    /// The commands that set the fields.
    package func way(toAdd fields: [String], of name: String) -> String? {
        "run " + fields.map { "`countersign keyring set \(name) \($0)`" }.joined(separator: " and ")
    }

    /// The keyring's entry; the file is read again once it has changed.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        do {
            return try current().credential(named: name)
        } catch {
            throw error.credentialError
        }
    }

    /// The keyring as it is on disk now.
    private func current() throws(KeyringError) -> Keyring {
        // Held while the keys are derived: two look-ups at once derive them once.
        try opened.withLock { opened throws(KeyringError) in
            let identity = try file.identity()
            if let opened, opened.identity == identity { return opened.keyring }
            do throws(KeyringError) {
                let state = try file.read(passphrase: passphrase.read(), previous: opened?.keyring)
                opened = state
                return state.keyring
            } catch {
                if error.kind == .wrongPassphrase { passphrase.doesNotFit() }
                throw error
            }
        }
    }
}
