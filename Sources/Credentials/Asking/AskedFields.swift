// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets
internal import Synchronization
package import System

/// The fields that are not stored (`credentials.ask`): a person types them, and they are held in memory only.
///
/// There is one prompt at a time per field for all waiters. An answer stays even after a rejection: its latch is closed then, and
/// only an operator's `unlatch` forgets the answer. After an unanswered prompt, the next one waits for a pause, so that frequent
/// requests do not annoy the person.
package final class AskedFields: Sendable {
    private struct Field: Hashable, Sendable {
        let credential: String
        let name: String
    }

    private typealias Waiter = CheckedContinuation<Result<Secret, CredentialError>, Never>

    private enum State {
        case answered(Secret)
        case asking([Waiter])
        case refused(CredentialError, until: ContinuousClock.Instant)
    }

    private let asker: any SecretAsker
    private let pause: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let onThread: ThreadStart
    private let states = Mutex<[Field: State]>([:])

    /// Creates fields that `asker` asks for, with a `pause` after each unanswered prompt.
    package init(
        asker: any SecretAsker, pause: Duration = .seconds(60),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        onThread: @escaping ThreadStart = startThread
    ) {
        self.onThread = onThread
        self.asker = asker
        self.pause = pause
        self.now = now
    }

    /// Returns the answer for that field of a credential; asks for it if it is not known yet.
    ///
    /// Throws an error that `isAbsent` if the prompt was not answered.
    package func value(of credential: String, _ name: String) async throws(CredentialError) -> Secret {
        let field = Field(credential: credential, name: name)
        let result = await withCheckedContinuation { (waiter: Waiter) in
            let (known, asks) = states.withLock { states -> (Result<Secret, CredentialError>?, Bool) in
                switch states[field] {
                case .answered(let answer): return (.success(answer), false)
                case .asking(let waiters):
                    states[field] = .asking(waiters + [waiter])
                    return (nil, false)
                case .refused(let error, let until) where until > now(): return (.failure(error), false)
                case .refused, nil:
                    states[field] = .asking([waiter])
                    return (nil, true)
                }
            }
            if let known { waiter.resume(returning: known) }
            if asks { beginAsking(field) }
        }
        return try result.get()
    }

    /// Returns an earlier answer, without a prompt.
    func cachedAnswer(for credential: String, _ name: String) -> Secret? {
        states.withLock { states in
            if case .answered(let answer) = states[Field(credential: credential, name: name)] { answer } else { nil }
        }
    }

    /// Forgets the answers and unanswered prompts of that credential, so that the next use asks again.
    package func forget(_ credential: String) {
        states.withLock { states in
            for (field, state) in states where field.credential == credential {
                // An open prompt continues.
                if case .asking = state { continue }
                states[field] = nil
            }
        }
    }

    /// Forgets all unanswered prompts.
    package func forgetRefusals() {
        states.withLock { states in
            states = states.filter { if case .refused = $0.value { false } else { true } }
        }
    }

    private func beginAsking(_ field: Field) {
        do throws(ThreadError) {
            try onThread { self.ask(field) }
        } catch {
            // No prompt was opened, so the next one needs no pause.
            finish(
                field,
                .failure(
                    CredentialError(reason: "No prompt for the field \"\(field.name)\" could be opened: \(error).")),
                isRefusal: false)
        }
    }

    private func ask(_ field: Field) {
        let result = Result { () throws(CredentialError) in
            do throws(AskFailure) {
                return try asker.ask(
                    "the \(field.name) of \(field.credential)", id: "countersign:\(field.credential):\(field.name)")
            } catch {
                throw CredentialError(
                    reason:
                        "The prompt for the field \"\(field.name)\" of the credential \"\(field.credential)\" failed: "
                        + "\(error.reason).", isAbsent: true)
            }
        }
        finish(field, result, isRefusal: true)
    }

    /// Ends the prompt of that field, and resumes all waiters.
    private func finish(_ field: Field, _ result: Result<Secret, CredentialError>, isRefusal: Bool) {
        let waiters = states.withLock { states -> [Waiter] in
            guard case .asking(let waiters) = states[field] else { return [] }
            switch result {
            case .success(let answer): states[field] = .answered(answer)
            case .failure(let error): states[field] = isRefusal ? .refused(error, until: now() + pause) : nil
            }
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }
}

/// A way to ask a person for a secret.
package protocol SecretAsker: Sendable {
    /// Returns the answer typed to `question`, a few words such as "the pin of bank-pin".
    ///
    /// Blocks until then, possibly for minutes. Repeated questions have the same `id`.
    func ask(_ question: String, id: String) throws(AskFailure) -> Secret
}

/// A reason for a prompt without an answer.
package struct AskFailure: Error, Sendable, Equatable {
    /// The reason and the remedy, as the end of a sentence.
    package var reason: String

    /// Creates a failure.
    package init(reason: String) {
        self.reason = reason
    }
}

extension TerminalPrompt: SecretAsker {
    /// Prompts at the controlling terminal of the command.
    package func ask(_ question: String, id: String) throws(AskFailure) -> Secret {
        do {
            let answer = try ask("Please type \(question): ")
            if !answer.isEmpty { return answer }
        } catch .noTerminal {
            throw AskFailure(reason: "there is no terminal for a prompt")
        } catch {}
        throw AskFailure(reason: "no answer was typed")
    }
}
