// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Evaluation of the answers to a submitted form. The order is IBM's: known failures, then evidence of success, then
/// the login page again. A 200 alone is not evidence.
///
/// A rejection is based on the answer itself, on the page that its redirect leads to, and on a configured address,
/// never on an address that only a caller chose (CONTRIBUTING, rule 3).
struct FormAnswerEvaluator {
    let success: [ResponseMatcher]
    let failed: [FailureMatcher]
    let use: CredentialUse
    let form: GatewayForm

    /// Evaluates the answer to a step before the last. Returns the page for the next step. Pages of a login may look
    /// alike: only the exact form of this step counts as the login page again.
    func proceed(
        after answer: ExaminedResponse, on client: inout GatewayClient
    ) async throws(LoginFailure) -> GatewayClient.Page {
        try await requireNoFailure(answer, client)
        let isVerified = try isVerified(by: answer, client)
        if !isVerified {
            if answer.status == 401 { throw await reject(.rejected, answer, client, by: "its status is 401") }
            if form.isShownAgain(in: answer) {
                throw await reject(.rejected, answer, client, by: "it has the form again")
            }
            if let trouble = client.trouble(in: answer, "form") { throw trouble }
        }
        guard isVerified || success.isEmpty && answer.status != 403 else { throw noEvidence(client, answer) }
        guard let next = GatewayClient.redirectWithinOrigin(in: answer) else {
            return .init(response: answer, asksForLogin: false)
        }
        let page = try await client.open(next, "redirect")
        try await requireNoFailure(page.response, client)
        if !isVerified, form.isShownAgain(in: page.response) {
            throw await reject(.rejected, page.response, client, by: "its redirect leads to the form again")
        }
        return page
    }

    /// Evaluates the answer to the last step, and returns whether the login is verified. It is verified if the server
    /// has shown that it accepted the credential, not merely seemed to. `proof` is a configured address that shows the
    /// login page without a session.
    func conclude(
        _ answer: ExaminedResponse, hasNewCookies: Bool, from loginPage: LoginPage, proof: WebURL?,
        on client: inout GatewayClient
    ) async throws(LoginFailure) -> Bool {
        try await requireNoFailure(answer, client)
        var isVerified = try isVerified(by: answer, client)
        if !isVerified { try await requireNoRefusal(answer, client) }
        let isLikely = hasNewCookies || GatewayClient.redirect(in: answer) != nil
        var seen: WebURL?
        if let next = GatewayClient.redirectWithinOrigin(in: answer) {
            // Requested once, before the session is used otherwise: Tomcat treats the next request for that address as
            // the one that it saved, and that must be this request. A wrong password leads to a redirect as well:
            // without its page, only new cookies are an indication.
            let page = try await followUp(next, "redirect", isVerified || hasNewCookies, following: .none, &client)
            guard let page else { return isVerified }
            let isResource = loginPage.isResource(next)
            if !isResource, next != proof { try await requireNoFailure(page.response, client) }
            isVerified = isVerified || self.isVerified(by: page.response, reportedBy: client)
            if !isVerified, page.asksForLogin || form.isShownAgain(in: page.response) {
                guard hasNewCookies, isResource, success.isEmpty else {
                    throw await reject(.rejected, page.response, client, by: "its redirect leads to the login page")
                }
            }
            if isSettled(page.response) { seen = next }
        }
        guard !isVerified else { return true }
        guard let proof else {
            guard success.isEmpty else { throw noEvidence(client, answer) }
            if hasNewCookies {
                client.report("the login seems to have worked: the answer sets new cookies")
                return false
            }
            if let seen, loginPage.isResource(seen) {
                client.report("the login worked: \(seen.path) shows no login page any more")
                return true
            }
            guard loginPage.isCallers else {
                guard isLikely else { throw noEvidence(client, answer) }
                return false
            }
            return try await requireOpen(loginPage.address, answer, isLikely, &client)
        }
        if success.isEmpty, seen == proof {
            client.report("the login worked: its redirect leads to \(proof.path), which shows no login page any more")
            return true
        }
        let page = try await followUp(proof, "check", success.isEmpty && isLikely, &client)
        guard let page else { return false }
        if self.isVerified(by: page.response, reportedBy: client) { return true }
        if page.asksForLogin {
            throw await reject(.rejected, page.response, client, by: "\(proof.path) shows the login page after it")
        }
        guard success.isEmpty else { throw noEvidence(client, answer) }
        let trouble = client.trouble(in: page.response, "check")
        if !hasNewCookies, let trouble { throw trouble }
        if trouble == nil { client.report("the login worked: \(proof.path) shows no login page any more") }
        return trouble == nil
    }

    /// Evaluates the answer to a step with an extraction: known failures, then the login page again, then `success` if
    /// configured. The extracted values are evidence as well, and are checked next. `isShown`: the answer's head has
    /// them.
    func requireSuccess(
        of answer: ExaminedResponse, isShown: Bool, _ client: GatewayClient
    ) async throws(LoginFailure) {
        try await requireNoFailure(answer, client)
        guard try !isVerified(by: answer, client), !isShown else { return }
        try await requireNoRefusal(answer, client)
        guard success.isEmpty else { throw noEvidence(client, answer) }
    }

    /// Requires that the caller's address no longer shows the login page. It is used if the answer has no evidence of
    /// success. A page that is still there proves nothing: the address may always show it. Only a preset's server
    /// refuses with a plain page.
    private func requireOpen(
        _ address: WebURL, _ answer: ExaminedResponse, _ isLikely: Bool, _ client: inout GatewayClient
    ) async throws(LoginFailure) -> Bool {
        guard let page = try await followUp(address, "check", isLikely, &client) else { return false }
        if page.asksForLogin {
            if form.isPreset, (200...299).contains(answer.status) {
                throw await reject(
                    .rejected, page.response, client, by: "\(address.path) shows the login page after it")
            }
            throw noEvidence(client, answer)
        }
        if let trouble = client.trouble(in: page.response, "check") { throw trouble }
        return true
    }

