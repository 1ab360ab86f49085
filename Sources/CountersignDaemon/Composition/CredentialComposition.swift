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
    private let store: Mutex<CredentialStore>
    /// Sources that gave the last value of each credential.
    private let valueSources = Mutex<[String: AnsweringSource]>([:])

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
        store = Mutex(CredentialStore(sources: []))
        replace(settings, needed: needed)
    }

    /// Replaces the sources by those of other settings. `needed` lists the required fields of each credential.
    func replace(_ settings: CredentialSettings, needed: [String: [String]]) {
        let made = CredentialStore(
            sources: sources(settings), asked: settings.asked, answers: answers, oneTimePasswords: oneTimePasswords,
            needed: needed)
        store.withLock { $0 = made }
    }

    /// Forgets the typed answers of these credentials, and all prompts that were declined.
    func forgetAnswers(of credentials: Set<String>) {
        for name in credentials { answers.forget(name) }
        answers.forgetRefusals()
        for passphrase in passphrases.withLock({ Array($0.values) }) { passphrase.forgetRefusal() }
    }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        let store = store.withLock { $0 }
        let credential = try await store.credential(named: name)
        note(credential, named: name)
        return credential
    }

    /// Returns the source that gave the last value of a credential; nil if it was not looked up yet.
    func valueSource(of name: String) -> AnsweringSource? { valueSources.withLock { $0[name] } }

    private func note(_ credential: Credential?, named name: String) {
        valueSources.withLock { $0[name] = credential?.source }
    }

    func advice(onMissing name: String) -> String { store.withLock { $0 }.advice(onMissing: name) }

    /// States of the files that credentials are read from.
    var files: FileStates { store.withLock { $0 }.files }

    /// Returns the credential's present value if a lookup without a prompt can find it.
    func watched(named name: String) async throws(CredentialError) -> WatchedCredential {
        let store = store.withLock { $0 }
        let found = try await store.watched(named: name)
        if case .known(let credential) = found { note(credential, named: name) }
        return found
    }

    /// Returns the credential's present value if a lookup without a prompt can find it, also by a helper.
    func unprompted(named name: String) async throws(CredentialError) -> WatchedCredential {
        let store = store.withLock { $0 }
        let found = try await store.unprompted(named: name)
        if case .known(let credential) = found { note(credential, named: name) }
        return found
    }

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
