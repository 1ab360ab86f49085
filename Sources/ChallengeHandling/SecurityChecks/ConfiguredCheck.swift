// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A configured security check. One login answers all checks of a response.
package struct ConfiguredCheck: Sendable {
    let handler: HandledCheck
    /// The credential of the answer; `nil` if the handler finds it itself.
    package let credential: String?
    /// True if the caller determines the credential.
    let choosesByCaller: Bool
    /// True if the check is passed at the start.
    let isKept: Bool
    /// True if the daemon logs out of the check.
    let logsOut: Bool
    /// The address for the answer, if the resource itself sends the challenge.
    let answerURL: WebURL?
    /// The address that every accepted user may GET.
    let proof: WebURL?
    /// The reason why these callers get no session; `nil` if they do.
    let refusal: String?

    /// Creates a check.
    package init(
        _ handler: HandledCheck, credential: String? = nil, choosesByCaller: Bool = false,
        isKept: Bool = false, logsOut: Bool = false, answerURL: WebURL? = nil, proof: WebURL? = nil,
        refusal: String? = nil
    ) {
        self.handler = handler
        self.credential = credential
        self.choosesByCaller = choosesByCaller
        self.isKept = isKept
        self.logsOut = logsOut
        self.answerURL = answerURL
        self.proof = proof
        self.refusal = refusal
    }

    /// The challenge's name.
    package var name: String { handler.challengeName }
    /// The check's name at the server.
    package var check: String { handler.securityCheck }
}

extension [ConfiguredCheck] {
    /// The credentials of the checks, if some depend on the caller; otherwise empty.
    var identity: String { filter(\.choosesByCaller).compactMap(\.credential).joined(separator: "+") }

    /// Returns `login`, or its refusal for callers without a credential.
    func guarding(_ login: Authenticator) -> Authenticator {
        lazy.compactMap(\.refusal).first.map(login.refusing) ?? login
    }
}

/// A `SecurityCheckChallengeHandler` with the name and the caller that logins use.
package struct HandledCheck: Sendable {
    private let handler: any SecurityCheckChallengeHandler
    /// The name that messages and failures use.
    package let challengeName: String
    private let caller: (any HandlerCaller)?

    /// Creates the check of `handler`, under that handler's name unless `name` is given. `caller` calls a handler that
    /// a program wrote; `nil` for handlers of this module.
    package init(
        _ handler: any SecurityCheckChallengeHandler, name: String? = nil, caller: (any HandlerCaller)? = nil
    ) {
        self.handler = handler
        self.caller = caller
        challengeName = name ?? handler.challengeName
    }

    /// The security check's name.
    package var securityCheck: String { handler.securityCheck }

    /// Returns the handler's answer and its credential. Throws if a program's own answer, of no stored credential, was
    /// rejected before.
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

    /// Returns the text of `answer` if it is a program's own. Its rejection must be remembered here.
    func own(_ answer: SecretJSON, _ use: CredentialUse? = nil) -> Secret? {
        caller != nil && use == nil ? answer.text : nil
    }

    /// Notifies the handler that the check succeeded.
    func succeeded(_ success: JSONValue) async {
        // A handler's own error does not affect the login.
        try? await ask { [handler] in await handler.handleSuccess(success) }
    }

    /// Notifies the handler that the check failed finally.
    func failed(_ failure: JSONValue) async {
        try? await ask { [handler] in await handler.handleFailure(failure) }
    }

    private func ask<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws(LoginFailure) -> Value {
        try await (caller ?? DirectCaller()).ask(challengeName, body)
    }
}
