// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Login as a confidential client of a MobileFirst 8.0 server (`grant: mobilefirst`). It sends a client identifier and
/// a secret to the token endpoint, and meets no challenges.
public struct ConfidentialClientLogin: SessionLogin {
    /// The token endpoint: `https://mfp.example.com/mfp/api/az/v1/token`.
    public let tokenURL: WebURL
    /// The challenge, the credential (fields `client-id` and `client-secret`), and the upstream's origin.
    public let key: LatchKey
    /// The requested scope; empty for the server's default, `RegisteredClient`.
    public let scope: Scope
    /// Time after which a latch closed by a rejection opens by itself; `nil` if it never does.
    public let retryRejectedAfter: Duration?

    /// Creates a login.
    public init(tokenURL: WebURL, key: LatchKey, scope: Scope = .empty, retryRejectedAfter: Duration? = nil) {
        self.tokenURL = tokenURL
        self.key = key
        self.scope = scope
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Requests a token and returns its session.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.lookUp(key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        let request = try request(for: use)
        let calls = MobileFirstCalls(name: key.challenge, conversation: conversation)
        try await use.submit(in: conversation)
        let sentAt = conversation.now()
        let response: SideResponse
        do throws(LoginFailure) {
            response = try await calls.sendThroughConflicts(request, "token")
        } catch {
            if error.isUnsent { await use.withdrawSubmission(in: conversation) }
            throw error
        }
        let verdict = TokenVerdict(response, to: TokenQuestion(), now: conversation.now())
        let endpoint = TokenEndpoint(name: key.challenge, conversation: conversation)
        endpoint.report("token: \(verdict.step)")
        if case .unclear(let statement) = verdict, response.status == 403 {
            // The secret was right: the server knows the client and refuses the scope.
            await use.withdrawSubmission(in: conversation)
            throw endpoint.failure(
                "The server does not allow the confidential client the scope \"\(scope)\". Add the scope to the client's "
                    + "allowed scope there, or change `scope`.", retryAt: statement.retryAt)
        }
        switch try endpoint.answer(verdict) {
        case .accepted(let token):
            await use.accept(in: conversation)
            return Session(
                fields: [TokenPlacement().field(carrying: token.value)], expiresAt: token.expiresAt(sentAt: sentAt))
        case .refused(let reason, let statement): throw await endpoint.rejection(of: use, reason, statement)
        }
    }

    /// Returns the token request. Identifier and secret go into Basic (RFC 7617 §2) unencoded: MobileFirst does not
    /// form-encode them first.
    private func request(for use: CredentialUse) throws(LoginFailure) -> SideRequest {
        var pair = try use.field("client-id").revealBytes()
        guard !pair.contains(UInt8(ascii: ":")) else {
            throw LoginFailure(
                .noCredential, challenge: key.challenge,
                detail:
                    "The field \"client-id\" of the credential \"\(key.credential)\" holds a colon, which Basic cannot "
                    + "carry.")
        }
        pair.append(UInt8(ascii: ":"))
        pair += try use.field("client-secret").revealBytes()
        var fields: [(name: String, value: Secret)] = [("grant_type", Secret("client_credentials"))]
        if !scope.isEmpty { fields.append(("scope", Secret("\(scope)"))) }
        var request = SideRequest.form(tokenURL, fields)
        request.fields[.authorization] = "Basic \(Base64.encode(pair))"
        return request
    }
}

extension TokenGrant {
    /// A confidential client of a MobileFirst server.
    package static let mobileFirst = TokenGrant(
        rawValue: "mobilefirst", neededFields: { clientCredentials.neededFields($0) },
        endpoint: { tokenEndpoint(of: $0) }
    ) { $0.mobileFirst }

    /// The token endpoint of an upstream's own MobileFirst server, or the address that it would have.
    fileprivate static func tokenEndpoint(of upstream: ProtectedUpstream) -> WebURL {
        let api = upstream.mobileFirst?.api ?? WebURL(origin: upstream.url.origin, path: "/mfp/api")
        return api.appending(path: "az/v1/token")
    }
}

extension TokenLogins {
    fileprivate var mobileFirst: Authenticator {
        let url = token.url ?? TokenGrant.tokenEndpoint(of: upstream)
        let (key, retry) = (latch(at: url.origin), retry)
        return authenticator(BearerDetector(realm: realm), servers: [url]) { occasion in
            ConfidentialClientLogin(tokenURL: url, key: key, scope: occasion.scope, retryRejectedAfter: retry)
        }
    }
}
