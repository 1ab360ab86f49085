// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FieldBytes
internal import HTTPTypes

/// Detector and login for a `GatewayChallengeHandler`.
package struct HandledGateway: Sendable {
    let handler: any GatewayChallengeHandler
    let caller: any HandlerCaller
    /// Name of the gateway in failures.
    package let name: String
    /// Identity of the registration, to separate sessions of equal names; empty if the name is unique.
    package let identity: String

    /// Creates the gateway of `handler`, with its caller.
    package init(
        _ handler: any GatewayChallengeHandler, name: String? = nil, identity: String = "",
        caller: any HandlerCaller
    ) {
        self.name = name ?? handler.gatewayName
        self.identity = identity
        self.handler = handler
        self.caller = caller
    }

    /// Returns the authenticator for `origin`.
    ///
    /// `base` is the upstream's address, at which the page is expected before any address that a caller chose; nil if
    /// the program is the only caller.
    package func login(at origin: Origin, base: WebURL? = nil) -> Authenticator {
        return Authenticator(
            name: name, trigger: .detected(HandledGatewayDetector(handler: handler)), isAhead: false,
            key: SessionKey(origin: origin, challenge: name, credential: identity), credentials: [],
            confirmsSessions: base != nil, isLoginPage: true,
            makeLogin: { occasion in
                HandledGatewayLogin(
                    gateway: self, met: occasion.challenge, origin: origin, base: base,
                    target: occasion.challenge == nil ? occasion.target : nil)
            })
    }
}

/// Detector that asks a handler if a response belongs to its gateway.
package struct HandledGatewayDetector: ChallengeDetector {
    let handler: any GatewayChallengeHandler

    /// Name of the gateway, for `explain`.
    package var kind: String { "gateway \(handler.gatewayName)" }

    /// Every response, because login pages have any status and the handler's criteria are unknown.
    package var filter: ResponseFilter { .everything }

    /// Returns a challenge if the handler recognizes the response, first by its head alone.
    package func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        if handler.canHandleResponse(response) { return .challenged() }
        return response.body == nil && mayHaveBody(response) ? .needsBody : .pass
    }

    /// Returns true if a page that the handler could recognize may be behind the response.
    package func mayConceal(_ response: ExaminedResponse) -> Bool {
        ConcealedPage(response)?.mayHaveType(of: Array(handler.bodyTypes), in: response) == true
    }

    private func mayHaveBody(_ response: ExaminedResponse) -> Bool {
        guard response.method != .head, ![204, 206, 304].contains(response.status) else { return false }
        return handler.bodyTypes.contains(MediaType(response.fields[.contentType] ?? "").essence)
    }
}

/// Login that calls a gateway's handler.
struct HandledGatewayLogin: SessionLogin {
    /// Maximum calls of a handler in one conversation.
    private static let rounds = 8

    let gateway: HandledGateway
    /// Response that required the login; nil without a challenge.
    let met: ExaminedResponse?
    /// Origin of the server.
    let origin: Origin
    /// Address of the upstream; nil if the program is the only caller.
    let base: WebURL?
    /// Address of the waiting request if there was no challenge; nil if no request waits.
    let target: WebURL?

    private var handler: any GatewayChallengeHandler { gateway.handler }