    /// Returns whether a response alone shows that no login is needed: neither a redirect nor a server error.
    private func isSettled(_ response: ExaminedResponse) -> Bool {
        !(300...399).contains(response.status) && !InconclusiveStatus.containsForForm(response.status)
    }

    /// Sends one GET after the form. Returns `nil` if it failed and there is enough evidence without it.
    private func followUp(
        _ address: WebURL, _ step: String, _ isEnough: Bool, following redirects: GatewayClient.Redirects = .all,
        _ client: inout GatewayClient
    ) async throws(LoginFailure) -> GatewayClient.Page? {
        let latest = client.latest
        do throws(LoginFailure) {
            let page = try await client.fetch(address, step, following: redirects)
            // A check is not part of the login: values are taken from the response before.
            if step == "check" { client.restore(latest: latest) }
            return page
        } catch {
            guard isEnough else { throw error }
            return nil
        }
    }

    /// Throws if a matcher of `failed` matches.
    func requireNoFailure(_ response: ExaminedResponse, _ client: GatewayClient) async throws(LoginFailure) {
        var inspection = ResponseInspection(response, ofAnyType: true)
        for failure in failed where inspection.match(failure.matcher) == .matches {
            client.report(
                "the answer matches `failed` by \(failure.matcher.summary): \(failure.cause.rawValue)")
            switch failure.cause {
            case .wrongPassword: throw await reject(.rejected, response, client)
            case .locked: throw await reject(.locked, response, client)
            case .passwordExpired:
                var rejected = await reject(.rejected, response, client)
                rejected.detail = "The password has expired and must be changed at the server first. \(rejected.detail)"
                throw rejected
            case .tooManySessions:
                throw client.failure("The server refuses another session while others exist.", response)
            case .unavailable:
                throw client.failure("The server says that it cannot serve the login at the moment.", response)
            }
        }
    }

    /// Throws for the login page again and for a status that refuses.
    private func requireNoRefusal(_ answer: ExaminedResponse, _ client: GatewayClient) async throws(LoginFailure) {
        if client.asksForLogin(answer) || form.isShownAgain(in: answer) {
            throw await reject(.rejected, answer, client, by: "it is the login page again")
        }
        if answer.status == 401 { throw await reject(.rejected, answer, client, by: "its status is 401") }
        if answer.status == 403 { throw await forbid(answer, client) }
        if let trouble = client.trouble(in: answer, "form") { throw trouble }
    }

    /// Returns the failure for a 403, which may concern the password or the request: protection against forged requests
    /// and rate limits use it too. A value that was accepted here before is sent again after a minute; the next 403
    /// counts as a rejection.
    func forbid(_ answer: ExaminedResponse, _ client: GatewayClient) async -> LoginFailure {
        let remedy =
            "If the status is not about the credential, configure `failed` and `success`, or set `prove-at` to an address "
            + "that needs a session."
        guard use.acceptance(in: client.conversation) != nil else {
            var rejected = await reject(.rejected, answer, client, by: "its status is 403")
            rejected.detail += " The answer to the form had status 403. \(remedy)"
            return rejected
        }
        await use.withdrawAcceptance(in: client.conversation)
        client.report(
            "the answer to the form has status 403, for a value that was accepted before: sent again in a minute")
        var failure = client.failure(
            "The server answered the form with status 403. It has accepted this credential before, so it is sent "
                + "again after a minute; another 403 counts as a rejection. \(remedy)", answer)
        failure.retryAt = max(failure.retryAt ?? 0, client.conversation.now().saturatingAdd(Self.forbiddenPause))
        return failure
    }

    /// The pause before a value is sent again after a 403, in milliseconds.
    private static let forbiddenPause: Int64 = 60_000

    /// Returns whether the answer to the form is evidence of success. Throws if the server is in trouble, since it has
    /// decided nothing then.
    private func isVerified(by answer: ExaminedResponse, _ client: GatewayClient) throws(LoginFailure) -> Bool {
        if answer.status != 400, let trouble = client.trouble(in: answer, "form") { throw trouble }
        return isVerified(by: answer, reportedBy: client)
    }

    /// Returns whether a response has the evidence of `success`, and reports it.
    func isVerified(by response: ExaminedResponse, reportedBy client: GatewayClient) -> Bool {
        var inspection = ResponseInspection(response, ofAnyType: true)
        guard let sign = inspection.first(of: success) else { return false }
        client.report("the login worked: the answer matches `success` by \(sign.summary)")
        return true
    }

    /// Returns the failure of a rejection, and closes the latch. `evidence` is the reason, unless it was reported
    /// before.
    func reject(
        _ reason: Latch.Reason, _ response: ExaminedResponse, _ client: GatewayClient, by evidence: String? = nil
    ) async -> LoginFailure {
        if let evidence { client.report("the answer to the form means a wrong password: \(evidence)") }
        return await use.reject(
            reason, serverWait: Moment.retry(after: response.fields, now: client.conversation.now()),
            in: client.conversation)
    }

    private func noEvidence(_ client: GatewayClient, _ answer: ExaminedResponse) -> LoginFailure {
        client.failure(
            "The server's answer to the form, with status \(answer.status), does not show whether the login worked. "
                + "Configure `success` and `failed`, or set `prove-at` to an address that needs a session.",
            answer)
    }
}
