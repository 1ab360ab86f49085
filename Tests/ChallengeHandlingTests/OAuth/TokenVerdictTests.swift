// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

/// An answer of a token endpoint, and its meaning for the credential.
struct TokenRefusal: Sendable, CustomTestStringConvertible {
    /// Meanings, without what the verdict says.
    enum Meaning: Sendable {
        case accepted, rejected, locked, scope, assertion, ourFault, unclear
    }

    let server: String
    let status: Int
    let body: String
    var type = "application/json"
    var sent: Set<TokenWord.Sent> = []
    let meaning: Meaning

    init(
        _ server: String, _ status: Int, _ body: String, type: String = "application/json",
        sent: Set<TokenWord.Sent> = [], _ meaning: Meaning
    ) {
        self.server = server
        self.status = status
        self.body = body
        self.type = type
        self.sent = sent
        self.meaning = meaning
    }

    var testDescription: String { "\(server): \(status) \(body.prefix(120))" }

    var verdict: TokenVerdict {
        let response = SideResponse(status: status, fields: [.contentType: type], body: Array(body.utf8))
        return TokenVerdict(response, to: TokenQuestion(sent: sent), now: LoginRig.now)
    }

    var found: Meaning {
        switch verdict {
        case .accepted: .accepted
        case .rejected(.rejected, _): .rejected
        case .rejected(.locked, _): .locked
        case .scopeRefused: .scope
        case .assertionRefused: .assertion
        case .ourFault: .ourFault
        case .unclear: .unclear
        }
    }
}

extension TokenRefusal {
    static func error(_ word: String, _ description: String = "") -> String {
        #"{"error":"\#(word)","error_description":"\#(description)"}"#
    }

