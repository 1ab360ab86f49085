// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// A program's handler of a security check, in one conversation: asked for a limited time, and kept from sending an answer
/// that was rejected.
package final class GuardedCheckHandler: SecurityCheckChallengeHandler {
    private let handler: any SecurityCheckChallengeHandler
    private let calls: HandlerCalls
    /// The answer whose verdict is awaited, if it was made of no stored credential, and the gate that it passed.
    private let given: Mutex<Given?>

    /// An answer that goes out, and the gate that is told if it is rejected.
    package struct Given: Sendable {
        let answer: SecretJSON
        let attempts: any AttemptControl

        /// An answer.
        package init(_ answer: SecretJSON, attempts: any AttemptControl) {
            self.answer = answer
            self.attempts = attempts
        }
    }

    /// `given`: what goes out before any challenge.
    package init(_ handler: any SecurityCheckChallengeHandler, calls: HandlerCalls, given: Given? = nil) {
        self.handler = handler
        self.calls = calls
        self.given = Mutex(given)
    }

    /// The handler's.
    package var securityCheck: String { handler.securityCheck }
    /// The handler's.
    package var challengeName: String { handler.challengeName }
    /// The handler's.
    package var latchKey: LatchKey? { handler.latchKey }

    /// The handler's answer, if it is not one that was rejected.
    package func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        if case .rejected = challenge.previousAnswer { noteRejection() }
        let answer = try await calls.run(challengeName) { [handler] in try await handler.handleChallenge(challenge) }
        guard case .submitChallengeAnswer(let value, from: nil) = answer else { return answer }
        let attempts = challenge.conversation.attempts
        try attempts.requireNew(value.text, to: challengeName)
        given.withLock { $0 = Given(value, attempts: attempts) }
        return answer
    }

    /// Tells the handler.
    package func handleSuccess(_ success: JSONValue) async {
        given.withLock { $0 = nil }
        // What it does with it is its own affair.
        try? await calls.run(challengeName) { [handler] in await handler.handleSuccess(success) }
    }

    /// Tells the handler.
    package func handleFailure(_ failure: JSONValue) async {
        noteRejection()
        try? await calls.run(challengeName) { [handler] in await handler.handleFailure(failure) }
    }

    private func noteRejection() {
        let given = given.withLock { given in
            defer { given = nil }
            return given
        }
        if let given { given.attempts.note(given.answer.text, to: challengeName, acceptedAt: nil) }
    }
}

/// Stands in for a check that is answered without a handler.
struct AnsweredCheck: SecurityCheckChallengeHandler {
    let securityCheck: String

    /// There is no other answer.
    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        if case .rejected(let failure) = challenge.previousAnswer { throw failure }
        return .cancel(reason: "The server asks for \"\(securityCheck)\" again, and no handler of it is registered.")
    }
}
