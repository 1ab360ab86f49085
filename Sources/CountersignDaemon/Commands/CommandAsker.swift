// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Glibc
internal import Secrets

/// The way in which a command asks for secrets that are not stored: at its terminal, or not at all.
///
/// A command of cron, of a script or of the daemon has nobody who could answer, and would wait for minutes.
enum CommandAsker {
    /// The prompt at the terminal, or a refusal of every question without one.
    static var present: any SecretAsker { hasTerminal ? TerminalPrompt() : NoTerminal() }

    /// True if a person can be asked.
    static var hasTerminal: Bool { isatty(STDIN_FILENO) == 1 }
}

/// Refuses every question.
struct NoTerminal: SecretAsker {
    /// The reason, as the end of a sentence.
    static let reason = "this command has no terminal to ask at"

    func ask(_ question: String, id: String) throws(AskFailure) -> Secret {
        throw AskFailure(reason: Self.reason)
    }
}
