// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
package import Secrets
internal import System

/// Input of a secret for a command, from standard input or the terminal.
///
/// Never from an argument, which every user of the machine could read.
package struct SecretInput: Sendable {
    private let input: Int32
    private let prompt: TerminalPrompt

    /// Creates an input from standard input, or from `terminal` if standard input is a terminal.
    package init(input: Int32 = STDIN_FILENO, terminal: String = "/dev/tty") {
        self.input = input
        prompt = TerminalPrompt(terminal: terminal)
    }

    /// True if a person has to type the secret.
    package var isTyped: Bool { isatty(input) == 1 }

    /// Returns the whole input, or the line typed after `question`. Never empty.
    ///
    /// The input has at most 1 MiB, and one final newline is removed unless it contains a zero byte.
    package func value(_ question: String) throws(KeyringError) -> Secret {
        let value = isTyped ? try ask(question) : try readAll()
        guard !value.isEmpty else { throw KeyringError(.invalid, "the value is empty; nothing was changed") }
        return value
    }

    /// Returns a passphrase typed at the terminal, even if standard input is redirected.
    package func ask(_ question: String) throws(KeyringError) -> Secret {
        do {
            return try prompt.ask(question)
        } catch {
            throw Self.error(error)
        }
    }

    /// Returns a new passphrase, typed twice at the terminal.
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
                "there is no terminal for a prompt; provide the passphrase of the keyring as the systemd credential "
                    + "keyring-passphrase, in COUNTERSIGN_KEYRING_PASSPHRASE, or in a key file")
        case .mismatch: KeyringError(.invalid, "the two answers differ; nothing was changed")
        }
    }
}
