// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
public import HTTPTypes
internal import Secrets

/// Login by one request to a token endpoint (RFC 6749 §4.3, §4.4, §6).
public struct TokenLogin: SessionLogin {
    /// The endpoint and the parameters of its requests.
    public let configuration: TokenConfiguration
    /// The challenge, the credential, and the endpoint's origin.
    public let key: LatchKey
    /// The requested scope; empty for the server's default.
    public private(set) var scope: Scope
    /// The configured scope. More is requested if a resource has named more.
    private let configuredScope: Scope
    /// Time after which a latch closed by a rejection opens by itself; `nil` if it never does.
    public let retryRejectedAfter: Duration?
    private let keys: any SigningKeys
    private let refreshTokens: RefreshTokens

    /// Creates a login. All logins with one refresh token share one `refreshTokens`. `configuredScope` is the scope of
    /// the configuration, if `scope` may be more.
    public init(
        _ configuration: TokenConfiguration, key: LatchKey, scope: Scope = .empty, configuredScope: Scope? = nil,
        retryRejectedAfter: Duration? = nil, keys: any SigningKeys, refreshTokens: RefreshTokens
    ) {
        self.configuredScope = configuredScope ?? scope
        self.configuration = configuration
        self.key = key
        self.scope = scope
        self.retryRejectedAfter = retryRejectedAfter
        self.keys = keys
        self.refreshTokens = refreshTokens
    }

    /// Requests a token and returns its session.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        guard configuration.grant == .refreshToken else { return try await logIn(conversation, by: nil) }
        return try await refreshTokens.inTurn(of: key.challenge, in: conversation) { () async throws(LoginFailure) in
            try await logIn(conversation, by: refreshTokens)
        }
    }

    private func logIn(
        _ conversation: Conversation, by refreshTokens: RefreshTokens?
    ) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.lookUp(key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        try use.requireBudget(in: conversation)
        let endpoint = TokenEndpoint(name: key.challenge, conversation: conversation)
        let sentAt = conversation.now()
        let token = try await endpoint.ask(for: scope, usually: configuredScope, of: use, self.refreshTokens) {
            (scope) async throws(LoginFailure) in try await ask(endpoint, for: scope, use, refreshTokens)
        }
        await use.accept(in: conversation)
        return Session(
            fields: [configuration.placement.field(carrying: token.value)],
            expiresAt: token.expiresAt(sentAt: sentAt))
    }

    /// Requests a token, and saves the refresh token that comes with it. A request whose assertion's time is refused is
    /// sent once more, with an assertion of the server's time.
    private func ask(
        _ endpoint: TokenEndpoint, for scope: Scope, _ use: CredentialUse, _ refreshTokens: RefreshTokens?
    ) async throws(LoginFailure) -> TokenEndpoint.Answer {
        let conversation = endpoint.conversation
        let refreshToken = try await refreshTokens?.current(for: use, in: conversation)
        var login = self
        login.scope = scope
        var reply = try await login.send(endpoint, use, refreshToken, at: conversation.now())
        if case .assertionRefused(_, let serverTime) = reply.verdict {
            endpoint.report("token: sent once more, with a new assertion")
            reply = try await login.send(endpoint, use, refreshToken, at: serverTime ?? conversation.now())
        }
        // Before anything else can fail: the server has said that it accepts the value.
        if reply.isAccepted { await use.accept(in: conversation) }
        if let refreshTokens, let next = reply.refreshToken, next != refreshToken {
            // Saved first: the token that was sent may no longer be valid.
            try await refreshTokens.keep(next, for: use, in: conversation)
            endpoint.report("token: the next refresh token is saved")
        }
        return try endpoint.answer(reply.verdict, isGrown: scope != configuredScope)
    }

    /// Sends one request, whose assertion is signed for `time` (ms since 1970).
    private func send(
        _ endpoint: TokenEndpoint, _ use: CredentialUse, _ refreshToken: Secret?, at time: Int64
    ) async throws(LoginFailure) -> TokenEndpoint.Reply {
        let request = try await TokenRequest(self, use, refreshToken: refreshToken, keys: keys, now: time).sideRequest
        // Time has passed since the lookup: another process may have closed the latch.
        try use.requireOpenLatch(in: endpoint.conversation)
        return try await endpoint.send(request, TokenQuestion(sent: configuration.sent))
    }
}

/// Revocation of an access token (RFC 7009). A refresh token is not revoked: it is the credential, which only a person
/// could replace.
public struct TokenRevocation: SessionLogout {
    /// The revocation endpoint.
    public let url: WebURL
    /// The client authentication, and the field that carries the token.
    public let configuration: TokenConfiguration
    /// The challenge, the credential, and the token endpoint's origin.
    public let key: LatchKey
    private let keys: any SigningKeys

    /// Creates a revocation.
    public init(url: WebURL, _ configuration: TokenConfiguration, key: LatchKey, keys: any SigningKeys) {
        self.url = url
        self.configuration = configuration
        self.key = key
        self.keys = keys
    }

