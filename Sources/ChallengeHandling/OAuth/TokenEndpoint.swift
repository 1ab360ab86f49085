// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Token requests of all grants, and the failures that their verdicts mean.
struct TokenEndpoint {
    /// The challenge's name, for failures and steps.
    let name: String
    let conversation: Conversation

    /// The pause before a refused scope is requested again, in milliseconds.
    private static let scopePause: Int64 = 30_000

    /// Response to a token request.
    struct Reply {
        let verdict: TokenVerdict
        /// The refresh token that replaces the one that was sent.
        let refreshToken: Secret?

        /// True if the server gave an access token or a refresh token.
        var isAccepted: Bool {
            if case .accepted = verdict { true } else { refreshToken != nil }
        }
    }

    /// Outcome of a token request.
    enum Answer {
        case accepted(TokenAnswer.Token)
        /// The server does not accept the credential, at least not for this scope.
        case refused(Latch.Reason, TokenStatement)
    }

    /// Sends `request`, and returns the verdict. Throws only if there is no response.
    func send(_ request: SideRequest, _ question: TokenQuestion) async throws(LoginFailure) -> Reply {
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await conversation.sideRequests.send(request)
        } catch {
            report("token: no answer, \(error.reason)")
            throw LoginFailure(error, step: "the token request", challenge: name)
        }
        let verdict = TokenVerdict(response, to: question, now: conversation.now())
        report("token: \(verdict.step)")
        // A 2xx may have replaced the token that was sent, even without an access token.
        let isReplaced = (200..<300).contains(response.status)
        if case .rejected = verdict { return Reply(verdict: verdict, refreshToken: nil) }
        return Reply(verdict: verdict, refreshToken: isReplaced ? TokenAnswer(response).refreshToken : nil)
    }

    /// Returns the outcome of `verdict`. Throws failures that say nothing about the credential. `isGrown` if more scope
    /// was requested than configured.
    func answer(_ verdict: TokenVerdict, isGrown: Bool = false) throws(LoginFailure) -> Answer {
        switch verdict {
        case .accepted(let token, _): return .accepted(token)
        case .rejected(let reason, let statement): return .refused(reason, statement)
        case .scopeRefused(let statement) where isGrown:
            throw scopeFailure(statement.sentence, retryAt: statement.retryAt)
        case .assertionRefused(let statement, let serverTime):
            throw failure("\(statement.sentence) \(clockAdvice(serverTime))", retryAt: statement.retryAt)
        case .scopeRefused(let statement), .ourFault(let statement), .unclear(let statement):
            throw failure(statement.sentence, retryAt: statement.retryAt)
        }
    }

    /// Requests a token for `scope` by `send`, and returns it. Throws the failure of a login that is refused.
    ///
    /// A value that was never accepted is rejected, and its latch closes. If an accepted one is refused for more than
    /// the `usual` scope, that one is requested as well: if the server grants it, the refusal concerns only the scope.
    /// Until that is answered, `tokens` remembers the refusal, and the usual scope is requested first.
    ///
    /// All requests together are one submission of the value, which counts if no answer judges it.
    func ask(
        for scope: Scope, usually usual: Scope, of use: CredentialUse, _ tokens: RefreshTokens,
        by send: (Scope) async throws(LoginFailure) -> Answer
    ) async throws(LoginFailure) -> TokenAnswer.Token {
        try await use.submit(in: conversation)
        do throws(LoginFailure) {
            return try await token(for: scope, usually: usual, of: use, tokens, by: send)
        } catch {
            if error.isUnsent || error.concernsScope { await use.withdrawSubmission(in: conversation) }
            throw error
        }
    }

    private func token(
        for scope: Scope, usually usual: Scope, of use: CredentialUse, _ tokens: RefreshTokens,
        by send: (Scope) async throws(LoginFailure) -> Answer
    ) async throws(LoginFailure) -> TokenAnswer.Token {
        var mayConfirm: Bool { scope != usual && use.acceptance(in: conversation) != nil }
        let isDoubted = tokens.isUnconfirmed(use) && mayConfirm
        if isDoubted { try await confirm(use, tokens, usual, by: send) }
        switch try await send(scope) {
        case .accepted(let token):
            if scope == usual { tokens.setUnconfirmed(use, false) }
            return token
        case .refused(.locked, let statement): throw await rejection(of: use, .locked, statement)
        case .refused(.rejected, let statement):
            guard mayConfirm else { throw await rejection(of: use, .rejected, statement) }
            if !isDoubted {
                report("token: refused for more than was accepted before, so less is asked for")
                try await confirm(use, tokens, usual, by: send)
            }
            throw scopeFailure(
                "The token endpoint accepts the credential \"\(use.key.credential)\", but refuses the scope "
                    + "\"\(ServerText.sentence("\(scope)"))\". Grant the scope to the client there.",
                retryAt: statement.retryAt)
        }
    }

    /// Sends the request for the usual scope, which shows if a refused value is still accepted. Throws the failure if
    /// it is not.
    private func confirm(
        _ use: CredentialUse, _ tokens: RefreshTokens, _ usual: Scope,
        by send: (Scope) async throws(LoginFailure) -> Answer
    ) async throws(LoginFailure) {
        tokens.setUnconfirmed(use, true)
        let answer = try await send(usual)
        tokens.setUnconfirmed(use, false)
        guard case .refused(let reason, let statement) = answer else { return }
        throw await rejection(of: use, reason, statement)
    }

    /// Closes the latch of `use`, and returns the failure, which quotes the statement that decided.
    func rejection(
        of use: CredentialUse, _ reason: Latch.Reason, _ statement: TokenStatement
    ) async -> LoginFailure {
        let evidence = Evidence(
            .answer, .rejected(reason == .locked ? .locked : .wrong),
            "the token endpoint answered with status \(statement.summary)")
        return await use.reject(reason, serverWait: statement.retryAt, by: evidence, in: conversation)
    }

    /// Returns a failure of one scope, which is not requested again for a while.
    private func scopeFailure(_ detail: String, retryAt: Int64?) -> LoginFailure {
        let pause = conversation.now().saturatingAdd(Self.scopePause)
        var failure = failure(detail, retryAt: max(retryAt ?? pause, pause))
        failure.concernsScope = true
        return failure
    }

    /// Returns a failure that says nothing about any credential.
    func failure(_ detail: String, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(.failed, challenge: name, detail: detail, retryAt: retryAt)
    }

    func report(_ text: String) {
        conversation.report(ConversationStep(challenge: name, text: text))
    }

    /// Returns what is known of the clocks, after a new assertion was refused as well.
    private func clockAdvice(_ serverTime: Int64?) -> String {
        let seconds = serverTime.map { $0.saturatingSubtract(conversation.now()) / 1000 }
        let clocks =
            switch seconds {
            case let seconds? where seconds >= 2: "The server's clock is \(seconds) s ahead of this machine's."
            case let seconds? where seconds <= -2: "The server's clock is \(-seconds) s behind this machine's."
            case _?: "The server's `Date` is this machine's time."
            case nil: "The server does not tell its time."
            }
        return "It refuses the time of an assertion that was signed just now. \(clocks) "
            + "Set this machine's clock by NTP (`timedatectl`), and check `client-id` and the key."
    }
}
