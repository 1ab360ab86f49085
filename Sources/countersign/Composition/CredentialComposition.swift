// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Settings

/// From `credentials.sources` to sources.
enum CredentialComposition {
    /// The sources in their order.
    static func sources(_ settings: Settings) -> [any CredentialLookup] {
        let environment = Process.environment
        return settings.credentialSources.map { source in
            switch source {
            case .environment: EnvironmentSource(environment: environment)
            case .exec(let command): ExecSource(command: command, environment: environment)
            case .keyring(let path, let keyFile):
                KeyringSource(path: path, passphrase: KeyringPassphrase(environment: environment, keyFile: keyFile))
            case .systemd: SystemdCredentialsSource(environment: environment)
            }
        }
    }
}
