// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The changes of the record by a token request.
struct OAuthNotes {
    /// The credential that arrived; `nil` if there was none.
    var answer: JSON?
    var isRejected = false
    var scopes: [String] = []
    var violations: [String] = []
}

/// The server's state.
struct OAuthState: Sendable {
    struct Token: Sendable {
        var scope: Set<String>
        var ends: Int64
        var line: Int
    }

    struct RefreshGrant: Sendable {
        var client: String
        var scope: String
        /// Number of the consent from which it comes; a revocation applies to all of that consent.
        var line: Int
        var isUsed = false
    }

    var rules = OAuthRules()
    var tokens: [String: Token] = [:]
    var refreshTokens: [String: RefreshGrant] = [:]
    var refusedTokens = 0
    private var lines = 0
    private var assertions: Set<String> = []

    /// Returns the scope of a valid token.
    func scope(of token: String, now: Int64) -> Set<String>? {
        tokens[token].flatMap { $0.ends > now ? $0.scope : nil }
    }

    mutating func beginLine(of client: String, scope: String) -> String {
        lines += 1
        return refreshToken(RefreshGrant(client: client, scope: scope, line: lines))
    }

    mutating func revoke(line: Int) {
        tokens = tokens.filter { $0.value.line != line }
        refreshTokens = refreshTokens.filter { $0.value.line != line }
    }

    private mutating func refreshToken(_ grant: RefreshGrant) -> String {
        let name = "refresh-\(randomName())"
        refreshTokens[name] = grant
        return name
    }

    mutating func makeToken(scope: Set<String>, line: Int = 0, now: Int64) -> String {
        let token = "token-\(randomName())"
        tokens = tokens.filter { $0.value.ends > now }
        tokens[token] = Token(scope: scope, ends: now + rules.tokenLife * 1000, line: line)
        return token
    }

    /// Answers the token endpoint (RFC 6749 §3.2).
    mutating func issue(_ request: FakeRequest, now: Int64) -> (FakeResponse, OAuthNotes) {
        var notes = OAuthNotes()
        guard request.method == "POST", request.query == nil, let form = request.form, form.isWellFormed else {
            notes.violations.append("oauth: a token request is a POST of a form, without a query")
            return (wrong("invalid_request"), notes)
        }
        if Set(form.pairs.map(\.name)).count != form.pairs.count {
            notes.violations.append("oauth: a parameter stands twice")
            return (wrong("invalid_request"), notes)
        }
        let client = self.client(request, form, now: now, &notes)
        notes.answer = ["client": .string(client?.id ?? ""), "grant": .string(form["grant_type"] ?? "")]
        guard let client else {
            notes.isRejected = true
            return (wrong("invalid_client", status: 401, [("WWW-Authenticate", "Basic realm=\"oauth\"")]), notes)
        }
        return (grant(form, client, now: now, &notes), notes)
    }

    private mutating func grant(
        _ form: FormFields, _ client: OAuthRules.Client, now: Int64, _ notes: inout OAuthNotes
    ) -> FakeResponse {
        let grant = form["grant_type"] ?? ""
        guard ["client_credentials", "password", "refresh_token"].contains(grant) else {
            return wrong("unsupported_grant_type")
        }
        guard client.grants.contains(grant) else {
            notes.isRejected = true
            return wrong("unauthorized_client")
        }
        switch grant {
        case "password":
            guard let user = form["username"], rules.users[user] == form["password"] else {
                notes.isRejected = true
                return wrong("invalid_grant")
            }
            return give(form, line: 0, refreshToken: nil, now: now, &notes)
        case "refresh_token":
            return refresh(form, client, now: now, &notes)
        default:
            return give(form, line: 0, refreshToken: nil, now: now, &notes)
        }
    }

