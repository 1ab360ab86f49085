// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Has a gateway's handler win its session.
struct HandledGatewayLogin: SessionLogin {
    /// So many times a handler is asked in one conversation.
    private static let rounds = 8

    let gateway: HandledGateway
    /// The response that led to the login; `nil` ahead of any.
    let met: ExaminedResponse?
    /// The server's origin.
    let origin: Origin
    /// The upstream's address; `nil` if the program itself is the only caller.
    let base: WebURL?
    /// The address of the request that waits for the session before any challenge; `nil` if none does.
    let target: WebURL?

    private var handler: any GatewayChallengeHandler { gateway.handler }

    /// Wins a session, or says why not. A form that was rejected is not submitted again.
    func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var visit = GatewayVisit(
            name: gateway.name, conversation: conversation, isMarked: { [handler] in handler.canHandleResponse($0) })
        let entrance: GatewayEntrance
        switch try await search.run(on: &visit) {
        case .found(let found): entrance = found
        case .nothingAsked(let session, _): return session
        case .notFound:
            guard let found = try enterByResponse(&visit) else { return Session() }
            entrance = found
        }
        var page = entrance.page.response
        var last: LoginForm?
        for _ in 0..<Self.rounds {
            if let last { visit.conversation.attempts.note(last.fingerprint, to: visit.name, acceptedAt: nil) }
            let challenge = GatewayChallenge(response: page, isRepeated: last != nil, conversation: conversation)
            let answer = try await gateway.caller.ask(visit.name) { [handler] in
                try await handler.handleChallenge(challenge)
            }
            guard let again = try await carryOut(answer, at: page, from: entrance, last: &last, on: &visit) else {
                return visit.session(visit.cookies(passing: CookieJar.doubleSubmitNames))
            }
            page = again
        }
        throw visit.failure("The gateway asked \(Self.rounds) times in one login.")
    }

    /// Asks at the upstream's address if a session still works, with the session and without it.
    func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        guard let base else { return .over }
        return await GatewayConfirmation(
            address: base, isProving: false, name: gateway.name, isChallenge: { handler.canHandleResponse($0) }
        ).run(held, conversation)
    }

    /// The source of a request's address: the program itself, which is to be trusted, or one of its callers.
    private var callers: GatewayEntrance.Source { base == nil ? .configured : .challenged }

    /// At the upstream's address, and only then where a request met the page or waits. The program's own address is looked at only where
    /// nothing else is known.
    private var search: GatewaySearch {
        let isUnknown = base == nil && met == nil && target == nil
        return GatewaySearch(
            configured: [base ?? (isUnknown ? WebURL(origin: origin, path: "/") : nil)].compactMap(\.self),
            origin: origin,
            challenged: met?.url, target: target, callers: callers, takesTrouble: true)
    }

    /// The entrance by the response that led to the login, if its method is one that no look can stand for; `nil` if nobody asks any more.
    private func enterByResponse(_ visit: inout GatewayVisit) throws(LoginFailure) -> GatewayEntrance? {
        guard let met else { return nil }
        guard let address = met.url.plain, address.origin == origin else {
            throw visit.failure("The address that was challenged is none that a login asks for.", met)
        }
        guard met.method != .get, met.method != .head else { return nil }
        for value in met.fields[values: .setCookie] { visit.keep(value, from: met.url) }
        return GatewayEntrance(address: address, source: callers, page: .init(response: met, isMarked: true))
    }

    /// Carries an answer out until the handler says that all is well. Returns the page where the gateway asks again.
    private func carryOut(
        _ first: GatewayAnswer, at page: ExaminedResponse, from entrance: GatewayEntrance, last: inout LoginForm?,
        on visit: inout GatewayVisit
    ) async throws(LoginFailure) -> ExaminedResponse? {
        var (answer, page, isLikely) = (first, page, false)
        for _ in 0..<Self.rounds {
            switch answer {
            case .cancel(let reason):
                throw LoginFailure(.failed, challenge: visit.name, detail: reason, isCancelled: true)
            case .submitSuccess:
                // Nothing was submitted: the request is sent again, and what it meets is its answer.
                guard last != nil else { return nil }
                // Where only a caller met the page, it may always be; the answer to the form says more.
                if isLikely, entrance.isCallers { return nil }
                let proof = try await visit.look(at: entrance.address, "proof")
                guard proof.isMarked else { return nil }
                // A rejection never rests on a page that only a caller chose (CONTRIBUTING, rule 3).
                guard !entrance.isCallers else { throw noEvidence(visit) }
                return proof.response
            case .submitForm(let form):
                last = form
                let before = visit.jar
                let submitted = try await submit(form, from: page, entrance: entrance, on: &visit)
                page = submitted.response
                if submitted.isMarked { return page }
                isLikely = visit.jar.hasMore(than: before)
                let response = page
                answer = try await gateway.caller.ask(visit.name) { [handler] in
                    response.status == 200
                        ? try await handler.onSuccess(response) : try await handler.onFailure(response)
                }
            }
        }
        throw visit.failure("The gateway's handler submitted \(Self.rounds) forms, one after the other.")
    }

    private func noEvidence(_ visit: GatewayVisit) -> LoginFailure {
        visit.failure(
            "The server's answer to the form does not tell whether the login worked: it set no cookie, and the page that asked for "
                + "the login still shows it.")
    }

    private func submit(
        _ form: LoginForm, from page: ExaminedResponse, entrance: GatewayEntrance, on visit: inout GatewayVisit
    ) async throws(LoginFailure) -> GatewayVisit.Page {
        try visit.conversation.attempts.requireNew(form.fingerprint, to: visit.name)
        guard let request = form.request(from: page) else {
            throw visit.failure("The address of the login form is none, or its method is neither POST nor GET.")
        }
        let before = visit.jar
        let answer = try await visit.send(request, "form")
        if answer.status >= 500 || answer.status == 429, let trouble = visit.trouble(in: answer, "form") {
            throw trouble
        }
        let isChallenge = visit.isMarked(answer)
        // With GET, on the login's own cookies: Tomcat would take the next request there for the saved one.
        guard let next = GatewayVisit.redirectWithinOrigin(in: answer) else {
            return GatewayVisit.Page(response: answer, isMarked: isChallenge)
        }
        let isResource = entrance.isResource(next) && visit.jar.hasMore(than: before)
        var page = try await visit.look(at: next, "redirect")
        page.isMarked = isChallenge || page.isMarked && !isResource
        return page
    }
}
