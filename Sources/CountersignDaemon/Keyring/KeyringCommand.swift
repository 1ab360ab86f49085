// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser

/// Everything about the encrypted keyring.
struct KeyringCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keyring", abstract: "Keep credentials in an encrypted file.",
        discussion: """
            The keyring's passphrase is the systemd credential keyring-passphrase, COUNTERSIGN_KEYRING_PASSPHRASE, what a \
            key file holds, or what you type; the first of these that is there. Values are read from standard input, or typed.

            The daemon notices a change by itself.
            """,
        subcommands: [
            KeyringInit.self, KeyringSet.self, KeyringGet.self, KeyringList.self, KeyringRemove.self, KeyringRekey.self,
        ])
}
