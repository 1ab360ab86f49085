// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One pass through a single sign-on, from the upstream to the provider and back.
///
/// A form is filled in only if the visit began without the provider's session: whoever has a session and leads the visit
/// to a page that asks for the password again would have an action of the provider confirmed (CONTRIBUTING, rule 11).
struct SignOnVisit {
    /// The form that was submitted last.
    private enum Submission {
        case none
        /// The provider's answers tell whether it accepts the credential. `isVerified`: one had evidence of success.
        case pending(FormAnswerEvaluator, isVerified: Bool)
        /// The provider has let the user go: nothing concerns the credential any more.
        case over(success: [ResponseMatcher])
    }

    /// Beginning of the visit.
    private enum Entrance {
        case page(ExaminedResponse, isCallers: Bool)
        case configured(SignOnMove)
        /// No login is needed.
        case open(Session)
    }

    private let gateway: GatewayLogin
    private let use: CredentialUse
    private let route: SignOnRoute
    private let sessions: SignOnSessions
    private let conversation: Conversation
    /// False if the visit begins without the provider's session in any case.
    private let usesSession: Bool
    private var client: SignOnClient
    /// True if a provider was visited.
    private var hasBegun = false
    /// True if the providers know the user by cookies, those of an earlier login or of this one.
    private var isInSession = false
    /// Number of steps whose form was submitted.
    private var submitted = 0
    private var submission = Submission.none
    /// The form of the first step.
    private var firstForm: AcceptedForm?
    /// True if an answer had the evidence of `success`.
    private var isVerified = false

    /// Creates a visit. `makeClient` creates the client of one origin.
    init(
        _ gateway: GatewayLogin, _ use: CredentialUse, _ route: SignOnRoute, _ sessions: SignOnSessions,
        _ conversation: Conversation, usesSession: Bool, makeClient: () -> GatewayClient
    ) {
        self.gateway = gateway
        self.use = use
        self.route = route
        self.sessions = sessions
        self.conversation = conversation
        self.usesSession = usesSession
        client = SignOnClient(route, make: makeClient)
    }

    /// Returns the upstream's session; `nil` if a provider showed a form in a session, which is forgotten then.
    mutating func run() async throws(LoginFailure) -> Session? {
        do throws(LoginFailure) {
            return try await establish()
        } catch {
            // The session may be the cause, but only for this upstream.
            if isInSession, submitted == 0 { sessions.avoid() }
            throw error
        }
    }

    private mutating func establish() async throws(LoginFailure) -> Session? {
        let landed: ExaminedResponse?
        var isCallers = false
        switch try await enter() {
        case .open(let session): return session
        case .page(let page, let chosenByCaller):
            isCallers = chosenByCaller
            landed = try await signOn(from: page)
        case .configured(let move):
            guard let page = try await perform(move) else { return nil }
            landed = try await signOn(from: page)
        }
        guard let landed else { return nil }
        try await verify(landed)
        var session = try await gateway.session(try client.client(at: gateway.base), of: use)
        session.isRenewedAhead = !isCallers
        if submitted > 0 { await use.accept(by: firstForm, in: conversation) }
        return session
    }

    /// Finds the address at which the upstream leads to a provider. A configured page may be the provider's own.
    private mutating func enter() async throws(LoginFailure) -> Entrance {
        var upstream = try client.client(at: gateway.base)
        if let page = gateway.rules.steps.first?.page {
            let address = try upstream.resolve(page, at: gateway.base, else: gateway.base)
            return .configured(client.move(to: address, configuredAt: gateway.base))
        }
        switch try await gateway.findLoginPage(&upstream) {
        case .found(let found):
            client.replaceUpstream(upstream)
            return .page(found.page.response, isCallers: found.isCallers)
        case .nothingAsked(let session, _): return .open(session)
        case .notFound(let miss):
            throw upstream.pageNotFound(
                miss,
                "No address of the upstream leads to a server in `through`. Set `prove-at` to one that needs a session, or "
                    + "`login.page` to the one that begins the sign-on.")
        }
    }

