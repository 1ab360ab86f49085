// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Login at a gateway whose page only scripts can fill in: a helper logs in, and its cookies or fields are the session.
struct HelperLogin: SessionLogin {
    /// The gateway's rules, addresses and keys; its steps are not used.
    let gateway: GatewayLogin
    let helper: LoginHelper
    /// The configured address of the login page; nil to search for the page.
    let page: WebURL?
    /// The port that runs helpers.
    let helpers: any LoginHelpers

    /// Establishes a session by one run of the helper. Only the helper's own words, or the login page at a configured
    /// address, count as a rejection.
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var client = GatewayClient(
            name: name, conversation: conversation, asksForLogin: gateway.asksForLogin)
        let use: CredentialUse
        do throws(LoginFailure) {
            use = try await CredentialUse.lookUp(
                gateway.key, retryRejectedAfter: gateway.retryRejectedAfter, in: conversation)
            try use.requireBudget(in: conversation)
        } catch {
            // A waiting request may continue if certainly no login is needed.
            if gateway.target != nil, page == nil,
                case .nothingAsked(let session, isCertain: true) = try await findLoginPage(&client)
            {
                return session
            }
            throw error
        }
        let address: WebURL
        switch try await findLoginPage(&client) {
        case .found(let found) where found.isCallers:
            // The scripts of a page that another person put there could send the typed secrets elsewhere.
            throw client.failure(
                "The login page is shown at no configured address, and a helper opens no other. Set `login.page` to the "
                    + "address of the page, or `prove-at` to one that needs a session.")
        case .found(let found): address = found.address
        case .nothingAsked(let session, _): return session
        case .notFound(let miss): throw client.pageNotFound(miss)
        }
        let (answer, askedAt) = try await ask(use, for: address, client)
        let session = try await session(answer, askedAt: askedAt, of: use, client)
        if let proof = proof(besides: address) { try await prove(session, at: proof, of: use, conversation) }
        return session
    }

    /// Checks a session that met the login page, by requests of the daemon's own.
    func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        await gateway.confirm(held, conversation)
    }

    private var name: String { gateway.key.challenge }

    private func findLoginPage(_ client: inout GatewayClient) async throws(LoginFailure) -> LoginPageSearch.Outcome {
        if let page {
            let response = ExaminedResponse(status: 200, url: page)
            return .found(
                LoginPage(address: page, source: .named, page: .init(response: response, asksForLogin: true)))
        }
        return try await LoginPageSearch(
            configured: (gateway.proof.map { [$0] } ?? []) + [gateway.base], origin: gateway.base.origin,
            challenged: gateway.challenged, target: gateway.target
        ).run(on: &client)
    }

    /// Returns the session that the helper won, and the time before the helper started.
    private func ask(
        _ use: CredentialUse, for address: WebURL, _ client: GatewayClient
    ) async throws(LoginFailure) -> (HelperSession, askedAt: Int64) {
        let conversation = client.conversation
        let question: LoginHelperQuestion
        do throws(TemplateError) {
            question = try await HelperQuestion(
                challenge: name, origin: gateway.key.origin, address: address, timeout: helper.timeout
            ).text(use.credential)
        } catch {
            throw error.loginFailure(challenge: name)
        }
        guard question.text.count <= LoginHelperQuestion.limit else {
            throw failure("The credential and the address are longer than the 4 KiB that a login helper gets")
        }
        try await use.submit(in: conversation)
        let askedAt = conversation.now()
        client.report("helper: started")
        let bytes: Secret
        do throws(LoginHelperError) {
            bytes = try await helpers.answer(of: helper, to: question)
        } catch {
            client.report("helper: no answer, \(error.publicReason)")
            var failed = failure("The login helper gave no answer: \(error.publicReason)", error.reason)
            if error.isTimeout {
                failed.code = .timedOut
                failed.detail += " `login.timeout` sets the limit."
            }
            throw failed
        }
        switch try answer(bytes) {
        case .session(let session):
            client.report("helper: \(session.cookies.count) cookies, \(session.fields.count) fields")
            return (session, askedAt)
        case .failure(let cause, let message):
            let secrets = question.secrets.map { $0.revealText() }
            throw await failure(
                cause, ServerText.sentence(Redaction.text(message, without: secrets)), of: use, client)
        }
    }

    private func answer(_ bytes: Secret) throws(LoginFailure) -> HelperAnswer {
        do throws(HelperAnswer.Unusable) {
            return try HelperAnswer(parsing: bytes.revealBytes())
        } catch {
            throw failure("The login helper's answer \(error.reason)", "the answer of \(helper.path) \(error.reason)")
        }
    }

    /// Returns the failure of a login that the helper reports as failed, and closes the latch if the credential is to
    /// blame.
    private func failure(
        _ cause: HelperAnswer.Cause, _ message: String, of use: CredentialUse, _ client: GatewayClient
    ) async -> LoginFailure {
        var failed: LoginFailure
        switch cause {
        case .known(let known):
            let piece = Evidence(.configured, known.meaning, "the login helper says \(known.rawValue)")
            client.report("helper: \(known.rawValue)")
            switch known {
            case .wrongPassword:
                failed = await use.reject(.rejected, serverWait: nil, by: piece, in: client.conversation)
            case .locked: failed = await use.reject(.locked, serverWait: nil, by: piece, in: client.conversation)
            case .passwordExpired:
                failed = await use.reject(.rejected, serverWait: nil, by: piece, in: client.conversation)
                failed.detail =
                    "The password has expired and must be changed at the server first. \(failed.detail)"
            case .tooManySessions:
                failed = client.failure("The server refuses another session while others exist.")
            case .unavailable:
                failed = client.failure("The server cannot serve the login at the moment, says the login helper.")
            }
        case .other(let word):
            client.report("helper: \(word)")
            failed = failure("The login helper reports an error of its own (\(word))")
        }
        failed.cause = "the login helper \(helper.path)" + (message.isEmpty ? " failed" : ": \(message)")
        return failed
    }

    /// Returns the session, of the cookies that the upstream's origin may set and the fields that `inject` names.
    private func session(
        _ answer: HelperSession, askedAt: Int64, of use: CredentialUse, _ client: GatewayClient
    ) async throws(LoginFailure) -> Session {
        let origin = WebURL(origin: gateway.key.origin, path: "/")
        let now = client.conversation.now()
        var jar = CookieJar()
        for cookie in answer.cookies {
            let line = cookie.setCookie(from: origin.origin.host, now: now)
            guard let line, jar.store(line, from: origin, now: now) else {
                client.report(
                    "helper: the cookie \(ServerText.name(cookie.name)) was refused, the upstream may not set it")
                continue
            }
        }
        for name in gateway.rules.passingCookies { jar.remove(name: name) }
        jar.pass(names: gateway.rules.callerCookies)
        let credential = use.credential.adding(try usedFields(answer, of: use, client))
        let injected = try await gateway.injectedFields(credential, client)
        guard jar.hasOwn || !injected.isEmpty else {
            throw failure("The login helper gave neither a cookie nor a field that can be used")
        }
        let end = answer.lifetime.map { askedAt.saturatingAdd($0.saturatingMultiply(1000)) }
        var session = Session(
            fields: injected.constant, expiresAt: [jar.expiresAt, end].compactMap(\.self).min(),
            cookies: jar.isEmpty ? nil : SessionCookies(jar))
        session.signer = injected.signer
        return session
    }

    /// Returns the helper's fields that a template of `inject` uses. Others are refused: a helper must not decide the
    /// fields of requests.
    private func usedFields(
        _ answer: HelperSession, of use: CredentialUse, _ client: GatewayClient
    ) throws(LoginFailure) -> [String: Secret] {
        let wanted = gateway.rules.inject.reduce(into: Set<String>()) { $0.formUnion($1.value.fieldNames) }
        for name in answer.fields.keys.sorted() where !wanted.contains(name) {
            client.report("helper: the field \(ServerText.name(name)) was refused, `inject` does not use it")
        }
        let missing = wanted.filter { answer.fields[$0] == nil && use.credential[$0] == nil }
        if let name = missing.min() {
            throw failure("The login helper gave no field \(name), which `inject` uses")
        }
        return answer.fields.filter { wanted.contains($0.key) }
    }

    /// Returns the configured address that shows the login page without a session. A configured page always shows it.
    private func proof(besides address: WebURL) -> WebURL? {
        if let proof = gateway.proof { return proof }
        guard page != nil else { return address }
        return gateway.base == address ? nil : gateway.base
    }

    /// Requests `proof` with the session. A login page there means that the login did not work, whatever the helper
    /// reports: another run would send a wrong password again.
    private func prove(
        _ session: Session, at proof: WebURL, of use: CredentialUse, _ conversation: Conversation
    ) async throws(LoginFailure) {
        let confirmation = GatewayConfirmation(
            address: proof, isVerifying: true, name: name, isChallenge: gateway.asksForLogin)
        switch await confirmation.run(session, conversation) {
        case .stillGood: await use.accept(in: conversation)
        case .postponed, .unknown: break
        case .over:
            let piece = Evidence(
                .doubtful, .rejected(.wrong),
                "\(proof.path) still asks for a login with the session of the login helper")
            conversation.report(
                ConversationStep(
                    challenge: name,
                    text: "helper: its session does not work, \(proof.path) still asks for a login"))
            // The address may be in trouble itself, or somebody may have written the words of `detect` there.
            if use.acceptance(in: conversation) != nil {
                var doubted = failure("The login helper reported no failure, but \(piece.sentence)")
                doubted.retryAt = await use.doubt(in: conversation)
                throw doubted
            }
            var rejected = await use.reject(.rejected, serverWait: nil, by: piece, in: conversation)
            rejected.detail += " The login helper reported no failure."
            throw rejected
        }
    }

    /// Returns a failure that says nothing about the credential. `detail` has no full stop.
    private func failure(_ detail: String, _ cause: String? = nil) -> LoginFailure {
        LoginFailure(
            .failed, challenge: name, detail: "\(detail). Run it by hand, or see the daemon's log.",
            cause: cause ?? "the login helper \(helper.path)")
    }
}
