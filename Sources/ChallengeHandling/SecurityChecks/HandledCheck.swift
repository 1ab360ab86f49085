// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A `SecurityCheckChallengeHandler` as the machinery has it: by what name, and who calls it.
package struct HandledCheck: Sendable {
    private let handler: any SecurityCheckChallengeHandler
    /// The name that messages and failures use.
    package let challengeName: String
    private let caller: (any HandlerCaller)?

    /// The check of `handler`, under that handler's name unless `name` is another. `caller` calls a handler that a program has written
    /// itself; `nil` for those of this module.
    package init(
        _ handler: any SecurityCheckChallengeHandler, name: String? = nil, caller: (any HandlerCaller)? = nil
    ) {
        self.handler = handler
        self.caller = caller
        challengeName = name ?? handler.challengeName
    }

    /// The security check's name.
    package var securityCheck: String { handler.securityCheck }

    /// The handler's answer, and what it was made of. A program's own answer, of no stored credential, is none that was rejected.
    func answer(
        to challenge: SecurityCheckChallenge
    ) async throws(LoginFailure) -> (answer: SecretJSON, use: CredentialUse?) {
        switch try await ask({ [handler] in try await handler.handleChallenge(challenge) }) {
        case .cancel(let reason):
            throw LoginFailure(.failed, challenge: challengeName, detail: reason, isCancelled: true)
        case .submitChallengeAnswer(let answer, let use):
            if let own = own(answer, use) { try challenge.conversation.attempts.requireNew(own, to: challengeName) }
            return (answer, use)
        }
    }

    /// The text of `answer` if it is a program's own, so that only we can remember that it was rejected.
    func own(_ answer: SecretJSON, _ use: CredentialUse? = nil) -> Secret? {
        caller != nil && use == nil ? answer.text : nil
    }

    /// Tells the handler that the check succeeded.
    func succeeded(_ success: JSONValue) async {
        // What it does with it is its own affair.
        try? await ask { [handler] in await handler.handleSuccess(success) }
    }

    /// Tells the handler that the check failed for good.
    func failed(_ failure: JSONValue) async {
        try? await ask { [handler] in await handler.handleFailure(failure) }
    }

    private func ask<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws(LoginFailure) -> Value {
        try await (caller ?? DirectCaller()).ask(challengeName, body)
    }
}
