// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Login at a gateway: fetches the login page, submits its form, and verifies the session.
public struct GatewayLogin: SessionLogin {
    /// The gateway's rules.
    public let rules: GatewayRules
    /// The challenge, the credential, and the upstream's origin.
    public let key: LatchKey
    /// The upstream's address: the base of a page's address, and of the search for the login page.
    public let base: WebURL
    /// The address that every accepted user may GET (`prove-at`); `nil` if not configured.
    public let proof: WebURL?
    /// The address that was answered with the login page; `nil` before any challenge. It is requested, without its
    /// query, only if no configured address shows the page.
    public let challenged: WebURL?
    /// The address of the request that waits for the session before any challenge. `nil` if no request waits.
    public let target: WebURL?
    /// Time after which a latch closed by a rejection opens by itself; `nil` if it never does.
    public let retryRejectedAfter: Duration?

    /// Creates a login.
    public init(
        _ rules: GatewayRules, key: LatchKey, base: WebURL, proof: WebURL? = nil, challenged: WebURL? = nil,
        target: WebURL? = nil, retryRejectedAfter: Duration? = nil
    ) {
        self.rules = rules
        self.key = key
        self.base = base
        self.proof = proof
        self.challenged = challenged
        self.target = target
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Establishes a session. Submits the form once, from a visit that begins without cookies; an answer that is neither clearly
    /// a success nor a rejection leaves the outcome unknown.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var client = GatewayClient(
            name: key.challenge, conversation: conversation, timeout: timeout, asksForLogin: asksForLogin)
        let use: CredentialUse
        do throws(LoginFailure) {
            use = try await CredentialUse.lookUp(key, retryRejectedAfter: retryRejectedAfter, in: conversation)
            try use.requireBudget(in: conversation)
            // Checked before the login: a server might count half a login as an attempt.
            try await requireFields(of: use)
        } catch {
            // A waiting request may continue if certainly no login is needed.
            if target != nil, !isPageConfigured,
                case .nothingAsked(let session, isCertain: true) = try await findLoginPage(&client)
            {
                return session
            }
            throw error
        }
        let loginPage: LoginPage
        switch try await findLoginPage(&client) {
        case .found(let found):
            loginPage = found
            reportSign(of: found.page.response, client)
        case .nothingAsked(let session, _): return session
        case .notFound(let miss): throw client.pageNotFound(miss)
        }
        var page = loginPage.page
        var submitted: AcceptedForm?
        var isShown = false
        let accepted = conversation.attempts.acceptedForms(ofCredential: key.credential).last {
            $0.key == key
        }?.form
        for (number, step) in rules.steps.enumerated() {
            if number > 0, step.page != nil {
                page = try await client.open(try client.resolve(step.page, at: base, else: base), "page")
            }
            // Later pages are answers to a submission; no caller chose them.
            let policy = FormActionPolicy(
                base: base, loginPage: loginPage.leading(to: page, isFirst: number == 0),
                accepted: number == 0 ? accepted : nil)
            let form = GatewayForm(step, on: page.response, policy: policy)
            let request = try await form.request(filledFrom: use, by: client)
            if number == 0 { submitted = form.formToRecord }
            if number == 0 {
                try await use.submit(in: conversation)
            } else {
                try use.requireOpenLatch(in: conversation)
            }
            let (before, sentAt) = (client.jar, conversation.now())
            let answer = try await client.submit(
                request, rules.steps.count == 1 ? "form" : "step \(number + 1)", isFirst: number == 0, of: use)
            var evaluator = FormAnswerEvaluator(
                use: use, faults: form.faults(of: use),
                sources: FormEvidence(
                    success: step.success + (number + 1 < rules.steps.count ? [] : rules.success),
                    failed: step.failed + rules.failed, form: form,
                    loginPage: loginPage.leading(to: page, isFirst: number == 0), asksForLogin: asksForLogin))
            if step.provesByExtraction {
                try await evaluator.requireSuccess(
                    of: answer, isShown: client.hasValues(of: step.extraction, in: answer), client)
                try client.extract(step.extraction, from: answer, sentAt: sentAt)
                page = GatewayClient.Page(response: answer)
                isShown = true
            } else if number + 1 < rules.steps.count {
                page = try await evaluator.proceed(after: answer, on: &client)
            } else {
                isShown = try await evaluator.conclude(
                    answer, hasNewCookies: client.jar.hasMore(than: before), proof: verificationAddress(loginPage),
                    on: &client)
            }
            if !step.extraction.isEmpty, !step.provesByExtraction, let latest = client.latest {
                try client.extract(step.extraction, from: latest, sentAt: sentAt)
            }
        }
        var session = try await self.session(client, of: use)
        // Without a challenge the address of its page is unknown.
        session.isRenewedAhead = !loginPage.isCallers
        if isShown {
            await use.accept(by: submitted, in: conversation)
        } else if !use.key.credential.isEmpty {
            session.submission = UnverifiedSubmission(
                use: use, form: submitted, askedAt: loginPage.isCallers ? loginPage.address.path : nil)
        }
        return session
    }

    /// Returns whether a response asks for a login.
    func asksForLogin(_ response: ExaminedResponse) -> Bool {
        var inspection = ResponseInspection(response)
        return inspection.matchAny(rules.detect + rules.markers) == .matches
    }

    /// Reports the property that identified the login page; nothing for a configured page without one.
    private func reportSign(of page: ExaminedResponse, _ client: GatewayClient) {
        var inspection = ResponseInspection(page)
        guard let sign = inspection.first(of: rules.detect + rules.markers) else { return }
        client.report("the login page is \(page.url.path), by \(sign.summary)")
    }

    /// Returns the configured address that shows the login page only without a session. A configured page always asks
    /// for a login, and if a token is needed, cookies alone prove nothing.
    private func verificationAddress(_ loginPage: LoginPage) -> LoginProof? {
        guard !rules.steps.contains(where: \.provesByExtraction) else { return nil }
        if let proof {
            return LoginProof(
                address: proof, isConfigured: true, found: proof == loginPage.address ? loginPage : nil)
        }
        return switch loginPage.source {
        case .configured: LoginProof(address: loginPage.address, isConfigured: false, found: loginPage)
        case .named:
            base == loginPage.address ? nil : LoginProof(address: base, isConfigured: false, found: nil)
        case .challenged: nil
        }
    }

    /// The timeout for pages: that of the slowest step.
    var timeout: Duration { rules.steps.map(\.timeout).max() ?? .seconds(10) }

    /// True if the login page needs no search.
    var isPageConfigured: Bool { rules.steps.first.map { $0.page != nil || $0.needsNoPage } ?? false }

    /// Finds the login page: at the configured page, at `prove-at`, at the upstream's address, and only then at the
    /// caller's address.
    func findLoginPage(_ client: inout GatewayClient) async throws(LoginFailure) -> LoginPageSearch.Outcome {
        guard let first = rules.steps.first, isPageConfigured else {
            return try await LoginPageSearch(
                configured: (proof.map { [$0] } ?? []) + [base], origin: base.origin, challenged: challenged,
                target: target
            ).run(on: &client)
        }
        let address = try client.resolve(first.page, at: base, else: base)
        let page =
            first.needsNoPage
            ? GatewayClient.Page(response: ExaminedResponse(status: 200, url: address))
            : try await client.open(address, "page")
        return .found(LoginPage(address: address, source: .named, page: page))
    }

    /// Returns the session of the client's cookies and of extracted values.
    func session(_ client: GatewayClient, of use: CredentialUse) async throws(LoginFailure) -> Session {
        let jar = client.cookies(passing: rules.callerCookies, dropping: rules.passingCookies)
        let injected = try await injectedFields(use.credential.adding(client.extracted), client)
        guard jar.hasOwn || !injected.isEmpty else {
            throw client.failure(
                jar.isEmpty
                    ? "The login set no cookie, so there is no usable session."
                    : "The login set only cookies that `cookies.pass` gives to callers, so there is no usable "
                        + "session.")
        }
        var session = client.session(jar, fields: injected.constant)
        session.signer = injected.signer
        return session
    }

    /// Returns the fields of `inject`, made from `credential` and from the data that the client has received.
    func injectedFields(
        _ credential: Credential, _ client: GatewayClient
    ) async throws(LoginFailure) -> InjectedFields {
        do throws(TemplateError) {
            let received = client.received(with: client.latest, for: base)
            return try await InjectedFields(rules.inject, credential, received: received.value)
        } catch {
            throw error.loginFailure(challenge: client.name)
        }
    }

    /// Throws if the credential lacks a field that a step needs.
    func requireFields(of use: CredentialUse) async throws(LoginFailure) {
        // A value to be extracted counts as present in later steps.
        var credential = use.credential
        for step in rules.steps {
            try await require((step.parameters + step.headers).map(\.value), of: credential)
            if let names = step.document?.fieldNames {
                for name in names where credential[name] == nil {
                    throw TemplateError.fieldMissing(field: name, credential: credential.name).loginFailure(
                        challenge: key.challenge)
                }
            }
            if step.fillsPasswordForm { _ = try use.field("password") }
            credential = credential.adding(
                Dictionary(step.extraction.parts.map { ($0.name, Secret("")) }, uniquingKeysWith: { $1 }))
        }
        try await require(rules.inject.map(\.value), of: credential)
    }

    private func require(_ templates: [TextTemplate], of credential: Credential) async throws(LoginFailure) {
        for template in templates {
            do throws(TemplateError) {
                try await template.check(credential)
            } catch {
                throw error.loginFailure(challenge: key.challenge)
            }
        }
    }
}

// A login page in spite of a session that worked may concern that page alone: some pages always contain the form, and
// some users may not see all pages.
extension GatewayLogin {
    /// Requests `prove-at` with the session, or the upstream's address with and without it.
    public func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        await GatewayConfirmation(
            address: proof ?? base, isVerifying: proof != nil, name: key.challenge, isChallenge: asksForLogin
        ).run(held, conversation)
    }
}
