// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// A `GatewayChallengeHandler` as the machinery has it: what finds its challenges, and what wins its session.
package struct HandledGateway: Sendable {
    let handler: any GatewayChallengeHandler
    let caller: any HandlerCaller
    /// What failures call it.
    package let name: String
    /// What tells its sessions from those of another registration of that name; empty where the name does.
    package let identity: String

    /// The gateway of `handler`, which is called by `caller`.
    package init(
        _ handler: any GatewayChallengeHandler, name: String? = nil, identity: String = "",
        caller: any HandlerCaller
    ) {
        self.name = name ?? handler.gatewayName
        self.identity = identity
        self.handler = handler
        self.caller = caller
    }

    /// The login that stands ready at `origin`. `base`: the upstream's address, which shows the page before any address that a caller
    /// chose; `nil` if the program itself is the only caller.
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

/// Asks a handler whether a response is its own.
package struct HandledGatewayDetector: ChallengeDetector {
    let handler: any GatewayChallengeHandler

    /// For `explain`.
    package var kind: String { "gateway \(handler.gatewayName)" }

    /// Login pages have any status.
    package var looksAtPages: Bool { true }

    /// A challenge where the handler says so, first by the head alone.
    package func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        if handler.canHandleResponse(response) { return .challenged() }
        return response.body == nil && mayHaveBody(response) ? .needsBody : .pass
    }

    private func mayHaveBody(_ response: ExaminedResponse) -> Bool {
        guard response.method != .head, ![204, 206, 304].contains(response.status) else { return false }
        let type = (response.fields[.contentType] ?? "").prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
        return handler.bodyTypes.contains(type.lowercased())
    }
}

/// Has a gateway's handler win its session.
package struct HandledGatewayLogin: SessionLogin {
    /// So many times a handler is asked in one conversation.
    private static let rounds = 8

    let gateway: HandledGateway
    /// The response that led to the login; `nil` ahead of any.
    let met: ExaminedResponse?
    let origin: Origin
    /// The upstream's address; `nil` if the program itself is the only caller.
    let base: WebURL?
    /// The address of the request that waits for the session before any challenge; `nil` if none does.
    let target: WebURL?

    private var handler: any GatewayChallengeHandler { gateway.handler }

    /// Wins a session, or says why not. A form that was rejected is not submitted again.
    package func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var visit = GatewayVisit(name: gateway.name, conversation: conversation, markers: [])
        let entrance: GatewayEntrance
        if let target {
            switch try await wait(at: target, &visit) {
            case .found(let found): entrance = found
            case .nothingAsked(let isBrief):
                return .nothingAsked(at: target, now: conversation.now(), isBrief: isBrief)
            }
        } else {
            guard let found = try await enter(&visit) else { return Session() }
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
                return session(visit)
            }
            page = again
        }
        throw visit.failure("The gateway asked \(Self.rounds) times in one login.")
    }

    /// Asks at the upstream's address if a session still works, with the session and without it.
    package func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        guard let base else { return .over }
        return await GatewayConfirmation(
            address: base, isProving: false, name: gateway.name, isChallenge: { handler.canHandleResponse($0) }
        ).run(held, conversation)
    }

    /// Who chose the address of a request: the program itself, which is to be trusted, or one of its callers.
    private var callers: GatewayEntrance.Source { base == nil ? .configured : .challenged }

    private enum Entry {
        case found(GatewayEntrance)
        case nothingAsked(isBrief: Bool)
    }

    /// Finds the gateway's page for a request that waits: at the upstream's address, then at its own.
    private func wait(at target: WebURL, _ visit: inout GatewayVisit) async throws(LoginFailure) -> Entry {
        var addresses: [(url: WebURL, source: GatewayEntrance.Source)] = []
        if let base { addresses.append((base, .configured)) }
        if let plain = target.plain, plain.origin == origin, plain != base { addresses.append((plain, callers)) }
        for (address, source) in addresses {
            visit = GatewayVisit(name: gateway.name, conversation: visit.conversation, markers: [])
            guard let page = try await search(address, on: &visit) else { return .nothingAsked(isBrief: true) }
            if page.isMarked { return .found(GatewayEntrance(address: address, source: source, page: page)) }
        }
        return .nothingAsked(isBrief: false)
    }

    /// Finds the gateway's page: at the upstream's address, and only then where a caller met it (CONTRIBUTING, rule 11). `nil` if
    /// nobody asks any more.
    private func enter(_ visit: inout GatewayVisit) async throws(LoginFailure) -> GatewayEntrance? {
        if let first = base ?? (met == nil ? WebURL(origin: origin, path: "/") : nil) {
            let page = try await look(at: first, "page", on: &visit)
            if page.isMarked { return GatewayEntrance(address: first, source: .configured, page: page) }
        }
        guard let met else { return nil }
        guard let address = met.url.plain, address.origin == origin else {
            throw visit.failure("The address that was challenged is none that a login asks for.", met)
        }
        if address != base {
            visit = GatewayVisit(name: gateway.name, conversation: visit.conversation, markers: [])
            let page = try await look(at: address, "page", on: &visit)
            if page.isMarked { return GatewayEntrance(address: address, source: callers, page: page) }
        }
        // It may ask for other methods only; else nobody asks any more.
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
                let proof = try await look(at: entrance.address, "proof", on: &visit)
                return proof.isMarked ? proof.response : nil
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
        let isChallenge = handler.canHandleResponse(answer)
        // With GET, on the login's own cookies: Tomcat would take the next request there for the saved one.
        guard let next = GatewayVisit.redirect(in: answer), next.origin == answer.url.origin else {
            return GatewayVisit.Page(response: answer, isMarked: isChallenge)
        }
        let isResource = entrance.isCallers && next.path == entrance.address.path && visit.jar.hasMore(than: before)
        var page = try await look(at: next, "redirect", on: &visit)
        page.isMarked = isChallenge || page.isMarked && !isResource
        return page
    }

    /// Fetches a page by redirects within its origin.
    private func look(
        at address: WebURL, _ step: String, on visit: inout GatewayVisit
    ) async throws(LoginFailure) -> GatewayVisit.Page {
        var (address, isMarked) = (address, false)
        for _ in 0..<Self.rounds {
            let response = try await visit.look(at: address, step, follows: false).response
            isMarked = isMarked || handler.canHandleResponse(response)
            guard let next = GatewayVisit.redirect(in: response), next.origin == address.origin else {
                return GatewayVisit.Page(response: response, isMarked: isMarked)
            }
            address = next
        }
        throw visit.failure("The server answers with \(Self.rounds) redirects, one after the other.")
    }

    /// A page on behalf of a request that waits; `nil` if the server cannot be reached, which that request itself will be told.
    /// Throws if there was no answer in time.
    private func search(_ address: WebURL, on visit: inout GatewayVisit) async throws(LoginFailure) -> GatewayVisit
        .Page?
    {
        do throws(LoginFailure) {
            return try await look(at: address, "page", on: &visit)
        } catch {
            if error.code == .timedOut { throw error }
            return nil
        }
    }

    private func session(_ visit: GatewayVisit) -> Session {
        var jar = visit.jar
        jar.pass(names: CookieJar.doubleSubmitNames)
        return Session(expiresAt: jar.expiresAt, cookies: jar.isEmpty ? nil : SessionCookies(jar))
    }
}
