// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
        // Good once: whatever comes of it, the code is gone (RFC 6749 §4.1.2).
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
        // Opaque to its holder, and known here by its text: nobody checks this signature.
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
