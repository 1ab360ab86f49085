// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The side of a token endpoint that all grants share: what its refusals mean (RFC 6749 §5.2), and how they are told.
struct TokenEndpoint {
    /// The challenge that failures and steps belong to.
    let name: String
    let conversation: Conversation

    /// The words that say that a secret, or the client as such, is refused.
    private static let rejections: Set<String> = ["invalid_client", "invalid_grant", "unauthorized_client"]

    /// Sends `request` and returns a 2xx. A rejection closes the latch of `use` before it is thrown; everything else says
    /// nothing about the credential.
    func send(_ request: SideRequest, rejecting use: CredentialUse) async throws(LoginFailure) -> SideResponse {
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await conversation.sideRequests.send(request)
        } catch {
            report("token: no answer, \(error.reason)")
            throw LoginFailure(error, step: "the token request", challenge: name)
        }
        if (200..<300).contains(response.status) { return response }
        let error = TokenAnswer(response.body).error
        let word = error.map { " (\($0))" } ?? ""
        report("token: \(response.status)\(error.map { " \($0)" } ?? "")")
        let retryAt = Moment.retry(after: response.fields, now: conversation.now())
        switch response.status {
        case 400..<500 where response.status != 429:
            // A 401 means that the client is not who it says (§5.2), in whatever words. Others say it with 400, or 403.
            let isRejected = error.map(Self.rejections.contains) ?? false
            guard isRejected || response.status == 401 else { break }
            throw use.reject(.rejected, serverWait: retryAt, in: conversation)
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
        throw failure("The token endpoint answered with status \(response.status)\(word).\(advice)", retryAt: retryAt)
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
        "unsupported_grant_type": " Check `token.grant`, and what the client is allowed there.",
    ]
}
