// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// A failure to read or change a keyring.
package struct KeyringError: Error, Sendable, Equatable {
    /// The kinds of failures.
    package enum Kind: Sendable, Equatable {
        /// The content was damaged or modified.
        case corrupt
        /// The system denied access.
        case denied
        /// A keyring already exists.
        case exists
        /// Other users can access the file, or its owner is not trusted.
        case exposed
        /// A system call failed.
        case failed
        /// A name, field or value is not allowed.
        case invalid
        /// The file does not exist.
        case missing
        /// No passphrase, or an empty one, was provided.
        case noPassphrase
        /// The file does not begin as a keyring does.
        case notAKeyring
        /// The file is truncated.
        case truncated
        /// The file has a later version, or parameters outside the accepted range.
        case unsupported
        /// The passphrase is wrong.
        case wrongPassphrase
    }

    /// The kind of failure.
    package var kind: Kind
    /// The reason and the remedy, with the path of the file if any, without secrets.
    package var reason: String

    /// Creates an error.
    package init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// This error as an error of a credential source.
    package var credentialError: CredentialError {
        CredentialError(reason: reason, publicReason: "\(publicReason) The daemon's log names the file.")
    }

    /// The reason for callers, without the path of the keyring.
    package var publicReason: String {
        switch kind {
        case .denied: "The daemon cannot read the keyring. Give the file to the daemon's user, with mode 600."
        case .exposed:
            "The keyring is not used because others could read or change it. Give it to the daemon's user, with mode 600."
        case .missing: "The configured keyring does not exist. Create it with `countersign keyring init`."
        case .noPassphrase, .wrongPassphrase:
            "The keyring cannot be opened: its passphrase is \(kind == .noPassphrase ? "missing" : "wrong"). Correct its source: "
                + "the systemd credential keyring-passphrase, COUNTERSIGN_KEYRING_PASSPHRASE or the `key-file`."
        case .corrupt, .notAKeyring, .truncated, .unsupported:
            "The keyring cannot be read: it is damaged, not a keyring, or of a later version. Restore a backup."
        case .exists, .failed, .invalid: "The keyring cannot be read."
        }
    }

    /// Creates an error from one of the file system.
    init(_ fault: FileFault) {
        let kind: Kind =
            switch fault.kind {
            case .denied: .denied
            case .exposed: .exposed
            case .failed: .failed
            case .missing: .missing
            case .tooLarge: .corrupt
            }
        self.init(kind, fault.reason)
    }

    /// Returns the error with the path prepended.
    func at(_ path: String) -> KeyringError {
        KeyringError(kind, "\(path): \(reason)")
    }
}
