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

extension MobileFirstState {
    /// Answers `preauth/v1/preauthorize`: runs a scope's checks, with answers or without, and returns their outcomes.
    mutating func preauthorize(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        // The login page in front of it leads here after a login.
        if call.request.method == "GET", rules.guarded.contains(.preauthorize) { return FakeResponse(405) }
        guard call.request.method == "POST", let body = call.request.json, let id = body["client_id"]?.string else {
            notes.violation("preauthorize: no JSON body with a client_id")
            return refusal("BAD_REQUEST", "A JSON body with client_id and scope is needed.")
        }
        var answers = answers(in: body, &notes)
        guard clients[id] != nil else { return unknownClientResponse }
        guard let checks = rules.checks(inScope: body["scope"]?.string ?? "") else {
            return refusal("INVALID_SCOPE", "The scope holds an element that nobody knows.")
        }
        for name in answers.keys.sorted() where !checks.contains(where: { $0.name == name }) {
            notes.violation("preauthorize: answer for \(name), which the scope does not hold")
        }
        if rules.wantsAllAnswersTogether, let missing = missing(answers, checks, id, now: call.now) {
            notes.violation("preauthorize: answers without one for \(missing)")
            answers = [:]
        }
        return reply(outcomes(of: checks, answers, client: id, now: call.now, &notes), now: call.now)
    }

    /// Returns the answers in a body, and records them even if they are ignored, as their number leads to a lockout.
    private func answers(in body: JSON, _ notes: inout MobileFirstNotes) -> [String: JSON] {
        guard let given = body["challengeResponse"], given != .null else { return [:] }
        guard let members = given.members else {
            notes.violation("preauthorize: challengeResponse is no object")
            return [:]
        }
        for member in members {
            notes.record { $0.answers[member.name, default: []].append(member.value) }
        }
        return Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    }

    /// Returns a check that waits for an answer and gets none although another one does.
    private func missing(_ answers: [String: JSON], _ checks: [SecurityCheck], _ id: String, now: Int64) -> String? {
        guard !answers.isEmpty else { return nil }
        return checks.first { check in
            answers[check.name] == nil && check.failure == nil
                && clients[id]?.checks[check.name]?.isSuccess(for: check, now: now) != true
        }?.name
    }

    private mutating func outcomes(
        of checks: [SecurityCheck], _ answers: [String: JSON], client id: String, now: Int64,
        _ notes: inout MobileFirstNotes
    ) -> [(name: String, outcome: SecurityCheckState.Outcome)] {
        checks.map { check in
            let answer = answers[check.name]
            let starting = rules.startingAttempts[check.name] ?? check.properties.maxAttempts
            var state = clients[id]?.checks[check.name] ?? SecurityCheckState()
            let wasBlocked = state.isBlocked(for: check, now: now)
            let outcome = state.handle(
                answer, for: check, used: max(check.properties.maxAttempts - starting, 0), now: now)
            clients[id]?.checks[check.name] = state
            note(outcome, of: check.name, isAnswered: answer != nil, wasLookedAt: !wasBlocked, &notes)
            return (check.name, outcome)
        }
    }

    private func note(
        _ outcome: SecurityCheckState.Outcome, of name: String, isAnswered: Bool, wasLookedAt: Bool,
        _ notes: inout MobileFirstNotes
    ) {
        if case .success = outcome {
            guard isAnswered else { return }
            notes.record { $0.logins[name, default: 0] += 1 }
            return
        }
        if isAnswered, wasLookedAt {
            notes.record { $0.wrongAnswers[name, default: 0] += 1 }
        }
        if case .challenge = outcome { notes.record { $0.challenges[name, default: 0] += 1 } }
    }

    /// Returns the answer of the checks. A failure is sent alone; a challenge is sent beside the successes.
    private func reply(_ outcomes: [(name: String, outcome: SecurityCheckState.Outcome)], now: Int64) -> FakeResponse {
        var failures: [JSONMember] = []
        var challenges: [JSONMember] = []
        var successes = [JSONMember("clockSynchronization", ["serverTimeStamp": .integer(now)])]
        for (name, outcome) in outcomes {
            switch outcome {
            case .challenge(let value, _): challenges.append(JSONMember(name, value))
            case .failure(let value): failures.append(JSONMember(name, value))
            case .success(let value): successes.append(JSONMember(name, value))
            }
        }
        if !failures.isEmpty { return .json(403, ["failures": .object(failures)]) }
        if challenges.isEmpty { return .json(200, ["successes": .object(successes)]) }
        return .json(
            401, ["challenges": .object(challenges), "successes": .object(successes)],
            fields: [("WWW-Authenticate", "MFP-Challenge")])
    }
}

extension MobileFirstState {
    /// `preauth/v1/logout`: a check back to expired, and its remembered user forgotten. Tokens already issued stay good.
    mutating func logout(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        guard let id = asserted(call, &notes) else { return unassertedResponse(call) }
        guard let check = call.request.form?["security_check"], rules.named(check) != nil else {
            return refusal("BAD_REQUEST", "security_check names no check.")
        }
        clients[id]?.checks[check]?.logout()
        notes.record { $0.logouts.append(check) }
        return .json(200, .empty)
    }

    /// Answers `preauth/v1/heartbeat`.
    func heartbeat(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        asserted(call, &notes) == nil ? unassertedResponse(call) : .json(200, .empty)
    }

    private func asserted(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> String? {
        guard call.request.method == "POST", let form = call.request.form, let id = assertedClient(form),
            clients[id] != nil
        else { return nil }
        guard let problem = assertionProblem(form, client: id, code: nil, now: call.now) else { return id }
        notes.violation("\(call.path): \(problem)")
        return nil
    }

    private func unassertedResponse(_ call: MobileFirstCall) -> FakeResponse {
        guard let id = call.request.form.flatMap(assertedClient), clients[id] == nil else {
            return refusal("INVALID_ASSERTION", "The client assertion is missing or wrong.", status: 401)
        }
        return unknownClientResponse
    }
}