    private mutating func refresh(
        _ form: FormFields, _ client: OAuthRules.Client, now: Int64, _ notes: inout OAuthNotes
    ) -> FakeResponse {
        let name = form["refresh_token"] ?? ""
        guard let grant = refreshTokens[name], grant.client == client.id else {
            notes.isRejected = true
            return wrong("invalid_grant")
        }
        guard rules.rotates else { return give(form, line: grant.line, refreshToken: nil, now: now, &notes) }
        guard !grant.isUsed else {
            // A stolen token: the server cannot know which of the two users is right, so both lose theirs.
            revoke(line: grant.line)
            notes.isRejected = true
            return wrong("invalid_grant")
        }
        refreshTokens[name]?.isUsed = true
        let next = refreshToken(RefreshGrant(client: client.id, scope: grant.scope, line: grant.line))
        return give(form, line: grant.line, refreshToken: next, now: now, &notes)
    }

    private mutating func give(
        _ form: FormFields, line: Int, refreshToken: String?, now: Int64, _ notes: inout OAuthNotes
    ) -> FakeResponse {
        let scope = form["scope"] ?? rules.scopes.first ?? ""
        let words = Set(scope.split(separator: " ").map(String.init))
        guard words.isSubset(of: rules.scopes) else { return wrong("invalid_scope") }
        let token = makeToken(scope: words, line: line, now: now)
        notes.scopes.append(scope)
        var members: [JSONMember] = [
            JSONMember("access_token", .string(token)), JSONMember("token_type", "bearer"),
            JSONMember("scope", .string(scope)),
        ]
        if rules.tellsLife { members.append(JSONMember("expires_in", .integer(rules.tokenLife))) }
        if let refreshToken { members.append(JSONMember("refresh_token", .string(refreshToken))) }
        return .json(200, .object(members), fields: [("Cache-Control", "no-store")])
    }

    // MARK: Clients

    /// Returns the client (RFC 6749 §2.3): known by Basic, by the body, by an assertion, or a public client by its name
    /// alone.
    private mutating func client(
        _ request: FakeRequest, _ form: FormFields, now: Int64, _ notes: inout OAuthNotes
    ) -> OAuthRules.Client? {
        let ways = [request.field("Authorization"), form["client_secret"], form["client_assertion"]].compactMap(\.self)
        if ways.count > 1 { notes.violations.append("oauth: a client proves itself in several ways at once") }
        if let basic = request.basicCredentials {
            let (id, secret) = (decoded(basic.user), decoded(basic.password))
            return rules.clients.first { $0.id == id && $0.secret != nil && $0.secret == secret }
        }
        if let assertion = form["client_assertion"] { return client(asserting: assertion, form, now: now) }
        return rules.clients.first { client in
            client.id == form["client_id"] && client.key == nil && client.secret == form["client_secret"]
        }
    }

    /// RFC 7523 §3: issuer and subject are the client, it is for this endpoint, it has an end, and it comes once.
    private mutating func client(asserting text: String, _ form: FormFields, now: Int64) -> OAuthRules.Client? {
        guard form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            let assertion = SignedToken(compact: text), let issuer = assertion.payload["iss"]?.string,
            assertion.payload["sub"]?.string == issuer,
            let client = rules.clients.first(where: { $0.id == issuer }),
            let key = client.key.flatMap(RSAPublicKey.init), assertion.isSigned(by: key),
            assertion.payload["aud"]?.string?.hasSuffix("/oauth/token") == true,
            let end = assertion.payload["exp"]?.integer, end > now / 1000, end <= now / 1000 + 3600,
            let name = assertion.payload["jti"]?.string, assertions.insert(name).inserted
        else { return nil }
        return client
    }

    private func decoded(_ text: String) -> String { FormFields(parsing: Array("v=\(text)".utf8))["v"] ?? "" }

    private func wrong(
        _ error: String, status: Int = 400, _ fields: [(name: String, value: String)] = []
    ) -> FakeResponse {
        .json(status, ["error": .string(error)], fields: [("Cache-Control", "no-store")] + fields)
    }
}
