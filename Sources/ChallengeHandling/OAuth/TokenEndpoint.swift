// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Token requests of all grants, and the meaning and reporting of refusals (RFC 6749 §5.2).
struct TokenEndpoint {
    /// The challenge's name, for failures and steps.
    let name: String
    let conversation: Conversation

    /// Error codes that reject a secret. `unauthorized_client` is not included: the client is known, but not allowed
    /// this grant.
    private static let rejections: Set<String> = ["invalid_client", "invalid_grant"]
    /// Error codes that refuse the requested scope.
    private static let scopeRefusals: Set<String> = ["invalid_scope", "unauthorized_client"]
    /// The pause before a refused scope is requested again, in milliseconds.
    private static let scopePause: Int64 = 30_000

    /// Outcome of a token request.
    enum Answer {
        /// A 2xx response.
        case accepted(SideResponse)
        /// The server does not accept the credential, at least not for this scope.
        case refused(retryAt: Int64?)
    }

    /// Sends `request`. Throws failures that say nothing about the credential. `isGrown` if more scope is requested
    /// than configured.
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
        case 400..<500 where !InconclusiveStatus.contains(response.status):
            // A 401 means that client authentication failed (RFC 6749 §5.2), with any error code. Other servers use 400
            // or 403.
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
            ?? (InconclusiveStatus.contains(response.status)
                ? " A later request tries again; if the error persists, check the server." : " Check `token.url`.")
        let detail = "The token endpoint answered with status \(response.status)\(word).\(advice)"
        if isGrown, let error, Self.scopeRefusals.contains(error) { throw scopeFailure(detail, retryAt: retryAt) }
        throw failure(detail, retryAt: retryAt)
    }

    /// Requests a token for `scope` by `send`, and returns its response. Throws the failure of a login that is refused.
    ///
    /// A value that was never accepted is rejected, and its latch closes. If an accepted one is refused for more than
    /// the `usual` scope, that one is requested as well: if the server grants it, the refusal concerns only the scope.
    /// Until that is answered, `tokens` remembers the refusal, and the usual scope is requested first.
    func ask(
        for scope: Scope, usually usual: Scope, of use: CredentialUse, _ tokens: RefreshTokens,
        by send: (Scope) async throws(LoginFailure) -> Answer
    ) async throws(LoginFailure) -> SideResponse {
        var mayConfirm: Bool { scope != usual && use.acceptance(in: conversation) != nil }
        let isDoubted = tokens.isUnconfirmed(use) && mayConfirm
        if isDoubted { try await confirm(use, tokens, usual, by: send) }
        switch try await send(scope) {
        case .accepted(let response):
            if scope == usual { tokens.setUnconfirmed(use, false) }
            return response
        case .refused(let retryAt):
            guard mayConfirm else { throw await use.reject(.rejected, serverWait: retryAt, in: conversation) }
            if !isDoubted {
                report("token: refused for more than was accepted before, so less is asked for")
                try await confirm(use, tokens, usual, by: send)
            }
            throw scopeFailure(
                "The token endpoint accepts the credential \"\(use.key.credential)\", but refuses the scope "
                    + "\"\(ServerText.sentence("\(scope)"))\". Grant the scope to the client there.", retryAt: retryAt)
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
        guard case .refused(let retryAt) = answer else { return }
        throw await use.reject(.rejected, serverWait: retryAt, in: conversation)
    }

    /// Returns a failure of one scope, which is not requested again for a while.
    private func scopeFailure(_ detail: String, retryAt: Int64?) -> LoginFailure {
        let pause = conversation.now().saturatingAdd(Self.scopePause)
        var failure = failure(detail, retryAt: max(retryAt ?? pause, pause))
        failure.concernsScope = true
        return failure
    }

    /// Returns the token of a 2xx response.
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

    /// Returns a failure that says nothing about any credential.
    func failure(_ detail: String, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(.failed, challenge: name, detail: detail, retryAt: retryAt)
    }

    func report(_ text: String) {
        conversation.report(ConversationStep(challenge: name, text: text))
    }

    private static let advice = [
        "invalid_request": " Check the values of `token.parameters` and `token.audience`.",
        "invalid_scope": " Check `token.scope`, and what a resource has named in a 403 insufficient_scope.",
        "invalid_target": " Check `token.audience` and `token.parameters`.",
        "unauthorized_client": " Check which grants and scopes the server allows this client.",
        "unsupported_grant_type": " Check `token.grant`, and which grants the server allows this client.",
    ]
}

/// Strict reader of a token endpoint's answer (RFC 6749 §5).
struct TokenAnswer {
    /// A token and its lifetime.
    struct Token {
        let value: Secret
        /// The lifetime in seconds, if the server states one.
        let seconds: Int64?

        /// Returns the expiry in milliseconds since 1970. The lifetime counts from `sentAt`, when the token was
        /// requested, so the session never outlives the token.
        func expiresAt(sentAt: Int64) -> Int64? {
            seconds.flatMap { seconds in
                let end = sentAt.addingReportingOverflow(seconds * 1000)
                return end.overflow ? nil : end.partialValue
            }
        }
    }

    /// Reason why a token cannot be used.
    struct Unusable: Error, Equatable {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    private let body: JSONValue?

    init(_ body: [UInt8]) {
        self.body = JSONValue(parsing: body)
    }

    /// The refresh token, if the answer has one that can be stored.
    var refreshToken: Secret? { carriable("refresh_token") }

    /// The server's error code (§5.2), if it is valid.
    var error: String? {
        guard let error = body?["error"]?.stringValue, (1...64).contains(error.utf8.count) else { return nil }
        let isWord = error.utf8.allSatisfy { $0.isAlphanumeric || "_-.".utf8.contains($0) }
        return isWord ? error : nil
    }

    /// Returns the access token (§5.1), the first of `names` that is present. `defaultSeconds` replaces a missing
    /// lifetime.
    func token(named names: [String] = ["access_token"], defaultSeconds: Int64? = nil) throws(Unusable) -> Token {
        guard let body else { throw Unusable("is not JSON") }
        guard let value = names.lazy.compactMap(carriable).first else {
            throw Unusable("holds no `\(names[0])` that a field can carry")
        }
        if let type = body["token_type"], type != .null {
            guard let type = type.stringValue, type.lowercased() == "bearer" else {
                throw Unusable("holds a token of another type than Bearer")
            }
        }
        guard let life = body["expires_in"], life != .null else { return Token(value: value, seconds: defaultSeconds) }
        guard let seconds = Self.seconds(life) else { throw Unusable("holds an `expires_in` that is not a number") }
        guard seconds > 0 else { throw Unusable("holds a token that has expired already") }
        // More than ten years is a mistake in units. The limit avoids overflow.
        return Token(value: value, seconds: min(seconds, 10 * 366 * 86400))
    }

    private func carriable(_ name: String) -> Secret? {
        guard let text = body?[name]?.stringValue, TokenPlacement.canCarry(text.utf8) else { return nil }
        return Secret(text)
    }

    /// Returns whole seconds of a number, or of a text with a number.
    private static func seconds(_ value: JSONValue) -> Int64? {
        if let whole = value.integerValue { return whole }
        switch value {
        case .double(let number): return whole(number)
        case .string(let text): return Double(text).flatMap(whole)
        default: return nil
        }
    }

    private static func whole(_ number: Double) -> Int64? {
        guard number.isFinite else { return nil }
        return Int64(min(max(number, -1), 1e12))
    }
}