    /// Revokes the token of `session`. A server that no longer knows the token answers 200 as well (RFC 7009 §2.2).
    public func end(_ session: Session, _ conversation: Conversation) async throws(LoginFailure) {
        guard let token = token(of: session) else { return }
        let use = try await CredentialUse.lookUp(key, in: conversation)
        let proof = try ClientProof(configuration, use, keys: keys, now: conversation.now())
        var form: [(name: String, value: Secret)] = [("token", token), ("token_type_hint", Secret("access_token"))]
        form += proof.form
        var request = SideRequest.form(url, form)
        if let authorization = proof.authorization { request.fields[.authorization] = authorization }
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await conversation.sideRequests.send(request)
        } catch {
            throw LoginFailure(error, step: "the revocation", challenge: key.challenge)
        }
        conversation.report(ConversationStep(challenge: key.challenge, text: "revocation: \(response.status)"))
        guard (200..<300).contains(response.status) else {
            throw LoginFailure(
                .failed, challenge: key.challenge,
                detail: "The server answered the revocation of a token with status \(response.status). Check "
                    + "`token.revocation`.")
        }
    }

    private func token(of session: Session) -> Secret? {
        guard let value = session.fields.first(where: { $0.name == configuration.placement.field })?.value else {
            return nil
        }
        let prefix = configuration.placement.prefix.isEmpty ? [] : Array("\(configuration.placement.prefix) ".utf8)
        let bytes = value.revealBytes()
        return bytes.starts(with: prefix) && bytes.count > prefix.count ? Secret(bytes[prefix.count...]) : nil
    }
}

/// Parameters of a request to a token endpoint (RFC 6749 §3.2).
public struct TokenConfiguration: Sendable, Equatable {
    /// Grants that need no user interaction.
    public enum Grant: String, Sendable {
        /// RFC 6749 §4.4.
        case clientCredentials = "client_credentials"
        /// RFC 6749 §4.3; fields `username` and `password`.
        case password
        /// RFC 6749 §6; field `refresh-token`.
        case refreshToken = "refresh_token"
    }

    /// Client authentication, with the field `client-id`, and for most `client-secret` or `private-key`.
    public enum ClientAuthentication: String, Sendable, CaseIterable {
        /// `Authorization: Basic` (RFC 6749 §2.3.1).
        case basic
        /// Parameters of the body (RFC 6749 §2.3.1).
        case body
        /// A signed assertion (RFC 7523 §2.2).
        case privateKeyJWT = "private-key-jwt"
        /// The certificate of the connection (RFC 8705 §2); the body has only `client_id`.
        case tls

        /// Fields of the credential besides `client-id`.
        var proofFields: [String] {
            switch self {
            case .basic, .body: ["client-secret"]
            case .privateKeyJWT: ["private-key"]
            case .tls: []
            }
        }
    }

    /// Parts of a request that a refusal may be about.
    var sent: Set<TokenWord.Sent> {
        let assertion: Set<TokenWord.Sent> = clientAuthentication == .privateKeyJWT ? [.assertion] : []
        return switch grant {
        case .clientCredentials: assertion
        case .password: assertion.union([.password])
        case .refreshToken: assertion.union([.refreshToken])
        }
    }

    /// A further parameter of the token request. A standard name overrides that parameter, and an empty value omits it.
    public typealias Parameter = NamedTemplate

    /// The token endpoint.
    public var url: WebURL
    /// The grant.
    public var grant: Grant
    /// The client authentication.
    public var clientAuthentication: ClientAuthentication
    /// The `audience` parameter, if the endpoint needs one (RFC 8693 §2.1).
    public var audience: String?
    /// The `resource` parameter (RFC 8707), if known. A configured audience or parameter overrides it.
    public var resource: String?
    /// The audience of a client's assertion; `nil` for the endpoint.
    public var assertionAudience: String?
    /// Further parameters.
    public var parameters: [Parameter]
    /// The field that carries the token.
    public var placement: TokenPlacement

    /// Creates a configuration.
    public init(
        url: WebURL, grant: Grant, clientAuthentication: ClientAuthentication = .basic, audience: String? = nil,
        parameters: [Parameter] = [], placement: TokenPlacement = TokenPlacement()
    ) {
        self.url = url
        self.grant = grant
        self.clientAuthentication = clientAuthentication
        self.audience = audience
        self.parameters = parameters
        self.placement = placement
    }
}

/// The field that carries a token, and its prefix (RFC 6750 §2.1 by default).
public struct TokenPlacement: Sendable, Equatable {
    /// The field of each request.
    public let field: HTTPField.Name
    /// The word before the token, followed by a space; may be empty.
    public let prefix: String

    /// Creates a placement; the default is `Authorization: Bearer TOKEN`.
    public init(field: HTTPField.Name = .authorization, prefix: String = "Bearer") {
        self.field = field
        self.prefix = prefix
    }

    /// The length limit of a token in bytes: servers still accept this in one field.
    static let longest = 32 * 1024

    /// Returns whether a field can carry `token`: visible ASCII without spaces (RFC 6749 appendix A.12, less the
    /// space).
    static func canCarry(_ token: some Collection<UInt8>) -> Bool {
        (1...longest).contains(token.count) && token.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    func field(carrying token: Secret) -> InjectedField {
        InjectedField(
            name: field, value: prefix.isEmpty ? token : Secret(Array("\(prefix) ".utf8) + token.revealBytes()))
    }
}
