// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Where credentials come from.
package enum CredentialSource: Sendable, Equatable {
    /// Variables of the environment: `COUNTERSIGN_` NAME `__` FIELD.
    case environment
    /// A helper, by its absolute path, and its arguments; JSON in, JSON out.
    case exec([String])
    /// An encrypted file, and the file that holds its passphrase, where there is one.
    case keyring(path: String, keyFile: String?)
    /// The directory of systemd's credentials.
    case systemd
}
