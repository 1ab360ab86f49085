// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets
internal import Synchronization

/// Login at a container registry's token service. It sends name and password (GET with Basic), or a refresh token
/// (POST) if the credential has one.
public struct RegistryLogin: SessionLogin {
    /// The token service.
    public let service: RegistryService
    /// The challenge, the credential, and the token service's origin. A rejection latches the key with any scope; a
    /// value that was accepted before is latched only if it is refused without a scope as well.
    public let key: LatchKey
    /// The requested scope.
    public let scope: Scope
    /// The challenge that led to this login; `nil` before any challenge.
    public let challenge: RegistryChallenge?
    /// The field that carries the token.
    public let placement: TokenPlacement
    /// Time after which a latch closed by a rejection opens by itself; `nil` if it never does.
    public let retryRejectedAfter: Duration?
    private let refreshTokens: RefreshTokens

    /// The default lifetime of a token in seconds (distribution's *token response*).
    private static var defaultLifetime: Int64 { 60 }

    /// Creates a login.
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

    /// Requests a token and returns its session.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let endpoint = TokenEndpoint(name: key.challenge, conversation: conversation)
        var met = challenge
        if met == nil { met = try await ask(endpoint) }
        if let challenge = met, let problem = service.learn(challenge) {
            endpoint.report(
                "challenge: refused, realm \(ServerText.name(challenge.realm)), service "
                    + ServerText.name(challenge.service ?? "none"))
            throw endpoint.failure(problem)
        }
        return try await refreshTokens.inTurn(of: key.challenge, in: conversation) { () async throws(LoginFailure) in
            try await logIn(endpoint, conversation)
        }
    }

    private func logIn(_ endpoint: TokenEndpoint, _ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.lookUp(key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        try use.requireBudget(in: conversation)
        let sentAt = conversation.now()
        let token = try await endpoint.ask(for: scope, usually: .empty, of: use, refreshTokens) {
            (scope) async throws(LoginFailure) in try await ask(endpoint, for: scope, use)
        }
        await use.accept(in: conversation)
        return Session(
            fields: [placement.field(carrying: token.value)], expiresAt: token.expiresAt(sentAt: sentAt))
    }

    /// Requests a token once, and saves the refresh token that comes with it. A request without a scope is that of
    /// `docker login`.
    private func ask(
        _ endpoint: TokenEndpoint, for scope: Scope, _ use: CredentialUse
    ) async throws(LoginFailure) -> TokenEndpoint.Answer {
        guard use.credential["refresh-token"] != nil else {
            let reply = try await endpoint.send(fetch(use, scope), Self.question(sent: .password))
            return try endpoint.answer(reply.verdict, isGrown: !scope.isEmpty)
        }
        let conversation = endpoint.conversation
        let token = try await refreshTokens.current(for: use, in: conversation)
        let reply = try await endpoint.send(refresh(by: token, use, scope), Self.question(sent: .refreshToken))
        if let next = reply.refreshToken, next != token {
            try await refreshTokens.keep(next, for: use, in: conversation)
        }
        return try endpoint.answer(reply.verdict, isGrown: !scope.isEmpty)
    }

    private static func question(sent: TokenWord.Sent) -> TokenQuestion {
        TokenQuestion(names: ["token", "access_token"], defaultSeconds: defaultLifetime, sent: [sent])
    }

    /// Requests the registry's challenge, unless one started this login or the service's name is known already.
    private func ask(_ endpoint: TokenEndpoint) async throws(LoginFailure) -> RegistryChallenge? {
        guard let request = service.versionCheck else { return nil }
        do throws(SideRequestError) {
            let response = try await endpoint.conversation.sideRequests.send(request)
            endpoint.report("version check: \(response.status)")
            return RegistryChallenge(status: response.status, fields: response.fields)
        } catch {
            throw LoginFailure(error, step: "the version check", challenge: key.challenge)
        }
    }

    /// Returns a GET with Basic (distribution's *requesting a token*).
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

    /// Returns a POST with a refresh token (distribution's *OAuth2 token authentication*).
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

/// A container registry's token service: its address, and the registry's name there.
public final class RegistryService: Sendable {
    /// The address of the token service.
    public let url: WebURL
    private let api: WebURL
    private let pinnedName: String?
    private let learnedName = Mutex<String?>(nil)

    /// Creates the service at `url` of the registry at `registry`. Tokens are requested only for the registry `name`;
    /// without it, for the name that the registry states.
    public init(url: WebURL, registry: WebURL, name: String? = nil) {
        self.url = url
        api = registry.appending(path: "v2/")
        pinnedName = name
    }

    /// The registry's name there, if known.
    var name: String? { pinnedName ?? learnedName.withLock { $0 } }

    /// The request that any registry answers with its challenge (distribution's *API version check*). `nil` if the name
    /// is known already.
    var versionCheck: SideRequest? { name == nil ? SideRequest(method: .get, url: api) : nil }

    /// Adopts the name in a challenge, or returns an objection. The owner of a registry must not choose the receiver of
    /// the password.
    func learn(_ challenge: RegistryChallenge) -> String? {
        guard WebURL(challenge.realm) == url || (try? WebURL(reading: challenge.realm.utf8)) == url else {
            return
                "The registry names another token service than `token.url`. Nothing was sent there; check `token.url`."
        }
        if let pinnedName, challenge.service != pinnedName {
            return "The registry calls itself by another name than `token.audience`. No token was asked for."
        }
        if let name = challenge.service { learnedName.withLock { $0 = name } }
        return nil
    }
}

extension TokenGrant {
    /// The token service of a container registry.
    package static let registry = TokenGrant(
        rawValue: "registry", neededFields: { _ in ["username", "password"] }, standsAlone: true
    ) { $0.registry }
}

extension TokenLogins {
    fileprivate var registry: Authenticator? {
        guard let url = token.url else { return nil }
        let service = RegistryService(url: url, registry: upstream.url, name: token.audience)
        let (key, retry, placement) = (latch(at: url.origin), retry, placement)
        let refreshTokens = material.refreshTokens(credential, at: url.origin)
        let base = upstream.url.path.hasSuffix("/") ? String(upstream.url.path.dropLast()) : upstream.url.path
        return authenticator(
            RegistryDetector(realm: realm),
            scopeOfRoute: { method, path in
                path.hasPrefix(base)
                    ? RegistryScope.needed(method: method, path: String(path.dropFirst(base.count))) : nil
            }, servers: [url]
        ) { occasion in
            RegistryLogin(
                service, key: key, scope: occasion.scope,
                challenge: occasion.challenge.flatMap { RegistryChallenge(status: $0.status, fields: $0.fields) },
                placement: placement, retryRejectedAfter: retry, refreshTokens: refreshTokens)
        }
    }
}
