// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Learning
internal import Secrets
internal import System

/// Values that a person has typed for a first try, and their keyring with a key file of its own.
struct TypedValues {
    let credential: Credential
    let fields: [String]

    /// The keyring in the state directory. One whose passphrase is not in the file beside it is left alone.
    private func location() throws -> KeyringLocation {
        let directory = try StateDirectory.locate(environment: Process.environment, uid: getuid())
        let isOther = { FileSystem.allows($0, F_OK) && !FileSystem.allows($0 + ".key", F_OK) }
        let usual = "\(directory)/keyring"
        let path = isOther(usual) ? "\(directory)/keyring-\(credential.name)" : usual
        return KeyringLocation(path: path, keyFile: path + ".key")
    }

    /// Offers to store the values. Returns the lines of a configuration that finds them; none if the offer was declined.
    func offer() throws -> [String] {
        let location = try self.location()
        let names = fields.joined(separator: " and ")
        guard
            Consent(isGiven: false).allows(
                "Store \(names) of \(credential.name) in the keyring \(location.path), so that the configuration finds them?"
            )
        else { return [] }
        try store(in: location)
        return [
            "", "credentials:", "  sources:", "    - env", "    - systemd",
            "    - { keyring: \(ConfigurationLine.scalar(location.path)), key-file: "
                + "\(ConfigurationLine.scalar(location.keyFile ?? "")) }",
        ]
    }

    /// Stores the values. A keyring that does not exist is made, and then its key file.
    private func store(in location: KeyringLocation) throws {
        let file = location.file
        if !FileSystem.allows(location.path, F_OK) {
            let passphrase = KeyringLocation.randomPassphrase()
            try reportingKeyringErrors { () throws(KeyringError) in try file.create(passphrase: passphrase) }
            try location.makeMissingKeyFile(of: passphrase)
        }
        try reportingKeyringErrors { () throws(KeyringError) in
            // That of the environment belongs to another keyring.
            let passphrase = try KeyringPassphrase(environment: [:], keyFile: location.keyFile, prompt: nil).read()
            let opened = try file.open(passphrase: passphrase)
            try file.update(passphrase: passphrase, previous: opened) { (keyring) throws(KeyringError) in
                for field in fields {
                    if let value = credential[field] { try keyring.set(value, for: credential.name, field) }
                }
            }
        }
        Terminal.printError("stored in \(location.path), whose key is \(location.keyFile ?? "")")
    }
}
