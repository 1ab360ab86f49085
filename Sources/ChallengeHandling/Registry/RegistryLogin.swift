// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Wins a token of a container registry's token service: by name and password (GET with Basic), or by a refresh token
/// (POST) where the credential has one.
public struct RegistryLogin: SessionLogin {
    /// Where tokens come from.
    public let service: RegistryService
    /// The challenge, the credential, and the token service's origin. A rejection latches it, whatever the scope; of a
    /// value that was accepted before only if it is refused without a scope as well.
    public let key: LatchKey
    /// What is asked for.
    public let scope: Scope
    /// What led to this login; `nil` ahead of any challenge.
    public let challenge: RegistryChallenge?
    /// Where the token goes.
    public let placement: TokenPlacement
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?
    private let refreshTokens: RefreshTokens

    /// A token without a life ends after a minute (distribution's *token response*).
    private static var standardLife: Int64 { 60 }

    /// A login.
    public init(
        _ service: RegistryService, key: LatchKey, scope: Scope, challenge: RegistryChallenge?,
        placement: TokenPlacement = TokenPlacement(), retryRejectedAfter: Duration? = nil, refreshTokens: RefreshTokens
    ) {
        self.service = service
        self.key = key
        self.scope = scope
        self.challenge = challenge
        self.placement = placement
        self.retryRejectedAfter = retryRejectedAfter
        self.refreshTokens = refreshTokens
    }

    /// Wins a session, or says why not.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let endpoint = TokenEndpoint(name: key.challenge, conversation: conversation)
        var met = challenge
        if met == nil { met = try await ask(endpoint) }
        if let challenge = met, let problem = service.learn(challenge) {
            endpoint.report(
                "challenge: refused, realm \(ServerText.name(challenge.realm)), service "
                    + ServerText.name(challenge.service ?? "none"))
            throw endpoint.failure(problem)
        }
        return try await refreshTokens.turnstile.inTurn(of: key.challenge) { () async throws(LoginFailure) in
            try await win(endpoint, conversation)
        }
    }

    private func win(_ endpoint: TokenEndpoint, _ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.look(up: key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        let sentAt = conversation.now()
        let answer: TokenAnswer
        switch try await ask(endpoint, for: scope, use) {
        case .accepted(let response): answer = TokenAnswer(response.body)
        case .refused(let retryAt):
            throw try await endpoint.end(
                refused: scope, retryAt: retryAt, of: use,
                confirm: scope.isEmpty
                    ? nil : { () async throws(LoginFailure) in try await ask(endpoint, for: .empty, use) })
        }
        let token = try endpoint.token(
            in: answer, status: 200, named: ["token", "access_token"], defaultSeconds: Self.standardLife)
        use.accept(in: conversation)
        return Session(
            fields: [placement.field(carrying: token.value)], expiresAt: token.expiresAt(sentAt: sentAt))
    }

    /// Asks for a token once, and keeps the refresh token that comes with it. Without a scope that is what `docker login` asks.
    private func ask(
        _ endpoint: TokenEndpoint, for scope: Scope, _ use: CredentialUse
    ) async throws(LoginFailure) -> TokenEndpoint.Answer {
        guard use.credential["refresh-token"] != nil else { return try await endpoint.ask(fetch(use, scope)) }
        let conversation = endpoint.conversation
        let token = try refreshTokens.current(for: use, in: conversation)
        let answer = try await endpoint.ask(refresh(by: token, use, scope))
        if case .accepted(let response) = answer, let next = TokenAnswer(response.body).refreshToken, next != token {
            try refreshTokens.keep(next, for: use, in: conversation)
        }
        return answer
    }

    /// The registry's challenge, where none led here and its name is not known yet.
    private func ask(_ endpoint: TokenEndpoint) async throws(LoginFailure) -> RegistryChallenge? {
        guard let question = service.question else { return nil }
        do throws(SideRequestError) {
            let response = try await endpoint.conversation.sideRequests.send(question)
            endpoint.report("version check: \(response.status)")
            return RegistryChallenge(status: response.status, fields: response.fields)
        } catch {
            throw LoginFailure(error, step: "the version check", challenge: key.challenge)
        }
    }

    /// distribution's *requesting a token*.
    private func fetch(_ use: CredentialUse, _ scope: Scope) throws(LoginFailure) -> SideRequest {
        let name = try use.field("username").revealText()
        guard !name.contains(":") else {
            throw use.unusable("username", "holds a colon, which Basic cannot carry (RFC 7617).")
        }
        var query: [(name: String, value: String)] = []
        if let service = service.name { query.append(("service", service)) }
        query += scope.words.map { ("scope", $0) }
        query.append(("account", name))
        let text = [service.url.query, FormEncoding.query(query)].compactMap(\.self).joined(separator: "&")
        let pair = Array("\(name):".utf8) + (try use.field("password")).revealBytes()
        return SideRequest(
            method: .get, url: WebURL(origin: service.url.origin, path: service.url.path, query: text),
            fields: [.authorization: "Basic \(Base64.encode(pair))", .accept: "application/json"])
    }

    /// distribution's *OAuth2 token authentication*.
    private func refresh(by token: Secret, _ use: CredentialUse, _ scope: Scope) -> SideRequest {
        var form: [(name: String, value: Secret)] = [
            ("grant_type", Secret("refresh_token")), ("refresh_token", token),
            ("client_id", use.credential["client-id"] ?? Secret("countersign")),
        ]
        if let service = service.name { form.append(("service", Secret(service))) }
        if !scope.isEmpty { form.append(("scope", Secret("\(scope)"))) }
        return .form(service.url, form)
    }
}
