// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Wins a session at a gateway: fetches the login page, submits its form, and makes sure that nobody is asked any more.
public struct GatewayLogin: SessionLogin {
    /// What is known of the gateway.
    public let rules: GatewayRules
    /// The challenge, the credential, and the upstream's origin.
    public let key: LatchKey
    /// The upstream's address, which a page's address is relative to and which is asked for where none was challenged.
    public let base: WebURL
    /// The address that was answered by the login page; `nil` ahead of any.
    public let challenged: WebURL?
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?

    /// A login.
    public init(
        _ rules: GatewayRules, key: LatchKey, base: WebURL, challenged: WebURL? = nil,
        retryRejectedAfter: Duration? = nil
    ) {
        self.rules = rules
        self.key = key
        self.base = base
        self.challenged = challenged
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Wins a session, or says why not. Submits the form once; whatever is not clearly a success or a rejection is unknown.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.look(up: key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        // Not in the middle of a login: the server might count half of one as an attempt.
        try requireFields(of: use)
        var visit = GatewayVisit(name: key.challenge, conversation: conversation, markers: rules.detect + rules.markers)
        let isNamed = rules.steps.first?.page != nil
        let entrance = try visit.resolve(rules.steps.first?.page, at: challenged ?? base, else: challenged ?? base)
        var page = try await visit.open(entrance, "page")
        guard isNamed || page.isMarked else {
            throw visit.failure(
                "No login page came where one was expected. Name its address by `login.page`, or say by `detect` what "
                    + "tells it.", page.response)
        }
        // The page itself always asks; what was challenged does not any more once the login has worked.
        let proof = isNamed ? challenged : entrance
        for (number, step) in rules.steps.enumerated() {
            if number > 0, step.page != nil {
                page = try await visit.open(try visit.resolve(step.page, at: base, else: base), "page")
            }
            let form = GatewayForm(step, on: page.response, entrance: entrance)
            let request = try form.request(filledFrom: use, by: visit)
            let before = visit.jar
            let answer = try await visit.send(request, rules.steps.count == 1 ? "form" : "step \(number + 1)")
            let judge = GatewayJudge(
                success: step.success + (number + 1 < rules.steps.count ? [] : rules.success),
                failed: step.failed + rules.failed, use: use)
            if number + 1 < rules.steps.count {
                page = try await judge.proceed(after: answer, on: &visit)
            } else {
                try await judge.conclude(answer, hasNewCookies: visit.jar != before, proof: proof, on: &visit)
            }
        }
        return try session(visit)
    }

    private func session(_ visit: GatewayVisit) throws(LoginFailure) -> Session {
        var jar = visit.jar
        for name in rules.passingCookies { jar.remove(name: name) }
        guard !jar.isEmpty else {
            throw visit.failure("The login set no cookie, so there is no session that could be used.")
        }
        return Session(expiresAt: jar.expiresAt, cookies: SessionCookies(jar))
    }

    private func requireFields(of use: CredentialUse) throws(LoginFailure) {
        for step in rules.steps {
            for part in step.parameters + step.headers {
                do throws(TemplateError) {
                    try part.value.check(use.credential)
                } catch {
                    throw error.loginFailure(challenge: key.challenge)
                }
            }
        }
    }
}
