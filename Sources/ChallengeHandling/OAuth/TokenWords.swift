// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One line of the table of words by which token endpoints refuse, and the meaning of that word.
struct TokenWord: Sendable {
    /// Parts of a token request that a word may be about.
    enum Sent: Sendable {
        case assertion
        case password
        case refreshToken
    }

    /// Meaning of a word.
    enum Meaning: Sendable, Equatable {
        /// The secret is rejected.
        case rejected
        /// The account is locked or disabled.
        case locked
        /// The scope is refused, whatever the secret. The advice begins with a space, here and below.
        case scope(advice: String)
        /// The assertion is too old, too early, or was used before.
        case assertionTime
        /// The secret was accepted, but a person must act at the server first.
        case person
        /// The request is wrong, whatever the secret.
        case settings(advice: String)
        /// The server does not judge the request now.
        case temporary
    }

    /// Specification or vendor whose documentation has the word.
    let source: String
    /// Error code in lower case; `nil` for any.
    let error: String?
    /// Phrases in lower case that the texts must hold, all of them.
    let phrases: [String]
    /// Number that must be among those of the answer.
    let code: Int64?
    /// Part that the request must have sent.
    let sent: Sent?
    /// Meaning.
    let meaning: Meaning

    private init(
        _ source: String, _ error: String? = nil, says phrases: String..., code: Int64? = nil, sent: Sent? = nil,
        means meaning: Meaning
    ) {
        self.source = source
        self.error = error
        self.phrases = phrases
        self.code = code
        self.sent = sent
        self.meaning = meaning
    }
}

extension TokenWord {
    /// The table; the first line that fits decides. Numbers and phrases stand before plain words.
    static let table = byNumber + byPhrase + byWord

    /// Numbers of Microsoft Entra, in `error_codes` and in its texts.
    private static let byNumber: [TokenWord] = [
        TokenWord("Microsoft Entra", code: 50_053, means: .locked),
        TokenWord("Microsoft Entra", code: 50_057, means: .locked),
        TokenWord("Microsoft Entra", code: 50_076, means: .person),
        TokenWord("Microsoft Entra", code: 50_079, means: .person),
        TokenWord("Microsoft Entra", code: 50_097, means: .person),
        TokenWord("Microsoft Entra", code: 53_003, means: .person),
        TokenWord("Microsoft Entra", code: 65_001, means: .person),
        TokenWord("Microsoft Entra", code: 50_196, means: .temporary),
        TokenWord("Microsoft Entra", code: 90_033, means: .temporary),
        TokenWord("Microsoft Entra", code: 700_024, means: .assertionTime),
        TokenWord(
            "Microsoft Entra", code: 700_025,
            means: .settings(advice: " Entra calls this client public: remove the field `client-secret`.")),
        TokenWord(
            "Microsoft Entra", code: 901_002,
            means: .settings(
                advice: " Entra takes no `resource` beside a scope: set `parameters: { resource: \"\" }`.")),
    ]

    private static let byPhrase: [TokenWord] = [
        TokenWord("Keycloak", "invalid_grant", says: "account disabled", means: .locked),
        TokenWord("Keycloak", "invalid_grant", says: "account is not fully set up", means: .person),
        TokenWord("Keycloak", "unauthorized_client", says: "invalid client", means: .rejected),
        TokenWord("Keycloak", "unauthorized_client", says: "invalid_credentials", means: .rejected),
        TokenWord("Keycloak", "unauthorized_client", says: "unknown_client", means: .rejected),
        TokenWord("Salesforce", "invalid_grant", says: "inactive user", means: .locked),
        TokenWord("Salesforce", "invalid_grant", says: "user hasn't approved this consumer", means: .person),
        TokenWord("Salesforce", "invalid_grant", says: "authentication failure", means: .rejected),
        TokenWord("Salesforce", "invalid_grant", says: "expired access/refresh token", means: .rejected),
        TokenWord("Auth0", "unauthorized", says: "user is blocked", means: .locked),
        TokenWord("Auth0", "access_denied", says: "invalid refresh token", sent: .refreshToken, means: .rejected),
        TokenWord(
            "Google", "invalid_request", says: "client_secret is missing",
            means: .settings(advice: " Store the field `client-secret`: this server demands it of every client.")),
        // Servers that say `invalid_request` of a refresh token that has ended.
        TokenWord("better-auth", "invalid_request", says: "session not found", sent: .refreshToken, means: .rejected),
        TokenWord(
            "better-auth", "invalid_request", says: "refresh token", "expired", sent: .refreshToken, means: .rejected),
        TokenWord(
            "better-auth", "invalid_request", says: "refresh token", "revoked", sent: .refreshToken, means: .rejected),
        TokenWord(
            "league/oauth2-server", "invalid_request", says: "refresh token is invalid", sent: .refreshToken,
            means: .rejected),
        TokenWord(
            "Authlib", "invalid_request", says: "invalid \"refresh_token\"", sent: .refreshToken, means: .rejected),
    ]

