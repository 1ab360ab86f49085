// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Login at an identity provider for an upstream that sends its users there (`login.through`).
///
/// It follows redirects and forms that submit themselves, as a browser would, and fills in the login form of the
/// provider. The session consists of the upstream's cookies only; the provider's cookies are used by the next login
/// there.
package struct SignOnLogin: SessionLogin {
    private let gateway: GatewayLogin
    private let route: SignOnRoute
    private let sessions: SignOnSessions

    /// Creates the login of `gateway`, which has the rules, the addresses and the credential of the upstream.
    package init(_ gateway: GatewayLogin, on route: SignOnRoute, _ sessions: SignOnSessions) {
        self.gateway = gateway
        self.route = route
        self.sessions = sessions
    }

    /// Establishes a session. The credential is sent once, and only if the provider asks for it.
    package func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use: CredentialUse
        do throws(LoginFailure) {
            use = try await CredentialUse.lookUp(
                gateway.key, retryRejectedAfter: gateway.retryRejectedAfter, in: conversation)
            try sessions.requireOpenLatches(for: use, in: conversation)
            try use.requireBudget(in: conversation)
            try await gateway.requireFields(of: use)
        } catch {
            // A waiting request may continue if certainly no login is needed.
            var client = upstreamClient(conversation)
            if gateway.target != nil, !gateway.isPageConfigured,
                case .nothingAsked(let session, isCertain: true) = try await gateway.findLoginPage(&client)
            {
                return session
            }
            throw error
        }
        return try await sessions.inTurn(gateway.key.challenge) { () async throws(LoginFailure) in
            // The login before may have been rejected.
            try sessions.requireOpenLatches(for: use, in: conversation)
            var visit = SignOnVisit(
                gateway, use,
                SignOnClient(route, cookies: sessions.cookies(of: use.credential)) { upstreamClient(conversation) },
                route)
            do throws(LoginFailure) {
                let session = try await visit.run()
                sessions.keep(visit.client.jars, of: use.credential)
                return session
            } catch {
                if visit.hasBegun { sessions.forget() }
                throw error
            }
        }
    }

    /// Requests `prove-at` or the upstream's address with the session: a redirect to the provider ends it.
    package func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        await GatewayConfirmation(
            address: gateway.proof ?? gateway.base, isVerifying: gateway.proof != nil, name: gateway.key.challenge,
            isChallenge: asksForLogin
        ).run(held, conversation)
    }

    private func upstreamClient(_ conversation: Conversation) -> GatewayClient {
        GatewayClient(
            name: gateway.key.challenge, conversation: conversation, timeout: gateway.timeout,
            asksForLogin: asksForLogin)
    }

    private func asksForLogin(_ response: ExaminedResponse) -> Bool {
        route.leadsToProvider(response) || gateway.asksForLogin(response)
    }
}

/// One pass through a single sign-on, from the upstream to the provider and back.
private struct SignOnVisit {
    private let gateway: GatewayLogin
    private let use: CredentialUse
    private let route: SignOnRoute
    private(set) var client: SignOnClient
    /// True if a provider was visited.
    private(set) var hasBegun = false
    /// Number of steps whose form was submitted.
    private var submitted = 0
    /// The evaluator of the answers to the last form, until the login leaves the provider.
    private var evaluator: FormAnswerEvaluator?
    /// The form of the first step.
    private var firstForm: GatewayForm?
    /// True if an answer had the evidence of `success`.
    private var isVerified = false

    init(_ gateway: GatewayLogin, _ use: CredentialUse, _ client: SignOnClient, _ route: SignOnRoute) {
        self.gateway = gateway
        self.use = use
        self.client = client
        self.route = route
    }

