// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension MobileFirstState {
    /// Answers `az/v1/authorization` with a grant code by redirect, or with the fields of the redirect.
    mutating func authorize(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        let fields = call.request.queryFields
        guard call.request.method == "GET" else { return refusal("BAD_REQUEST", "Only GET.", status: 405) }
        guard call.path == "az/v1/authorization" else {
            return .json(200, .object(fields.pairs.map { JSONMember($0.name, .string($0.value)) }))
        }
        guard fields.isWellFormed, let id = fields["client_id"], let redirect = fields["redirect_uri"],
            fields["response_type"] == "code"
        else {
            notes.violation("authorization: response_type=code, client_id or redirect_uri is missing")
            return refusal("BAD_REQUEST", "response_type=code, client_id, scope and redirect_uri are needed.")
        }
        guard let client = clients[id] else { return unknownClientResponse }
        guard isAllowed(redirect, client: id, basePath: call.basePath) else {
            notes.violation("authorization: redirect_uri is not the client's")
            return refusal("INVALID_REDIRECT_URI", "redirect_uri is not the client's.")
        }
        let scope = fields["scope"] ?? ""
        guard let checks = rules.checks(inScope: scope) else {
            return redirection(redirect, "error=invalid_scope&errorMsg=Unknown%20scope")
        }
        // A check may have lapsed since it was put by preauthorize.
        guard checks.allSatisfy({ client.checks[$0.name]?.isSuccess(for: $0, now: call.now) == true }) else {
            return redirection(redirect, "error=access_denied&errorMsg=Security%20checks%20not%20satisfied")
        }
        let code = String(UInt64.random(in: 1_000_000_000 ... .max))
        codes = codes.filter { $0.value.expires > call.now }
        codes[code] = Code(client: id, scope: scope, redirect: redirect, expires: call.now + 60_000)
        return redirection(redirect, "code=\(code)")
    }

    private func redirection(_ address: String, _ query: String) -> FakeResponse {
        FakeResponse(302, fields: [("Location", "\(address)?\(query)"), ("Cache-Control", "no-store")])
    }

    private func isAllowed(_ redirect: String, client: String, basePath: String) -> Bool {
        redirect == "http://mfpredirecturi" || redirect == "https://mfpredirecturi"
            || redirect.hasSuffix("\(basePath)/az/v1/authorization/redirect/\(client)")
    }
}

extension MobileFirstState {
    /// `az/v1/token`: a token for a grant code, or for a confidential client.
    mutating func issueToken(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        guard call.request.method == "POST", let form = call.request.form, form.isWellFormed else {
            return wrong("invalid_request", "A form is needed.", &notes)
        }
        switch form["grant_type"] {
        case "authorization_code": return exchange(form, call, &notes)
        case "client_credentials": return grant(form, call, &notes)
        default: return wrong("unsupported_grant_type", "No such grant_type here.", &notes)
        }
    }

    private mutating func exchange(
        _ form: FormFields, _ call: MobileFirstCall, _ notes: inout MobileFirstNotes
    ) -> FakeResponse {
        guard let id = form["client_id"] ?? assertedClient(form), let code = form["code"] else {
            return wrong("invalid_request", "code and client_id or client_assertion are needed.", &notes)
        }
        guard let client = clients[id] else { return unknownClientResponse }
        if let problem = assertionProblem(form, client: id, code: code, now: call.now) {
            return wrong("invalid_client", problem, &notes)
        }
        // A code is valid once: in any case it is removed (RFC 6749 §4.1.2).
        guard let grant = codes.removeValue(forKey: code), grant.client == id, grant.expires > call.now,
            grant.redirect == form["redirect_uri"]
        else {
            return wrong(
                "invalid_grant", "The code is not this client's, not good any more, or its address differs.", &notes)
        }
        let checks = rules.checks(inScope: grant.scope) ?? []
        let lives = checks.map { client.checks[$0.name]?.secondsLeft(for: $0, now: call.now) ?? 0 }
        return issue(grant.scope, to: id, seconds: min(lives.min() ?? .max, rules.tokenLife), now: call.now, &notes)
    }

