// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Secrets
internal import Settings
internal import SettingsReading
internal import System

/// Options that choose the keyring and its passphrase.
struct KeyringOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .long,
        help: ArgumentHelp("The keyring. Default: the first one in the configuration.", valueName: "path"),
        completion: .file())
    var keyring: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "A file of mode 0600 with the passphrase. Default: the one in the configuration.",
            valueName: "path"),
        completion: .file())
    var keyFile: String?

    /// Returns the keyring and its key file. Reads the configuration only if `--keyring` is not given.
    func location() throws -> KeyringLocation {
        if let keyring { return KeyringLocation(path: keyring, keyFile: keyFile) }
        let (settings, problems) = ConfigurationFile(path: configuration.config).read()
        guard let settings else {
            // Warnings are not useful here.
            for problem in problems where problem.severity == .error { Process.printError(problem.description) }
            throw ExitCode(EX_CONFIG)
        }
        for case .keyring(let path, let configured, _) in settings.credentials.sources {
            return KeyringLocation(path: path, keyFile: keyFile ?? configured)
        }
        throw Failure(
            "\(configuration.config): credentials.sources has no keyring; add one there, or give --keyring",
            code: EX_CONFIG)
    }
}

/// Path of a keyring, and the sources of its passphrase.
struct KeyringLocation {
    let path: String
    let keyFile: String?
    /// Standard input or a prompt.
    let input = SecretInput()

    /// The keyring file. An administrator may change the file of a service that runs as another user.
    var file: KeyringFile { KeyringFile(administered: path) }

    /// Returns the passphrase of the existing keyring.
    func passphrase() -> KeyringPassphrase {
        KeyringPassphrase(environment: Process.environment, keyFile: keyFile) {
            [input, path] () throws(KeyringError) in try input.ask("Passphrase of \(path): ")
        }
    }

    /// Makes the key file with a random passphrase if it does not exist, and reports this.
    func makeMissingKeyFile() throws(Failure) {
        guard let keyFile, !FileSystem.allows(keyFile, F_OK) else { return }
        try makeMissingKeyFile(of: Self.randomPassphrase())
        Process.print("made the key file \(keyFile); keep a copy: without it the keyring cannot be opened")
    }

    /// Makes the key file with that passphrase.
    func makeMissingKeyFile(of passphrase: Secret) throws(Failure) {
        guard let keyFile else { return }
        var text = passphrase.revealBytes() + [UInt8(ascii: "\n")]
        defer { _ = Secret(taking: &text) }
        do throws(SystemError) {
            let directory = try JudgedDirectory(of: keyFile, followingLast: false)
            try directory.create(directory.name).writeAll(text)
        } catch {
            throw Failure("cannot make the key file \(keyFile): \(error)", code: EX_UNAVAILABLE)
        }
    }

    /// Returns a passphrase of 256 random bits.
    static func randomPassphrase() -> Secret {
        var bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        defer { _ = Secret(taking: &bytes) }
        return Secret(Base64.encode(bytes))
    }

    /// Returns the passphrase for a new keyring. A prompt asks twice.
    func newPassphrase() -> KeyringPassphrase {
        KeyringPassphrase(environment: Process.environment, keyFile: keyFile) {
            [input, path] () throws(KeyringError) in try input.askTwice("New passphrase of \(path): ")
        }
    }
}

/// Runs `work`. Turns a keyring error into a failure with an exit code of sysexits.h.
func reportingKeyringErrors<Value>(_ work: () throws(KeyringError) -> Value) throws(Failure) -> Value {
    do {
        return try work()
    } catch {
        let code =
            switch error.kind {
            case .denied, .exposed, .wrongPassphrase: EX_NOPERM
            case .invalid: EX_USAGE
            case .failed: EX_UNAVAILABLE
            case .corrupt, .exists, .missing, .noPassphrase, .notAKeyring, .truncated, .unsupported: EX_CONFIG
            }
        throw Failure(error.reason, code: code)
    }
}