    /// Follows the upstream's pages until one leads nowhere else. Returns that page; `nil` as `run` does.
    private mutating func signOn(from first: ExaminedResponse) async throws(LoginFailure) -> ExaminedResponse? {
        var page = first
        // The client limits the number of requests.
        while true {
            let move: SignOnMove
            if let next = page.redirectTarget {
                move = try client.move(to: next, redirectedBy: page)
            } else if let message = route.formToProvider(on: page) {
                if !message.omitted.isEmpty {
                    let names = message.omitted.map(ServerText.name).joined(separator: ", ")
                    client.report("inputs that are no part of a SAML request are not sent: \(names)")
                }
                move = try client.move(submitting: message.form, on: page)
            } else {
                return page
            }
            guard let next = try await perform(move) else { return nil }
            page = next
        }
    }

    /// Sends the request of `move`, passes through the providers if it leads there, and returns the upstream's page.
    private mutating func perform(_ move: SignOnMove) async throws(LoginFailure) -> ExaminedResponse? {
        var move = move
        if route.providers.contains(move.target) {
            guard let back = try await passProviders(move) else { return nil }
            move = back
        }
        let page = try await client.send(move)
        let upstream = try client.client(at: page.url)
        if case .over(let success) = submission, !isVerified {
            var inspection = ResponseInspection(page, ofAnyType: true)
            isVerified = inspection.first(of: success) != nil
        }
        if let trouble = upstream.trouble(in: page, "request at \(page.url.origin)\(page.url.path)") { throw trouble }
        return page
    }