    private mutating func grant(
        _ form: FormFields, _ call: MobileFirstCall, _ notes: inout MobileFirstNotes
    ) -> FakeResponse {
        let given = call.request.basicCredentials
        guard
            let client = rules.confidentialClients.first(where: { $0.id == given?.user && $0.secret == given?.password }
            )
        else {
            return .json(401, ["error": "invalid_client"], fields: [("WWW-Authenticate", "Basic realm=\"mfp\"")])
        }
        let scope = form["scope"].flatMap { $0.isEmpty ? nil : $0 } ?? "RegisteredClient"
        guard client.isAllowed(scope) else { return .json(403, ["error": "invalid_scope"]) }
        return issue(scope, to: client.id, seconds: rules.tokenLife, now: call.now, &notes)
    }

    private mutating func issue(
        _ scope: String, to client: String, seconds: Int64, now: Int64, _ notes: inout MobileFirstNotes
    ) -> FakeResponse {
        let payload: JSON = [
            "iss": "com.ibm.mfp", "sub": .string(client), "aud": "com.ibm.mfp", "exp": .integer(now + seconds * 1000),
            "scope": .string(scope), "jti": .string(randomName()),
        ]
        let header: JSON = ["alg": "RS256", "jwk": ["kty": "RSA", "e": "AQAB"]]
        // Opaque to its holder, and known here by its text: its signature is not checked.
        let signature = (0..<8).map { _ in randomName() }.joined()
        let token = [header.bytes, payload.bytes, Array(signature.utf8)].map(Base64.encodeURL).joined(separator: ".")
        let truth = min(rules.earlyExpiry ?? seconds, seconds)
        tokens = tokens.filter { $0.value.expires > now }
        let elements = Set(scope.split(separator: " ").map(String.init))
        tokens[token] = Token(
            client: client, scope: elements.union(["RegisteredClient"]), expires: now + truth * 1000)
        notes.record { $0.tokens.append(scope) }
        return .json(
            200,
            [
                "access_token": .string(token), "token_type": "Bearer", "expires_in": .integer(seconds),
                "scope": .string(scope),
            ], fields: [("Cache-Control", "no-store"), ("Pragma", "no-cache")])
    }

    private func wrong(_ error: String, _ description: String, _ notes: inout MobileFirstNotes) -> FakeResponse {
        notes.violation("token: \(description)")
        return .json(400, ["error": .string(error), "error_description": .string(description)])
    }
}

extension MobileFirstState {
    /// Returns the fault of the client assertion among those fields, in words; `nil` if it is right.
    ///
    /// `exp` counts milliseconds. `aud` and `iat` are not examined, as the product evidently does not.
    func assertionProblem(_ fields: FormFields, client id: String, code: String?, now: Int64) -> String? {
        guard let client = clients[id] else { return "the client is unknown" }
        guard fields["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" else {
            return "client_assertion_type is not that of a JWT"
        }
        guard let assertion = fields["client_assertion"].flatMap(SignedToken.init(compact:)) else {
            return "client_assertion is no signed token"
        }
        guard assertion.isSigned(by: client.key) else { return "client_assertion is not signed by the client's key" }
        guard assertion.header["jwk"]?["kid"]?.string == id else {
            return "the kid of client_assertion is not the client"
        }
        guard assertion.payload["sub"]?.string == id else { return "sub is not the client" }
        guard assertion.payload["iss"]?.string == client.issuer else { return "iss is not the application" }
        guard let expiry = assertion.payload["exp"]?.integer, expiry > now else {
            return "exp is over (milliseconds in the server's clock)"
        }
        guard (assertion.payload["jti"] ?? .null) == (code.map(JSON.string) ?? .null) else {
            return "jti is not the grant code"
        }
        return nil
    }

    /// Returns the client named by an assertion, before its verification.
    func assertedClient(_ fields: FormFields) -> String? {
        fields["client_assertion"].flatMap(SignedToken.init(compact:))?.payload["sub"]?.string
    }
}