    private static let byWord: [TokenWord] = [
        TokenWord("RFC 6749", "invalid_client", means: .rejected),
        TokenWord("RFC 6749", "invalid_grant", means: .rejected),
        TokenWord(
            "RFC 6749", "invalid_scope",
            means: .scope(
                advice: " Check `token.scope`, and what a resource has named in a 403 insufficient_scope.")),
        TokenWord(
            "RFC 6749", "unauthorized_client",
            means: .scope(advice: " Check which grants and scopes the server allows this client.")),
        TokenWord(
            "RFC 6749", "access_denied", means: .scope(advice: " Check what the server allows this client.")),
        TokenWord(
            "RFC 6749", "invalid_request",
            means: .settings(advice: " Check the values of `token.parameters` and `token.audience`.")),
        TokenWord(
            "RFC 6749", "unsupported_grant_type",
            means: .settings(advice: " Check `token.grant`, and which grants the server allows this client.")),
        TokenWord(
            "RFC 8707", "invalid_target",
            means: .settings(advice: " Check `token.audience` and `token.parameters`.")),
        TokenWord("RFC 6749", "server_error", means: .temporary),
        TokenWord("RFC 6749", "temporarily_unavailable", means: .temporary),
        TokenWord("RFC 8628", "authorization_pending", means: .temporary),
        TokenWord("RFC 8628", "slow_down", means: .temporary),
        TokenWord("OpenID Connect", "consent_required", means: .person),
        TokenWord("OpenID Connect", "interaction_required", means: .person),
        TokenWord("OpenID Connect", "login_required", means: .person),
        // GitHub answers with 200; HubSpot has `BAD_REFRESH_TOKEN` in `status`.
        TokenWord("GitHub", "bad_refresh_token", means: .rejected),
        TokenWord("GitHub", "bad_verification_code", means: .rejected),
        TokenWord("GitHub", "incorrect_client_credentials", means: .rejected),
        TokenWord("Slack", "bad_client_secret", means: .rejected),
        // MobileFirst has `INVALID_CLIENT_ID` in `errorCode`.
        TokenWord("Slack", "invalid_client_id", means: .rejected),
        TokenWord("Slack", "invalid_refresh_token", means: .rejected),
        TokenWord("Slack", "account_inactive", means: .locked),
        TokenWord("Slack", "fatal_error", means: .temporary),
        TokenWord("Slack", "internal_error", means: .temporary),
        TokenWord("Slack", "ratelimited", means: .temporary),
        TokenWord("Slack", "request_timeout", means: .temporary),
        TokenWord("Slack", "service_unavailable", means: .temporary),
        TokenWord("Salesforce", "inactive_org", means: .locked),
        TokenWord("Salesforce", "inactive_user", means: .locked),
        TokenWord("Salesforce", "rate_limit_exceeded", means: .temporary),
        TokenWord("Auth0", "too_many_attempts", means: .locked),
        TokenWord("Auth0", "mfa_required", means: .person),
        TokenWord("Auth0", "requires_validation", means: .person),
        TokenWord("Auth0", "too_many_requests", means: .temporary),
        TokenWord(
            "distribution", "denied",
            means: .scope(advice: " The token service does not allow this credential that repository or action.")),
        TokenWord("distribution", "toomanyrequests", means: .temporary),
        TokenWord("distribution", "unavailable", means: .temporary),
    ]
}

extension TokenWord {
    /// Sentence that names the recipe of the vendor whose word it is, with a space before it; empty without one.
    var recipe: String { Self.recipes[source].map { " See docs/vendors.md, \"\($0)\"." } ?? "" }

    /// Headings in docs/vendors.md by source.
    private static let recipes = [
        "Auth0": "Auth0", "Google": "Google APIs", "Keycloak": "Keycloak",
        "Microsoft Entra": "Microsoft Entra and Graph", "Salesforce": "Salesforce",
    ]

    /// Words that servers also use for a client that they do not know: Auth0, distribution and Keycloak among them.
    static let unspecific: Set = ["access_denied", "denied", "invalid_request", "unauthorized_client"]
    /// Words for the claims of an assertion that time makes invalid, as Entra, Google, Keycloak and Okta use them.
    static let ofAssertionTime = [
        "already been used", "clock", "exp", "expiration", "expired", "iat", "in the future", "into the future",
        "issued at", "jti", "nbf", "not active", "not yet valid", "reasonable timeframe", "replay", "replayed",
        "time range",
    ]
    /// Words for other faults of an assertion, or for what a request holds beside it.
    static let ofOtherFaults = [
        "certificate", "key", "password", "refresh token", "refresh_token", "secret", "signature",
    ]
    /// Words for an assertion.
    static let ofAssertion = ["assertion", "client_assertion", "jwt"]
}