    mutating func run() async throws(LoginFailure) -> Session {
        let beginning: LoginPage
        var upstream = try client.client(at: gateway.base)
        switch try await find(&upstream) {
        case .found(let page): beginning = page
        case .nothingAsked(let session, _): return session
        case .notFound(let miss):
            throw upstream.pageNotFound(
                miss,
                "No address of the upstream leads to a server in `through`. Set `prove-at` to one that needs a session, or "
                    + "`login.page` to the one that begins the sign-on.")
        }
        client.replaceUpstream(upstream)
        let landed = try await signOn(from: beginning.page.response)
        try await verify(landed, from: beginning)
        var session = try await gateway.session(try client.client(at: gateway.base), of: use)
        session.isRenewedAhead = !beginning.isCallers
        if submitted > 0 { await use.accept(by: firstForm?.formToRecord, in: upstream.conversation) }
        return session
    }

    /// Finds the address at which the upstream leads to a provider. A configured page may be the provider's own.
    private mutating func find(_ upstream: inout GatewayClient) async throws(LoginFailure) -> LoginPageSearch.Outcome {
        guard let page = gateway.rules.steps.first?.page else { return try await gateway.findLoginPage(&upstream) }
        let address = try upstream.resolve(page, at: gateway.base, else: gateway.base)
        let start = ExaminedResponse(status: 200, url: gateway.base)
        let response = try await client.follow(address, from: start)
        upstream = try client.client(at: gateway.base)
        return .found(LoginPage(address: address, source: .named, page: .init(response: response, asksForLogin: true)))
    }

    /// Follows the pages until one of the upstream's leads nowhere else, and returns that page.
    private mutating func signOn(from first: ExaminedResponse) async throws(LoginFailure) -> ExaminedResponse {
        var response = first
        // The client limits the number of requests.
        while true {
            let isAtProvider = route.providers.contains(response.url.origin)
            hasBegun = hasBegun || isAtProvider
            try await evaluate(response, isAtProvider: isAtProvider)
            if let next = GatewayClient.redirect(in: response) {
                response = try await client.follow(next, from: response)
            } else if isAtProvider, let step = nextStep(on: response) {
                response = try await fillIn(step, on: response)
            } else if let message = isAtProvider
                ? SelfSubmittingForm(on: response.body ?? []) : route.formToProvider(on: response)
            {
                response = try await client.submit(message, on: response)
            } else if isAtProvider {
                throw try client.client(at: response.url).failure(
                    "The page \(response.url.path) of \(response.url.origin) has neither a login form nor a form that submits "
                        + "itself (status \(response.status)). If it asks for a decision, make that once in a browser; if the form "
                        + "has other fields, configure `login.parameters`.", response)
            } else {
                return response
            }
        }
    }

    /// Evaluates a response: trouble, and the answers to the form.
    private mutating func evaluate(_ response: ExaminedResponse, isAtProvider: Bool) async throws(LoginFailure) {
        let client = try client.client(at: response.url)
        if isAtProvider, var evaluator {
            isVerified = try await evaluator.judge(response, client) || isVerified
            self.evaluator = evaluator
        } else {
            // After the provider has accepted the user, the upstream's answers do not concern the password.
            evaluator = nil
        }
        if let trouble = client.trouble(in: response, "request at \(response.url.origin)\(response.url.path)") {
            throw trouble
        }
    }

    /// The step whose form the provider's page shows; `nil` if there is none, or if all were submitted.
    private func nextStep(on page: ExaminedResponse) -> GatewayStep? {
        guard submitted < gateway.rules.steps.count, let body = page.body else { return nil }
        let step = gateway.rules.steps[submitted]
        let html = HTMLPage(parsing: body)
        if step.fillsPasswordForm { return html.passwordForm == nil ? nil : step }
        let names = step.parameters.map(\.name)
        return html.forms.contains { form in names.contains { form.hasInput(named: $0) } } ? step : nil
    }