    /// Logs in; never submits a rejected form again.
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var client = GatewayClient(
            name: gateway.name, conversation: conversation, asksForLogin: { [handler] in handler.canHandleResponse($0) }
        )
        let loginPage: LoginPage
        switch try await search.run(on: &client) {
        case .found(let found): loginPage = found
        case .nothingAsked(let session, _): return session
        case .notFound:
            guard let found = try enterByResponse(&client) else { return Session() }
            loginPage = found
        }
        var page = loginPage.page.response
        var last: LoginForm?
        for _ in 0..<Self.rounds {
            if let last { client.conversation.attempts.record(last.fingerprint, to: client.name, acceptedAt: nil) }
            let challenge = GatewayChallenge(response: page, isRepeated: last != nil, conversation: conversation)
            let answer = try await gateway.caller.ask(client.name) { [handler] in
                try await handler.handleChallenge(challenge)
            }
            guard let again = try await carryOut(answer, at: page, from: loginPage, last: &last, on: &client) else {
                return client.session(client.cookies(passing: CookieJar.doubleSubmitNames))
            }
            page = again
        }
        throw client.failure("The gateway asked \(Self.rounds) times in one login.")
    }

    /// Checks at the upstream's address if a session still works, with the session and without it.
    func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        guard let base else { return .over }
        return await GatewayConfirmation(
            address: base, isVerifying: false, name: gateway.name, isChallenge: { handler.canHandleResponse($0) }
        ).run(held, conversation)
    }

    /// Source of a request's address: the trusted program itself, or one of its callers.
    private var callers: LoginPage.Source { base == nil ? .configured : .challenged }

    /// Search at the upstream's address, then at that of the challenged or waiting request.
    ///
    /// The program's own address is tried only if nothing else is known.
    private var search: LoginPageSearch {
        let isUnknown = base == nil && met == nil && target == nil
        return LoginPageSearch(
            configured: [base ?? (isUnknown ? WebURL(origin: origin, path: "/") : nil)].compactMap(\.self),
            origin: origin,
            challenged: met?.url, target: target, callers: callers, acceptsErrors: true)
    }

    /// Returns the login page of a response to a method that no probe can repeat; nil for GET and HEAD.
    private func enterByResponse(_ client: inout GatewayClient) throws(LoginFailure) -> LoginPage? {
        guard let met else { return nil }
        guard let address = met.url.plain, address.origin == origin else {
            throw client.failure("The challenged address is not one that a login may request.", met)
        }
        guard met.method != .get, met.method != .head else { return nil }
        for value in met.fields.bytes(of: .setCookie) { client.store(value, from: met.url) }
        return LoginPage(address: address, source: callers, page: .init(response: met, asksForLogin: true))
    }

    /// Carries out answers until the handler reports success; returns the page if the gateway asks again.
    private func carryOut(
        _ first: GatewayAnswer, at page: ExaminedResponse, from loginPage: LoginPage, last: inout LoginForm?,
        on client: inout GatewayClient
    ) async throws(LoginFailure) -> ExaminedResponse? {
        var (answer, page, isLikely) = (first, page, false)
        for _ in 0..<Self.rounds {
            switch answer {
            case .cancel(let reason):
                throw LoginFailure(.failed, challenge: client.name, detail: reason, isCancelled: true)
            case .submitSuccess:
                // Nothing was submitted: the request is sent again, and its response is final.
                guard last != nil else { return nil }
                // If only a caller met the page, it may always appear; the response to the form is better evidence.
                if isLikely, loginPage.isCallers { return nil }
                let proof = try await client.fetch(loginPage.address, "proof")
                guard proof.asksForLogin else { return nil }
                // A rejection is never based on a page that only a caller chose (CONTRIBUTING, rule 3).
                guard !loginPage.isCallers else { throw noEvidence(client) }
                return proof.response
            case .submitForm(let form):
                last = form
                let before = client.jar
                let submitted = try await submit(form, from: page, loginPage: loginPage, on: &client)
                page = submitted.response
                if submitted.asksForLogin { return page }
                isLikely = client.jar.hasMore(than: before)
                let response = page
                answer = try await gateway.caller.ask(client.name) { [handler] in
                    response.status == 200
                        ? try await handler.onSuccess(response) : try await handler.onFailure(response)
                }
            }
        }
        throw client.failure("The gateway's handler submitted \(Self.rounds) forms, one after the other.")
    }

    private func noEvidence(_ client: GatewayClient) -> LoginFailure {
        client.failure(
            "The server's answer to the form does not show whether the login worked: it set no cookie, and the page that asked for "
                + "the login still shows it.")
    }

    private func submit(
        _ form: LoginForm, from page: ExaminedResponse, loginPage: LoginPage, on client: inout GatewayClient
    ) async throws(LoginFailure) -> GatewayClient.Page {
        try client.conversation.attempts.requireNew(form.fingerprint, to: client.name)
        guard let request = form.request(from: page) else {
            throw client.failure("The login form has no valid address, or its method is neither POST nor GET.")
        }
        let before = client.jar
        let answer = try await client.send(request, "form")
        if InconclusiveStatus.contains(answer.status), let trouble = client.trouble(in: answer, "form") {
            throw trouble
        }
        let isChallenge = client.asksForLogin(answer)
        // With GET, on the login's own cookies: Tomcat would treat the next request to this address as the saved one.
        guard let next = GatewayClient.redirectWithinOrigin(in: answer) else {
            return GatewayClient.Page(response: answer, asksForLogin: isChallenge)
        }
        let isResource = loginPage.isResource(next) && client.jar.hasMore(than: before)
        var page = try await client.fetch(next, "redirect")
        page.asksForLogin = isChallenge || page.asksForLogin && !isResource
        return page
    }
}
