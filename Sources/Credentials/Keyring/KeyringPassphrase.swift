// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Secrets
internal import Synchronization

/// The passphrase of a keyring, from the first available source.
///
/// The sources are the systemd credential `keyring-passphrase`, the variable `COUNTERSIGN_KEYRING_PASSPHRASE`, a key file, and a
/// prompt.
package struct KeyringPassphrase: Sendable {
    /// Prompts a person; throws if no prompt is possible.
    package typealias Prompt = @Sendable () throws(KeyringError) -> Secret

    private let environment: [String: String]
    private let keyFile: String?
    private let trust: FileTrust
    private let prompt: Prompt?
    private let asked: AskedPassphrase?

    /// Creates a passphrase from `environment`, else from `keyFile`, else from `prompt`.
    ///
    /// The key file has mode 0600; one final newline is removed. Root also uses a key file of the owner of the directory `state`.
    package init(
        environment: [String: String], keyFile: String? = nil, state: String? = nil, prompt: Prompt? = nil
    ) {
        trust = FileTrust(environment: environment, state: state)
        self.environment = environment
        self.keyFile = keyFile
        self.prompt = prompt
        asked = nil
    }

    /// Creates a passphrase from `environment`, else from `keyFile`, else from `asked`.
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

    /// Reports that the passphrase is wrong, so that a typed passphrase is asked for again.
    func reportWrong() {
        asked?.forget()
    }

    /// Returns the current passphrase, read again each time because the passphrase may change while the daemon runs.
    package func read() throws(KeyringError) -> Secret {
        guard let passphrase = try find() else {
            throw KeyringError(
                .noPassphrase,
                "no passphrase for the keyring: provide the systemd credential keyring-passphrase, "
                    + "COUNTERSIGN_KEYRING_PASSPHRASE, or a key file")
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

    /// Reads the passphrase from a key file.
    package static func content(of keyFile: String, trust: FileTrust = .none) throws(KeyringError) -> Secret {
        do {
            return try PrivateFile(path: keyFile, trust: trust.trust(in: keyFile), limit: 1 << 16).read()
                .withoutTrailingNewline
        } catch {
            throw KeyringError(error)
        }
    }
}

/// A keyring passphrase that a person types on first use, held in memory only.
///
/// The prompt is repeated only after a wrong passphrase, and not for a while after an unanswered prompt.
package final class AskedPassphrase: Sendable {
    private enum State {
        case unknown
        case typed(Secret)
        case refused(KeyringError, until: ContinuousClock.Instant)
    }

    private let path: String
    private let asker: any SecretAsker
    private let pause: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State.unknown)

    /// Creates a passphrase for the keyring at `path`, typed in answer to `asker`.
    package init(
        of path: String, asker: any SecretAsker, pause: Duration = .seconds(60),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.path = path
        self.asker = asker
        self.pause = pause
        self.now = now
    }

    /// Returns the typed passphrase; blocks while a prompt is open.
    package func read() throws(KeyringError) -> Secret {
        try state.withLock { state throws(KeyringError) in
            switch state {
            case .typed(let passphrase): return passphrase
            case .refused(let error, let until) where until > now(): throw error
            case .unknown, .refused: break
            }
            do throws(AskFailure) {
                let passphrase = try asker.ask("the passphrase of \(path)", id: "countersign:\(path)")
                state = .typed(passphrase)
                return passphrase
            } catch {
                let failure = KeyringError(
                    .noPassphrase, "the prompt for the passphrase of the keyring \(path) failed: \(error.reason)")
                state = .refused(failure, until: now() + pause)
                throw failure
            }
        }
    }

    /// Forgets a wrong passphrase, so that the next read asks again.
    func forget() {
        state.withLock { $0 = .unknown }
    }

    /// Forgets an unanswered prompt, so that the next read asks again.
    package func forgetRefusal() {
        // If the lock is taken, a prompt is open.
        _ = state.withLockIfAvailable { state in
            if case .refused = state { state = .unknown }
        }
    }
}
