// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The side of a token endpoint that all grants share: what its refusals mean (RFC 6749 §5.2), and how they are told.
struct TokenEndpoint {
    /// The challenge that failures and steps belong to.
    let name: String
    let conversation: Conversation

    /// The words that say that a secret is refused. `unauthorized_client` is not among them: that client is known, and may not do this.
    private static let rejections: Set<String> = ["invalid_client", "invalid_grant"]
    /// The words that are about what is asked for.
    private static let scopeRefusals: Set<String> = ["invalid_scope", "unauthorized_client"]
    /// So long a refused scope is not asked for again, in milliseconds.
    private static let scopePause: Int64 = 30_000

    /// The answer to a token request.
    enum Answer {
        /// A 2xx.
        case accepted(SideResponse)
        /// The server does not take the credential, at least not for this scope.
        case refused(retryAt: Int64?)
    }

    /// Sends `request`. Throws what says nothing about the credential. `isGrown`: whether more scope is asked for than the
    /// configuration does.
    func ask(_ request: SideRequest, isGrown: Bool = false) async throws(LoginFailure) -> Answer {
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await conversation.sideRequests.send(request)
        } catch {
            report("token: no answer, \(error.reason)")
            throw LoginFailure(error, step: "the token request", challenge: name)
        }
        if (200..<300).contains(response.status) { return .accepted(response) }
        let error = TokenAnswer(response.body).error
        let word = error.map { " (\($0))" } ?? ""
        report("token: \(response.status)\(error.map { " \($0)" } ?? "")")
        let retryAt = Moment.retry(after: response.fields, now: conversation.now())
        switch response.status {
        case 400..<500 where response.status != 429:
            // A 401 means that the client is not who it says (RFC 6749 §5.2), in whatever words. Others say it with 400, or 403.
            let isRejected = error.map(Self.rejections.contains) ?? false
            if isRejected || response.status == 401 { return .refused(retryAt: retryAt) }
        case 300..<400:
            throw failure(
                "The token endpoint answered with a redirect (status \(response.status)), which is not followed with a "
                    + "secret. Check `token.url`.")
        default:
            break
        }
        let advice =
            error.map { Self.advice[$0] ?? "" }
            ?? (response.status < 429
                ? " Check `token.url`." : " A later request tries again; if it stays so, look at the server.")
        let detail = "The token endpoint answered with status \(response.status)\(word).\(advice)"
        if isGrown, let error, Self.scopeRefusals.contains(error) { throw scopeFailure(detail, retryAt: retryAt) }
        throw failure(detail, retryAt: retryAt)
    }

    /// Returns how a login ends that was refused for `scope`. A value that was never accepted is rejected, and its latch closes. For one
    /// that was, `confirm` asks for less with the same value: if the server takes that, the refusal is the scope's alone.
    func end(
        refused scope: Scope, retryAt: Int64?, of use: CredentialUse,
        confirm: (() async throws(LoginFailure) -> Answer)?
    ) async throws(LoginFailure) -> LoginFailure {
        guard let confirm, use.acceptance(in: conversation) != nil else {
            return use.reject(.rejected, serverWait: retryAt, in: conversation)
        }
        report("token: refused for more than was accepted before, so less is asked for")
        switch try await confirm() {
        case .refused(let retryAt): return use.reject(.rejected, serverWait: retryAt, in: conversation)
        case .accepted:
            return scopeFailure(
                "The token endpoint accepts the credential \"\(use.key.credential)\", and refuses it the scope "
                    + "\"\(ServerText.sentence("\(scope)"))\". Grant it to the client there.", retryAt: retryAt)
        }
    }

    /// A failure of one scope, which is not asked for again for a while.
    private func scopeFailure(_ detail: String, retryAt: Int64?) -> LoginFailure {
        let pause = conversation.now().saturatingAdd(Self.scopePause)
        var failure = failure(detail, retryAt: max(retryAt ?? pause, pause))
        failure.concernsScope = true
        return failure
    }

    /// The token of a 2xx.
    func token(
        in answer: TokenAnswer, status: Int, named names: [String] = ["access_token"], defaultSeconds: Int64? = nil
    ) throws(LoginFailure) -> TokenAnswer.Token {
        do throws(TokenAnswer.Unusable) {
            let token = try answer.token(named: names, defaultSeconds: defaultSeconds)
            report("token: \(status)\(token.seconds.map { ", valid for \($0) s" } ?? "")")
            return token
        } catch {
            report("token: \(status), but its answer \(error.reason)")
            throw failure("The token endpoint's answer \(error.reason). Check `token.url`.")
        }
    }

    /// A failure that says nothing about any credential.
    func failure(_ detail: String, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(.failed, challenge: name, detail: detail, retryAt: retryAt)
    }

    func report(_ text: String) {
        conversation.report(ConversationStep(challenge: name, text: text))
    }

    private static let advice = [
        "invalid_request": " Check what `token.parameters` and `token.audience` have to name there.",
        "invalid_scope": " Check `token.scope`, and what a resource has named in a 403 insufficient_scope.",
        "invalid_target": " Check `token.audience` and `token.parameters`.",
        "unauthorized_client": " Check what the client is allowed there.",
        "unsupported_grant_type": " Check `token.grant`, and what the client is allowed there.",
    ]
}
