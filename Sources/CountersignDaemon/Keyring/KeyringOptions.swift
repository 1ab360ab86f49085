// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Credentials
internal import Settings
internal import SettingsReading

/// Which keyring, and how it opens.
struct KeyringOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .long,
        help: ArgumentHelp("The keyring; by default the first one that the configuration names.", valueName: "path"))
    var keyring: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "A file of mode 0600 that holds the passphrase; by default the one of the configuration.",
            valueName: "path"))
    var keyFile: String?

    /// The keyring and its passphrase; the configuration is read only where it is needed.
    func location() throws -> KeyringLocation {
        if let keyring { return KeyringLocation(path: keyring, keyFile: keyFile) }
        let (settings, problems) = Settings.load(
            path: configuration.config, environment: Process.environment, handlers: OwnHandlers.names,
            kinds: OwnHandlers.kinds)
        guard let settings else {
            // Warnings would only be in the way here.
            for problem in problems where problem.severity == .error { Process.complain(problem.description) }
            throw ExitCode(EX_CONFIG)
        }
        for case .keyring(let path, let configured, _) in settings.credentials.sources {
            return KeyringLocation(path: path, keyFile: keyFile ?? configured)
        }
        throw Failure(
            "\(configuration.config): credentials.sources names no keyring; name one there, or give --keyring",
            code: EX_CONFIG)
    }
}

/// A keyring, and how the commands get at its passphrase.
struct KeyringLocation {
    let path: String
    let keyFile: String?
    /// Where a person is asked.
    let input = SecretInput()

    /// The file. An administrator may work on the file of a service that runs as another user.
    var file: KeyringFile { KeyringFile(administered: path) }

    /// The passphrase that opens it.
    func passphrase() -> KeyringPassphrase {
        KeyringPassphrase(environment: Process.environment, keyFile: keyFile) {
            [input, path] () throws(KeyringError) in try input.ask("Passphrase of \(path): ")
        }
    }

    /// The passphrase of a keyring that is made now: typed twice, if it is typed.
    func newPassphrase() -> KeyringPassphrase {
        KeyringPassphrase(environment: Process.environment, keyFile: keyFile) {
            [input, path] () throws(KeyringError) in try input.askTwice("New passphrase of \(path): ")
        }
    }
}

/// Runs `work`; an error of the keyring becomes one line and an exit code of sysexits.
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
