// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
package import Secrets

/// How a command gets a secret from whoever runs it: never as an argument, which every user of the machine could read.
package struct SecretInput: Sendable {
    private let input: Int32
    private let prompt: TerminalPrompt

    /// From standard input, or from `terminal` where that is what standard input is.
    package init(input: Int32 = STDIN_FILENO, terminal: String = "/dev/tty") {
        self.input = input
        prompt = TerminalPrompt(terminal: terminal)
    }

    /// Whether a person would have to type it.
    package var isTyped: Bool { isatty(input) == 1 }

    /// All of the input, at most 1 MiB, without one newline at its end (a zero byte in it: as it is); or what is typed
    /// after `question`. Never empty.
    package func value(_ question: String) throws(KeyringError) -> Secret {
        let value = isTyped ? try ask(question) : try readAll()
        guard !value.isEmpty else { throw KeyringError(.invalid, "the value is empty; nothing was changed") }
        return value
    }

    /// A passphrase from the terminal, wherever standard input is.
    package func ask(_ question: String) throws(KeyringError) -> Secret {
        do {
            return try prompt.ask(question)
        } catch {
            throw Self.error(error)
        }
    }

    /// A new passphrase from the terminal, typed twice.
    package func askTwice(_ question: String) throws(KeyringError) -> Secret {
        do {
            return try prompt.askTwice(question, again: "Once more: ")
        } catch {
            throw Self.error(error)
        }
    }

    private func readAll() throws(KeyringError) -> Secret {
        let limit = 1 << 20
        do {
            let copy = Descriptor(owning: try systemCall { [input] in fcntl(input, F_DUPFD_CLOEXEC, 3) })
            var bytes = try copy.readAll(limit: limit)
            let secret = Secret(taking: &bytes)
            guard secret.count <= limit else { throw KeyringError(.invalid, "the value is longer than 1 MiB") }
            return secret.withoutTrailingNewline
        } catch let error as KeyringError {
            throw error
        } catch {
            throw KeyringError(.failed, "standard input cannot be read")
        }
    }

    private static func error(_ failure: TerminalPrompt.Failure) -> KeyringError {
        switch failure {
        case .noAnswer: KeyringError(.noPassphrase, "no answer was typed")
        case .noTerminal:
            KeyringError(
                .noPassphrase,
                "there is no terminal to ask at; give the passphrase of the keyring as the systemd credential "
                    + "keyring-passphrase, in COUNTERSIGN_KEYRING_PASSPHRASE, or in a key file")
        case .notTheSame: KeyringError(.invalid, "the two answers differ; nothing was changed")
        }
    }
}
