// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// Credentials from a keyring file.
///
/// The file is read again after each change. The keys are derived once per passphrase.
package final class KeyringSource: CredentialLookup {
    private let file: KeyringFile
    private let passphrase: KeyringPassphrase
    private let opened = Mutex<(keyring: Keyring, identity: PrivateFile.Identity)?>(nil)

    /// Creates a source that opens the keyring at `path` on first use; `trust` names further trusted owners.
    package init(path: String, passphrase: KeyringPassphrase, trust: FileTrust = .none) {
        file = KeyringFile(path: path, trust: trust)
        self.passphrase = passphrase
    }

    /// The state of the keyring file.
    package var files: FileStates { FileStates(of: [file.path]) }

    /// Opens the keyring to check access to it.
    package func open() throws(KeyringError) { _ = try current() }

    /// Returns an instruction with the commands that set the fields.
    package func way(toAdd fields: [String], of name: String) -> String? {
        "run " + Self.commands(fields, of: name)
    }

    private static func commands(_ fields: [String], of name: String) -> String {
        fields.map { "`countersign keyring set \(name) \($0)`" }.joined(separator: " and ")
    }

    /// Returns a description with the commands that change the fields, and the path of the file.
    package func source(of fields: [String], of name: String) -> AnsweringSource? {
        AnsweringSource(
            kind: "the keyring", name: "the keyring \(file.path)",
            change: "Change it there by \(Self.commands(fields, of: name)); the daemon notices that.")
    }

    /// Returns the entry of the keyring, reading the file again after a change.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        do {
            return try current().credential(named: name)
        } catch {
            throw error.credentialError
        }
    }

    /// Returns the keyring in its current state on disk.
    private func current() throws(KeyringError) -> Keyring {
        // Locked during the derivation, so that concurrent lookups derive the keys once.
        try opened.withLock { opened throws(KeyringError) in
            let identity = try file.identity()
            if let opened, opened.identity == identity { return opened.keyring }
            do throws(KeyringError) {
                let state = try file.read(passphrase: passphrase.read(), previous: opened?.keyring)
                opened = state
                return state.keyring
            } catch {
                if error.kind == .wrongPassphrase { passphrase.reportWrong() }
                throw error
            }
        }
    }
}
