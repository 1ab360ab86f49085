// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// Why a keyring could not be read or changed.
package struct KeyringError: Error, Sendable, Equatable {
    /// The kinds that are told apart.
    package enum Kind: Sendable, Equatable {
        /// The bytes are not those that were written: damaged, or changed on purpose.
        case corrupt
        /// The system refused access.
        case denied
        /// There is a keyring already.
        case exists
        /// Others could read or change the file, or its owner is not trusted.
        case exposed
        /// Something of the system failed.
        case failed
        /// A name, a field or a value that cannot be kept.
        case invalid
        /// There is no such file.
        case missing
        /// Nothing gave a passphrase, or an empty one.
        case noPassphrase
        /// The file does not begin as a keyring does.
        case notAKeyring
        /// The file ends too early.
        case truncated
        /// Written by a later version, or with parameters that this one refuses.
        case unsupported
        /// The passphrase is not the keyring's.
        case wrongPassphrase
    }

    /// The kind.
    package var kind: Kind
    /// What happened and what to do; where it concerns a file, with its path. Without secrets.
    package var reason: String

    /// An error.
    package init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// The same as a provider of credentials tells it.
    package var credentialError: CredentialError {
        CredentialError(reason: reason, told: "\(told) The daemon's log names the file.")
    }

    /// What a caller may know, who is not told where the keyring is.
    package var told: String {
        switch kind {
        case .denied: "The daemon may not read the keyring. Make the file its user's own, with mode 600."
        case .exposed:
            "The keyring is not used, as others could read or change it. Make it the daemon's own, with mode 600."
        case .missing: "There is no keyring where the configuration says. Make it by `countersign keyring init`."
        case .noPassphrase, .wrongPassphrase:
            "The keyring stays closed: its passphrase is \(kind == .noPassphrase ? "missing" : "wrong"). Correct it where it "
                + "comes from: the systemd credential keyring-passphrase, COUNTERSIGN_KEYRING_PASSPHRASE or the `key-file`."
        case .corrupt, .notAKeyring, .truncated, .unsupported:
            "The keyring cannot be read: it is damaged, no keyring, or of a later version. Restore it from a backup."
        case .exists, .failed, .invalid: "The keyring cannot be read."
        }
    }

    /// An error of the file system.
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

    /// The same error, with the path ahead.
    func at(_ path: String) -> KeyringError {
        KeyringError(kind, "\(path): \(reason)")
    }
}