    /// Fills in a form of the provider's page, and submits it.
    private mutating func fillIn(
        _ step: GatewayStep, on page: ExaminedResponse
    ) async throws(LoginFailure) -> ExaminedResponse {
        let provider = try client.client(at: page.url)
        // The provider's page chooses the form's address, so the address must stay the same.
        let shown = LoginPage(
            address: page.url, source: submitted == 0 ? .configured : .named,
            page: .init(response: page, asksForLogin: true))
        let form = GatewayForm(
            step, on: page,
            policy: FormActionPolicy(
                base: page.url, loginPage: shown,
                accepted: submitted == 0 ? acceptedForm(at: page.url.origin, provider) : nil))
        let request = try await form.request(filledFrom: use, by: provider)
        if let objection = route.objection(toFillingIn: request.url, on: page.url) { throw provider.failure(objection) }
        if submitted == 0 { try await use.submit(in: provider.conversation) }
        submitted += 1
        if submitted == 1 { firstForm = form }
        evaluator = FormAnswerEvaluator(
            use: use, faults: form.faults(of: use),
            sources: FormEvidence(
                success: step.success + gateway.rules.success, failed: step.failed + gateway.rules.failed, form: form,
                loginPage: shown, asksForLogin: { _ in false }))
        do throws(LoginFailure) {
            return try await client.send(request, "form", from: page.url)
        } catch {
            if submitted == 1, error.isUnsent { await use.withdrawSubmission(in: provider.conversation) }
            throw error
        }
    }

    /// Returns the form of this provider with which the credential was accepted last, by any challenge.
    private func acceptedForm(at origin: Origin, _ client: GatewayClient) -> AcceptedForm? {
        client.conversation.attempts.acceptedForms(ofCredential: use.key.credential).last { $0.form.origin == origin }?
            .form
    }

    /// Verifies that the upstream accepts the user: at the page where the sign-on ended, and at `prove-at`.
    private mutating func verify(_ landed: ExaminedResponse, from beginning: LoginPage) async throws(LoginFailure) {
        var page = landed
        if let proof = gateway.proof, proof.path != landed.url.path {
            page = try await client.follow(proof, from: ExaminedResponse(status: 200, url: gateway.base))
            while let next = GatewayClient.redirectWithinOrigin(in: page) {
                page = try await client.follow(next, from: page)
            }
        }
        let client = try client.client(at: gateway.base)
        if let trouble = client.trouble(in: page, "check after the sign-on") { throw trouble }
        let isOpen = page.status != 401 && !client.asksForLogin(page)
        guard isOpen, isVerified || gateway.rules.success.isEmpty || submitted == 0 else {
            throw client.failure(
                "After the sign-on, the upstream answers \(page.url.path) with status \(page.status), which does not show that it "
                    + "lets the user in. Check what the upstream's log says, and `success`, if it is configured.", page)
        }
    }
}

/// Detector of an upstream's demand for single sign-on.
///
/// A redirect to a provider is the challenge, with any method of the request: the upstream has executed nothing. A form
/// that submits itself there is one as well, and so is a 401, with which upstreams answer programs.
package struct SignOnDetector: ChallengeDetector {
    /// The name that `explain` shows.
    package let kind: String
    /// Filter of redirects, pages, and all responses that the gateway's own matchers need.
    package let filter: ResponseFilter
    private let route: SignOnRoute
    private let gateway: GatewayDetector

    /// Creates a detector for `route` and for the matchers of `rules`.
    package init(_ route: SignOnRoute, _ rules: GatewayRules, kind: String) {
        self.route = route
        self.kind = kind
        gateway = GatewayDetector(rules, kind: kind)
        filter = gateway.filter.union(ResponseFilter([Self.redirect, Self.request]))
    }

    /// Returns a challenge for a response that leads to a provider.
    package func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard !route.providers.isEmpty else { return .pass }
        if response.status == 401 || route.redirectToProvider(in: response) != nil { return .challenged() }
        if !(300...399).contains(response.status) {
            // A browser shows no page of a redirect.
            var inspection = ResponseInspection(response)
            switch inspection.match(Self.request) {
            case .matches: if route.leadsToProvider(response) { return .challenged() }
            case .needsBody: return .needsBody
            case .doesNot: break
            }
        }
        return gateway.examine(response, hasSession: hasSession)
    }

    private static let redirect = ResponseMatcher(statuses: [301, 302, 303, 307, 308])
    /// A page with a form of SAML's POST binding.
    private static let request = ResponseMatcher(formFields: ["SAMLRequest"])
}
