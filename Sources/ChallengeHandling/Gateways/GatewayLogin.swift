// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

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
    /// The address of the request that waits for the session before any challenge; `nil` if none does.
    public let target: WebURL?
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?

    /// A login.
    public init(
        _ rules: GatewayRules, key: LatchKey, base: WebURL, challenged: WebURL? = nil, target: WebURL? = nil,
        retryRejectedAfter: Duration? = nil
    ) {
        self.rules = rules
        self.key = key
        self.base = base
        self.challenged = challenged
        self.target = target
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Wins a session, or says why not. Submits the form once; whatever is not clearly a success or a rejection is unknown.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.look(up: key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        // Not in the middle of a login: the server might count half of one as an attempt.
        try requireFields(of: use)
        var visit = GatewayVisit(name: key.challenge, conversation: conversation, markers: rules.detect + rules.markers)
        let isNamed = rules.steps.first?.page != nil
        var entrance = try visit.resolve(rules.steps.first?.page, at: challenged ?? base, else: challenged ?? base)
        let needsNoPage = rules.steps.first?.needsNoPage == true
        var page: GatewayVisit.Page
        if needsNoPage {
            page = GatewayVisit.Page(response: ExaminedResponse(status: 200, url: entrance), isMarked: false)
        } else if let target, !isNamed {
            var found = try await visit.search(entrance)
            if found?.isMarked == false, target != entrance {
                entrance = target
                found = try await visit.search(target)
            }
            guard let found, found.isMarked else {
                visit.report("no login page, so there is nothing to add yet")
                return .nothingAsked(at: target, now: conversation.now(), isBrief: found == nil)
            }
            page = found
        } else {
            page = try await visit.open(entrance, "page")
        }
        guard isNamed || needsNoPage || page.isMarked else {
            throw visit.failure(
                "No login page came where one was expected. Name its address by `login.page`, or say by `detect` what "
                    + "tells it.", page.response)
        }
        // The page itself always asks; what was challenged does not any more once the login has worked. Where a token goes
        // along, cookies alone prove nothing.
        let winsToken = rules.steps.contains { !$0.extraction.isEmpty }
        let proof = winsToken ? nil : (isNamed ? challenged : entrance)
        for (number, step) in rules.steps.enumerated() {
            if number > 0, step.page != nil {
                page = try await visit.open(try visit.resolve(step.page, at: base, else: base), "page")
            }
            let form = GatewayForm(step, on: page.response, entrance: entrance)
            let request = try form.request(filledFrom: use, by: visit)
            let (before, sentAt) = (visit.jar, conversation.now())
            let answer = try await visit.send(request, rules.steps.count == 1 ? "form" : "step \(number + 1)")
            let judge = GatewayJudge(
                success: step.success + (number + 1 < rules.steps.count ? [] : rules.success),
                failed: step.failed + rules.failed, use: use)
            if !step.extraction.isEmpty {
                try judge.requireSuccess(of: answer, visit)
                try visit.extract(step.extraction, from: answer, sentAt: sentAt)
                page = GatewayVisit.Page(response: answer, isMarked: false)
            } else if number + 1 < rules.steps.count {
                page = try await judge.proceed(after: answer, on: &visit)
            } else {
                try await judge.conclude(answer, hasNewCookies: visit.jar != before, proof: proof, on: &visit)
            }
        }
        return try session(visit, of: use)
    }

    private func session(_ visit: GatewayVisit, of use: CredentialUse) throws(LoginFailure) -> Session {
        var jar = visit.jar
        for name in rules.passingCookies { jar.remove(name: name) }
        let fields = try fields(use.credential.adding(visit.extracted), visit)
        guard !jar.isEmpty || !fields.isEmpty else {
            throw visit.failure("The login set no cookie, so there is no session that could be used.")
        }
        let end = [jar.isEmpty ? nil : jar.expiresAt, visit.endsAt].compactMap(\.self).min()
        return Session(fields: fields, expiresAt: end, cookies: jar.isEmpty ? nil : SessionCookies(jar))
    }

    private func fields(_ credential: Credential, _ visit: GatewayVisit) throws(LoginFailure) -> [InjectedField] {
        var fields: [InjectedField] = []
        for part in rules.inject {
            guard let name = HTTPField.Name(part.name) else { continue }
            do throws(TemplateError) {
                fields.append(InjectedField(name: name, value: try part.value.render(credential)))
            } catch {
                throw error.loginFailure(challenge: visit.name)
            }
        }
        return fields
    }

    private func requireFields(of use: CredentialUse) throws(LoginFailure) {
        // What an answer will hold counts as there in what comes after it.
        var credential = use.credential
        for step in rules.steps {
            try require(step.parameters + step.headers, of: credential)
            credential = credential.adding(
                Dictionary(step.extraction.parts.map { ($0.name, Secret("")) }, uniquingKeysWith: { $1 }))
        }
        try require(rules.inject, of: credential)
    }

    private func require(_ parts: [GatewayStep.Part], of credential: Credential) throws(LoginFailure) {
        for part in parts {
            do throws(TemplateError) {
                try part.value.check(credential)
            } catch {
                throw error.loginFailure(challenge: key.challenge)
            }
        }
    }
}