    /// Verifies that the upstream accepts the user: at the page where the sign-on ended, and at `prove-at`.
    private mutating func verify(_ landed: ExaminedResponse) async throws(LoginFailure) {
        var page = landed
        if let proof = gateway.proof, proof.path != landed.url.path {
            page = try await client.send(client.move(to: proof, configuredAt: gateway.base))
            while let next = GatewayClient.redirectWithinOrigin(in: page) {
                page = try await client.send(try client.move(to: next, redirectedBy: page))
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

// The provider's part, in the turn of this login. The upstream's part needs no turn: an upstream that hangs does not delay
// the logins of others.
extension SignOnVisit {
    /// Passes through the providers. Returns the request that leads back to the upstream; `nil` as `run` does.
    private mutating func passProviders(_ arrival: SignOnMove) async throws(LoginFailure) -> SignOnMove? {
        try await sessions.inTurn(conversation) { () async throws(LoginFailure) in
            // The login before may have been rejected.
            try sessions.requireOpenLatches(for: use, in: conversation)
            if isInSession || !hasBegun && usesSession {
                // Another login may have renewed the session since.
                let kept = sessions.cookies(of: use.credential)
                client.begin(with: kept)
                isInSession = isInSession || !kept.isEmpty
            }
            hasBegun = true
            guard let back = try await visitProviders(arrival) else { return nil }
            if case .pending(let evaluator, _) = submission { submission = .over(success: evaluator.success) }
            if isInSession || submitted > 0 {
                sessions.keep(client.jars, of: use.credential)
                isInSession = true
            }
            return back
        }
    }

    private mutating func visitProviders(_ arrival: SignOnMove) async throws(LoginFailure) -> SignOnMove? {
        var move = arrival
        while move.target != route.upstream {
            let page = try await send(move)
            try await judge(page)
            if let next = page.redirectTarget {
                move = try client.move(to: next, redirectedBy: page)
            } else if !isInSession, let step = nextStep(on: page) {
                move = try await fillIn(step, on: page)
            } else if isInSession, submitted == 0, asksForCredential(page) {
                client.report(
                    "\(page.url.path) of \(page.url.origin) has a form in the session of an earlier login: the sign-on begins "
                        + "anew without that session")
                sessions.forget()
                return nil
            } else if let message = SelfSubmittingForm(page) {
                move = try client.move(submitting: message, on: page)
            } else if let refresh = PageRefresh(of: page) {
                move = try client.move(to: refresh.target, redirectedBy: page)
            } else {
                throw try client.client(at: page.url).failure(
                    "The page \(page.url.path) of \(page.url.origin) has neither a login form nor a form that submits "
                        + "itself (status \(page.status)). If it asks for a decision, make that once in a browser; if the form "
                        + "has other fields, configure `login.parameters`.", page)
            }
        }
        return move
    }

    /// Sends a request. The form of the first step is a submission, unless it certainly did not reach the provider.
    private mutating func send(_ move: SignOnMove) async throws(LoginFailure) -> ExaminedResponse {
        do throws(LoginFailure) {
            return try await client.send(move)
        } catch {
            if submitted == 1, move.step == "form", error.isUnsent {
                await use.withdrawSubmission(in: conversation)
            }
            throw error
        }
    }

    /// Evaluates a provider's answer. After a submission, no other answers judge the credential (CONTRIBUTING, rule 11).
    private mutating func judge(_ answer: ExaminedResponse) async throws(LoginFailure) {
        let provider = try client.client(at: answer.url)
        if case .pending(var evaluator, isVerified: false) = submission {
            let isAccepted = try await evaluator.judge(answer, provider)
            isVerified = isVerified || isAccepted
            submission = .pending(evaluator, isVerified: isAccepted)
        }
        if let trouble = provider.trouble(in: answer, "request at \(answer.url.origin)\(answer.url.path)") {
            throw trouble
        }
    }

    /// The step whose form the provider's page shows; `nil` if there is none, or if all were submitted.
    private func nextStep(on page: ExaminedResponse) -> GatewayStep? {
        guard submitted < gateway.rules.steps.count, page.body != nil else { return nil }
        let step = gateway.rules.steps[submitted]
        let html = HTMLPage(page)
        if step.fillsPasswordForm { return html.passwordForm == nil ? nil : step }
        let names = step.parameters.map(\.name)
        return html.forms.contains { form in names.contains { form.hasInput(named: $0) } } ? step : nil
    }

    /// Returns whether a page has the form of the next step, or any form with a password.
    private func asksForCredential(_ page: ExaminedResponse) -> Bool {
        if nextStep(on: page) != nil { return true }
        return HTMLPage(page).forms.contains { $0.inputs.contains { $0.type == "password" } }
    }

    /// Returns the request that submits a form of the provider's page, filled in.
    private mutating func fillIn(_ step: GatewayStep, on page: ExaminedResponse) async throws(LoginFailure)
        -> SignOnMove
    {
        let provider = try client.client(at: page.url)
        let isFirst = submitted == 0
        // The provider's page chooses the form's address, so the address must stay the same.
        let shown = LoginPage(
            address: page.url, source: isFirst ? .configured : .named, page: .init(response: page, asksForLogin: true))
        let form = GatewayForm(
            step, on: page,
            policy: FormActionPolicy(
                base: page.url, loginPage: shown,
                accepted: isFirst ? acceptedForm(at: page.url.origin) : nil))
        let request = try await form.request(filledFrom: use, by: provider)
        if let objection = route.objection(toFillingIn: request.url, on: page.url) { throw provider.failure(objection) }
        if isFirst { try await use.submit(in: conversation) }
        submitted += 1
        if isFirst { firstForm = form.formToRecord }
        let evaluator = FormAnswerEvaluator(
            use: use, faults: form.faults(of: use),
            sources: FormEvidence(
                success: step.success + gateway.rules.success, failed: step.failed + gateway.rules.failed, form: form,
                loginPage: shown, asksForLogin: { _ in false }))
        submission = .pending(evaluator, isVerified: false)
        return SignOnMove(.form, request, "form", from: page.url)
    }

    /// Returns the form of this provider with which the credential was accepted last, by any challenge.
    private func acceptedForm(at origin: Origin) -> AcceptedForm? {
        conversation.attempts.acceptedForms(ofCredential: use.key.credential).last { $0.form.origin == origin }?.form
    }
}
