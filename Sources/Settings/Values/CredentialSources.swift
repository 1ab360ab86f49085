// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Where credentials come from.
package enum CredentialSource: Sendable, Equatable {
    /// Variables of the environment: `COUNTERSIGN_` NAME `__` FIELD.
    case environment
    /// A file of such variables, by its absolute path.
    case environmentFile(String)
    /// A helper, by its absolute path, and its arguments; JSON in, JSON out.
    case exec([String])
    /// An encrypted file, the file that holds its passphrase, where there is one, and whether a person is asked for the
    /// passphrase where nothing else gives it.
    case keyring(path: String, keyFile: String?, asks: Bool = false)
    /// The directory of systemd's credentials.
    case systemd
}

/// The section `credentials`.
package struct CredentialSettings: Sendable, Equatable {
    /// The sources in order: the first that knows a name wins.
    package var sources: [CredentialSource] = CredentialSource.standard
    /// By the name of a credential, the fields that a person is asked for where no source has them.
    package var asked: [String: [String]] = [:]
}
