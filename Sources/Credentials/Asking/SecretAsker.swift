// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Secrets

/// Asks a person for a secret.
package protocol SecretAsker: Sendable {
    /// What was typed in answer to `question`, a few words such as "the pin of bank-pin". Blocks until then, for minutes
    /// perhaps. `id` stays the same for the same question.
    func ask(_ question: String, id: String) throws(AskFailure) -> Secret
}

/// Why there is no answer.
package struct AskFailure: Error, Sendable, Equatable {
    /// What happened and what to do, as the end of a sentence.
    package var reason: String

    /// A failure.
    package init(reason: String) {
        self.reason = reason
    }
}

extension TerminalPrompt: SecretAsker {
    /// Asks at the terminal of whoever runs the command.
    package func ask(_ question: String, id: String) throws(AskFailure) -> Secret {
        do {
            let answer = try ask("Please type \(question): ")
            if !answer.isEmpty { return answer }
        } catch .noTerminal {
            throw AskFailure(reason: "there is no terminal to ask at")
        } catch {}
        throw AskFailure(reason: "no answer was typed")
    }
}
