// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Secrets

/// Where a keyring's passphrase comes from: the systemd credential `keyring-passphrase`, the variable
/// `COUNTERSIGN_KEYRING_PASSPHRASE`, a key file, a prompt. The first that is there is used.
package struct KeyringPassphrase: Sendable {
    /// Asks a person; throws where nobody can be asked.
    package typealias Prompt = @Sendable () throws(KeyringError) -> Secret

    private let environment: [String: String]
    private let keyFile: String?
    private let trust: FileTrust
    private let prompt: Prompt?
    private let asked: AskedPassphrase?

    /// From `environment`, else the whole of `keyFile` (mode 0600; one newline at its end is removed), else `prompt`.
    /// `state`: root also uses a key file of this directory's owner.
    package init(
        environment: [String: String], keyFile: String? = nil, state: String? = nil, prompt: Prompt? = nil
    ) {
        trust = FileTrust(environment: environment, state: state)
        self.environment = environment
        self.keyFile = keyFile
        self.prompt = prompt
        asked = nil
    }

    /// The same with `asked` in place of the prompt.
    package init(
        environment: [String: String], keyFile: String?, state: String? = nil, asked: AskedPassphrase?
    ) {
        trust = FileTrust(environment: environment, state: state)
        self.environment = environment
        self.keyFile = keyFile
        self.asked = asked
        if let asked {
            prompt = { () throws(KeyringError) in try asked.read() }
        } else {
            prompt = nil
        }
    }

    /// It did not open the keyring: if it was asked for, it is asked for again.
    func doesNotFit() {
        asked?.forget()
    }

    /// The passphrase. Read anew each time: it may be changed while the daemon runs.
    package func read() throws(KeyringError) -> Secret {
        guard let passphrase = try find() else {
            throw KeyringError(
                .noPassphrase,
                "no passphrase for the keyring: give it as the systemd credential keyring-passphrase, in "
                    + "COUNTERSIGN_KEYRING_PASSPHRASE, or in a key file")
        }
        guard !passphrase.isEmpty else { throw KeyringError(.noPassphrase, "the passphrase of the keyring is empty") }
        return passphrase
    }

    private func find() throws(KeyringError) -> Secret? {
        do {
            let credentials = SystemdCredentialsSource(environment: environment)
            if let given = try credentials.value(named: "keyring-passphrase") { return given }
        } catch {
            throw KeyringError(.denied, error.reason)
        }
        if let given = environment["COUNTERSIGN_KEYRING_PASSPHRASE"], !given.isEmpty { return Secret(given) }
        if let keyFile { return try Self.content(of: keyFile, trust: trust) }
        return try prompt?()
    }

    /// The passphrase in a key file.
    package static func content(of keyFile: String, trust: FileTrust = .none) throws(KeyringError) -> Secret {
        do {
            return try PrivateFile(path: keyFile, trust: trust.trust(in: keyFile), limit: 1 << 16).read()
                .withoutTrailingNewline
        } catch {
            throw KeyringError(error)
        }
    }
}
