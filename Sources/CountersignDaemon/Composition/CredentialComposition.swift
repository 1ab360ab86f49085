// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Logging
internal import Secrets
internal import Settings
internal import Synchronization

/// Credential sources made of the section `credentials`. Typed answers survive a reload.
final class CredentialComposition: CredentialProvider {
    private let asker: any SecretAsker
    private let state: String?
    private let oneTimePasswords: any OneTimePasswords
    private let answers: AskedFields
    private let passphrases = Mutex<[String: AskedPassphrase]>([:])
    private let lastGeneration = Atomic<UInt64>(0)
    private let inForce: Mutex<CredentialSnapshot>

    /// The sources of `settings`.
    ///
    /// `asker` prompts for secrets. If `state` is given, root also uses files of the owner of that directory.
    init(
        _ settings: CredentialSettings, asker: any SecretAsker, oneTimePasswords: any OneTimePasswords,
        state: String? = nil, needed: [String: [String]] = [:]
    ) {
        self.state = state
        self.asker = asker
        self.oneTimePasswords = oneTimePasswords
        answers = AskedFields(asker: asker)
        inForce = Mutex(CredentialSnapshot(CredentialStore(sources: []), generation: 0))
        replace(by: snapshot(of: settings, needed: needed))
    }

    /// Returns the sources of other settings, for their plan. `needed` lists the required fields of each credential.
    func snapshot(of settings: CredentialSettings, needed: [String: [String]]) -> CredentialSnapshot {
        let store = CredentialStore(
            sources: sources(settings), asked: settings.asked, answers: answers, oneTimePasswords: oneTimePasswords,
            needed: needed)
        return CredentialSnapshot(store, generation: lastGeneration.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    /// Puts the sources of other settings in force, once their plan is.
    func replace(by snapshot: CredentialSnapshot) { inForce.withLock { $0 = snapshot } }

    /// The sources of the configuration in force.
    var present: CredentialSnapshot { inForce.withLock { $0 } }

    /// Forgets the typed answers of these credentials, and all prompts that were declined.
    func forgetAnswers(of credentials: Set<String>) {
        for name in credentials { answers.forget(name) }
        answers.forgetRefusals()
        for passphrase in passphrases.withLock({ Array($0.values) }) { passphrase.forgetRefusal() }
    }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        try await present.credential(named: name)
    }

    func advice(onMissing name: String) -> String { present.advice(onMissing: name) }

    private func sources(_ settings: CredentialSettings) -> [any CredentialLookup] {
        let environment = Process.environment
        let trust = FileTrust(environment: environment, state: state)
        return settings.sources.map { source in
            switch source {
            case .environment: EnvironmentSource(environment: environment)
            case .environmentFile(let path): EnvironmentFileSource(path: path, trust: trust)
            case .exec(let command):
                ExecSource(
                    command: command, environment: environment, onErrorOutput: Self.warning(from: command.first ?? ""))
            case .keyring(let path, let keyFile, let asks):
                KeyringSource(
                    path: path,
                    passphrase: KeyringPassphrase(
                        environment: environment, keyFile: keyFile, state: state,
                        asked: asks ? passphrase(of: path) : nil), trust: trust)
            case .systemd: SystemdCredentialsSource(environment: environment)
            }
        }
    }

    private func passphrase(of path: String) -> AskedPassphrase {
        passphrases.withLock { passphrases in
            if let known = passphrases[path] { return known }
            let made = AskedPassphrase(of: path, asker: asker)
            passphrases[path] = made
            return made
        }
    }

    private static func warning(from program: String) -> @Sendable (String) -> Void {
        let logger = Logger(label: "credentials")
        return { text in
            logger.warning(
                "the credential helper wrote to its standard error",
                metadata: ["helper": "\(program)", "text": "\(text)"])
        }
    }
}