    static let rejections: [TokenRefusal] =
        [
            TokenRefusal("GitHub", 200, error("bad_verification_code", "The code passed is incorrect."), .rejected),
            TokenRefusal("GitHub", 200, error("bad_refresh_token"), sent: [.refreshToken], .rejected),
            TokenRefusal("GitHub", 200, error("incorrect_client_credentials"), .rejected),
            TokenRefusal(
                "GitHub as a form", 200, "error=bad_refresh_token&error_description=The+refresh+token+is+wrong",
                type: "application/x-www-form-urlencoded; charset=utf-8", sent: [.refreshToken], .rejected),
            TokenRefusal("RFC 6749", 400, error("invalid_client"), .rejected),
            TokenRefusal("RFC 6749", 400, error("invalid_grant"), .rejected),
            TokenRefusal("RFC 6749", 401, "", .rejected),
            TokenRefusal("RFC 6749", 401, error("no_known_word"), .rejected),
            TokenRefusal("in capitals", 400, error("INVALID_GRANT"), .rejected),
            TokenRefusal("any status", 403, error("invalid_grant"), .rejected),
            TokenRefusal("any status", 408, error("invalid_grant"), .rejected),
            TokenRefusal("any status", 500, error("invalid_grant"), .rejected),
            TokenRefusal("any status", 503, error("invalid_client"), .rejected),
            TokenRefusal("any status", 200, error("invalid_client"), .rejected),
            TokenRefusal("beside a token", 200, #"{"access_token":"t","error":"invalid_grant"}"#, .rejected),
            TokenRefusal("plain text", 400, #"{"error":"invalid_grant"}"#, type: "text/html", .rejected),
            TokenRefusal(
                "Keycloak", 401, error("unauthorized_client", "Invalid client or Invalid client credentials"), .rejected
            ),
            TokenRefusal("Keycloak", 400, error("unauthorized_client", "Invalid client secret"), .rejected),
            TokenRefusal("Keycloak", 400, error("unauthorized_client", "INVALID_CREDENTIALS: wrong"), .rejected),
            TokenRefusal("Keycloak", 400, error("unauthorized_client", "UNKNOWN_CLIENT: Client was not"), .rejected),
            TokenRefusal(
                "Keycloak", 401, error("invalid_grant", "Invalid user credentials"), sent: [.password], .rejected),
            TokenRefusal("Auth0", 401, error("access_denied", "Unauthorized"), .rejected),
            TokenRefusal(
                "Auth0", 403, error("access_denied", "Unknown or invalid refresh token."), sent: [.refreshToken],
                .rejected),
            TokenRefusal(
                "Auth0", 403, error("invalid_grant", "Wrong email or password."), sent: [.password], .rejected),
            TokenRefusal(
                "Okta", 401, #"{"errorCode":"invalid_client","errorSummary":"No client credentials."}"#, .rejected),
            TokenRefusal(
                "Entra", 400,
                #"{"error":"invalid_grant","error_description":"AADSTS700082: The refresh token has expired due to inactivity.","error_codes":[700082],"suberror":"bad_token"}"#,
                sent: [.refreshToken], .rejected),
            TokenRefusal(
                "Entra", 401, error("invalid_client", "AADSTS7000215: Invalid client secret provided."), .rejected),
            TokenRefusal("Slack", 200, #"{"ok":false,"error":"bad_client_secret"}"#, .rejected),
            TokenRefusal("Slack", 200, #"{"ok":false,"error":"invalid_refresh_token"}"#, .rejected),
            TokenRefusal("Salesforce", 400, error("invalid_grant", "authentication failure"), .rejected),
            TokenRefusal("Salesforce", 400, error("invalid_grant", "expired access/refresh token"), .rejected),
            TokenRefusal("Google", 400, error("invalid_grant", "Token has been expired or revoked."), .rejected),
            TokenRefusal(
                "Fitbit", 400, #"{"errors":[{"errorType":"invalid_grant","message":"Refresh token invalid"}]}"#,
                .rejected),
            TokenRefusal("an object", 400, #"{"error":{"code":"invalid_client","message":"no"}}"#, .rejected),
            TokenRefusal(
                "HubSpot", 400, #"{"status":"BAD_REFRESH_TOKEN","message":"missing or unknown refresh token"}"#,
                .rejected),
            TokenRefusal("distribution", 401, #"{"errors":[{"code":"UNAUTHORIZED","message":"wrong"}]}"#, .rejected),
            TokenRefusal("Docker Hub", 401, #"{"details":"incorrect username or password"}"#, .rejected),
            TokenRefusal("another's number", 400, #"{"error":"invalid_grant","code":50053}"#, .rejected),
            TokenRefusal("MobileFirst", 400, #"{"errorCode":"INVALID_CLIENT_ID"}"#, .rejected),
        ]
        + [
            ("better-auth", "session not found"), ("better-auth", "refresh token expired"),
            ("league/oauth2-server", "The refresh token is invalid."),
            ("Authlib", #"Invalid \"refresh_token\" in request."#),
        ].map { TokenRefusal($0.0, 400, error("invalid_request", $0.1), sent: [.refreshToken], .rejected) }

    static let locks: [TokenRefusal] = [
        TokenRefusal("Entra", 400, error("invalid_grant", "AADSTS50053: The account is locked."), .locked),
        TokenRefusal("Entra", 400, #"{"error":"invalid_grant","error_codes":[50057]}"#, .locked),
        TokenRefusal("Keycloak", 400, error("invalid_grant", "Account disabled"), sent: [.password], .locked),
        TokenRefusal("Auth0", 429, error("too_many_attempts", "Your account has been blocked"), .locked),
        TokenRefusal("Auth0", 401, error("unauthorized", "user is blocked"), .locked),
        TokenRefusal("Salesforce", 400, error("inactive_user", "user is inactive"), .locked),
        TokenRefusal("Salesforce", 400, error("invalid_grant", "inactive user"), .locked),
        TokenRefusal("Slack", 200, #"{"ok":false,"error":"account_inactive"}"#, .locked),
    ]

    static let scopes: [TokenRefusal] = [
        TokenRefusal("RFC 6749", 400, error("invalid_scope"), .scope),
        TokenRefusal("RFC 6749", 401, error("invalid_scope"), .scope),
        TokenRefusal("GitHub's status", 200, error("invalid_scope"), .scope),
        TokenRefusal("RFC 6749", 400, error("unauthorized_client"), .scope),
        TokenRefusal("RFC 6749", 503, error("unauthorized_client"), .scope),
        TokenRefusal("Auth0", 403, error("access_denied", "Client is not authorized to access this."), .scope),
        TokenRefusal("distribution", 403, #"{"errors":[{"code":"DENIED","message":"denied"}]}"#, .scope),
    ]

    static let assertions: [TokenRefusal] =
        [
            ("Entra", 401, "invalid_client", "AADSTS700024: Client assertion is not within its valid time range."),
            ("Okta", 401, "invalid_client", "The client_assertion token is expired."),
            ("Okta", 401, "invalid_client", "The client_assertion token has already been used."),
            ("Okta", 401, "invalid_client", "The client_assertion token has an expiration too far into the future."),
            ("Keycloak", 400, "invalid_client", "Client authentication with signed JWT failed: Token is not active"),
            ("Keycloak", 401, "unauthorized_client", "Token reuse detected: jti"),
            ("RFC 7523", 401, "invalid_client", "The assertion's nbf is not yet valid"),
            ("any status", 500, "invalid_client", "exp is in the past"),
            (
                "Google", 400, "invalid_grant",
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim."
            ),
        ].map { TokenRefusal($0.0, $0.1, error($0.2, $0.3), sent: [.assertion], .assertion) } + [
            TokenRefusal(
                "beside a refresh token", 400, error("invalid_grant", "JWT expired at 12:00"),
                sent: [.assertion, .refreshToken], .assertion)
        ]

    /// Rejections with words of time that are not about an assertion.
    static let noAssertions: [TokenRefusal] = [
        TokenRefusal("without an assertion", 401, error("invalid_client", "secret expired"), .rejected),
        TokenRefusal("the key", 401, error("invalid_client", "The key used is expired"), sent: [.assertion], .rejected),
        TokenRefusal(
            "a signature", 401, error("invalid_client", "bad signature of jti 7"), sent: [.assertion], .rejected),
        TokenRefusal("a word in a word", 401, error("invalid_client", "unexpected"), sent: [.assertion], .rejected),
        TokenRefusal(
            "the refresh token", 400, error("invalid_grant", "Refresh token expired"),
            sent: [.assertion, .refreshToken],
            .rejected),
        TokenRefusal(
            "the password", 400, error("invalid_grant", "expired"), sent: [.assertion, .password], .rejected),
        TokenRefusal("no text", 401, error("invalid_client"), sent: [.assertion], .rejected),
    ]

    static let faults: [TokenRefusal] = [
        TokenRefusal("RFC 6749", 400, error("invalid_request"), .ourFault),
        TokenRefusal("RFC 6749", 400, error("unsupported_grant_type"), .ourFault),
        TokenRefusal("RFC 6749", 401, error("unsupported_grant_type"), .ourFault),
        TokenRefusal("RFC 8707", 400, error("invalid_target"), .ourFault),
        TokenRefusal("Google", 400, error("invalid_request", "client_secret is missing."), .ourFault),
        TokenRefusal(
            "Entra", 400, error("invalid_request", "AADSTS901002: The 'resource' is not supported"), .ourFault),
        TokenRefusal("Entra", 401, error("invalid_client", "AADSTS700025: Client is public"), .ourFault),
        TokenRefusal("a redirect", 302, "", .ourFault),
        TokenRefusal(
            "no refresh token", 400, error("invalid_request", "refresh_token is missing"), sent: [.refreshToken],
            .ourFault),
        TokenRefusal("another grant", 400, error("invalid_request", "session not found"), .ourFault),
    ]

    static let unclear: [TokenRefusal] = [
        TokenRefusal("RFC 6749", 503, error("temporarily_unavailable"), .unclear),
        TokenRefusal("RFC 6749", 400, error("server_error"), .unclear),
        TokenRefusal("RFC 6749", 401, error("temporarily_unavailable"), .unclear),
        TokenRefusal("RFC 8628", 400, error("slow_down"), .unclear),
        TokenRefusal("RFC 8628", 200, error("authorization_pending"), .unclear),
        TokenRefusal("RFC 6585", 429, error("invalid_grant"), .unclear),
        TokenRefusal("RFC 6585", 429, "", .unclear),
        TokenRefusal("Auth0", 429, error("too_many_requests"), .unclear),
        TokenRefusal("Auth0", 401, error("requires_validation"), .unclear),
        TokenRefusal("Auth0", 403, error("mfa_required"), .unclear),
        TokenRefusal("Slack", 200, #"{"ok":false,"error":"ratelimited"}"#, .unclear),
        TokenRefusal("Entra", 400, error("interaction_required"), .unclear),
        TokenRefusal("Entra", 400, error("invalid_grant", "AADSTS50076: you must use MFA"), .unclear),
        TokenRefusal("Entra", 400, error("invalid_grant", "AADSTS53003: Access has been blocked"), .unclear),
        TokenRefusal("Entra", 401, error("invalid_client", "AADSTS700024: not within"), .unclear),
        TokenRefusal("DocuSign", 400, error("consent_required"), .unclear),
        TokenRefusal("Keycloak", 400, error("invalid_grant", "Account is not fully set up"), .unclear),
        TokenRefusal("Salesforce", 400, error("invalid_grant", "user hasn't approved this consumer"), .unclear),
        TokenRefusal("distribution", 429, #"{"errors":[{"code":"TOOMANYREQUESTS"}]}"#, .unclear),
        TokenRefusal("no word", 400, "", .unclear), TokenRefusal("no word", 403, "", .unclear),
        TokenRefusal("no word", 404, "", .unclear), TokenRefusal("no word", 500, "", .unclear),
        TokenRefusal("no known word", 200, error("x.y-z"), .unclear),
        TokenRefusal("a page", 200, "<html>invalid_grant</html>", type: "text/html", .unclear),
        TokenRefusal("a page", 503, "error=invalid_grant", type: "text/html", .unclear),
        TokenRefusal("no token", 200, "{}", .unclear), TokenRefusal("true", 200, #"{"error":true}"#, .unclear),
        TokenRefusal("a status", 200, #"{"status":"approved"}"#, .unclear),
    ]

    static let acceptances: [TokenRefusal] = [
        TokenRefusal("RFC 6749", 200, #"{"access_token":"t","token_type":"Bearer","expires_in":60}"#, .accepted),
        TokenRefusal("201", 201, #"{"access_token":"t"}"#, .accepted),
        TokenRefusal(
            "GitHub as a form", 200, "access_token=gho_t&scope=repo&token_type=bearer",
            type: "application/x-www-form-urlencoded", .accepted),
        TokenRefusal("a form as text", 200, "access_token=t&expires_in=60", type: "text/plain", .accepted),
        TokenRefusal("no error", 200, #"{"access_token":"t","error":null,"errors":[],"status":"approved"}"#, .accepted),
        TokenRefusal("no error", 200, #"{"access_token":"t","error":"","code":7}"#, .accepted),
        TokenRefusal("Slack", 200, #"{"ok":true,"access_token":"t","error":false}"#, .accepted),
    ]
}

@Suite("Verdicts of token endpoints")
struct TokenVerdictTests {
    @Test(
        "each server's answer has the meaning that its documentation gives it",
        arguments: TokenRefusal.rejections + TokenRefusal.locks + TokenRefusal.scopes + TokenRefusal.assertions
            + TokenRefusal.noAssertions + TokenRefusal.faults + TokenRefusal.unclear + TokenRefusal.acceptances)
    func meaning(of refusal: TokenRefusal) {
        #expect(refusal.found == refusal.meaning)
    }

    @Test("a statement has the status and the word, and of the server's text only a phrase of the table")
    func statement() {
        let refusal = TokenRefusal(
            "Keycloak", 400, TokenRefusal.error("invalid_grant", "Account disabled: ann s3cret"), .locked)
        #expect(
            refusal.verdict.statement.sentence
                == "The token endpoint answered with status 400 (invalid_grant, \"account disabled\").")
        #expect(refusal.verdict.step == "400 invalid_grant \"account disabled\", so the account is locked")
        let other = TokenRefusal("Entra", 400, TokenRefusal.error("invalid_grant", "AADSTS50053: ann"), .locked)
        #expect(other.verdict.statement.sentence.hasSuffix("status 400 (invalid_grant, AADSTS50053)."))
        #expect(TokenRefusal("x", 400, TokenRefusal.error("two words"), .unclear).verdict.step.hasPrefix("400,"))
    }

    @Test("every line of the table decides for some answer")
    func reachable() {
        for line in TokenWord.table {
            let text = ([line.code.map { "AADSTS\($0)" }] + line.phrases).compactMap(\.self).joined(separator: " ")
                .replacing("\"", with: "\\\"")
            var complaint: TokenComplaint?
            if let body = JSONValue(parsing: Array(TokenRefusal.error(line.error ?? "x", text).utf8)) {
                complaint = TokenComplaint(in: body)
            }
            #expect(complaint.map { line.phrases.allSatisfy($0.says) && (line.error ?? "x") == $0.word } == true)
            #expect(line.error == line.error?.lowercased() && line.phrases.allSatisfy { $0 == $0.lowercased() })
        }
    }

    @Test("a refusal of 1 MB and of 10,000 members is read without delay")
    func large() {
        let text = String(repeating: "aadsts account ", count: 4000)
        #expect(TokenRefusal("x", 400, TokenRefusal.error("invalid_grant", text), .rejected).found == .rejected)
        let codes = Array(repeating: "50053", count: 9000).joined(separator: ",")
        #expect(TokenRefusal("x", 400, "{\"error_codes\":[\(codes)]}", .locked).found == .locked)
    }
}
