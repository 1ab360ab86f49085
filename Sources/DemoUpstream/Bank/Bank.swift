// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// A bank whose adapter a MobileFirst 8.0 server protects by the security check PinCodeAttempts, which the scope element
/// `accessRestricted` stands for.
///
/// It takes a client's word for who that is and checks no signature: that is for the servers of the tests.
final class Bank: Sendable {
    /// Where the server's API is.
    static let api = "/mfp/api/"
    private static let check = "PinCodeAttempts"
    private let state = Mutex(BankState())
    private let tell: DemoTeller
    private let now: DemoClock

    init(now: @escaping DemoClock, tell: @escaping DemoTeller) {
        self.now = now
        self.tell = tell
    }

    /// Answers a request below `api`; `serve` has a resource answer.
    func respond(
        to request: DemoRequest, serve: (DemoRequest, (DemoRequest) -> DemoResponse) -> DemoResponse
    ) -> DemoResponse {
        let path = request.path.dropFirst(Self.api.count)
        switch (request.method, path) {
        case ("POST", "registration/v1/self"): return register(request)
        case ("POST", "preauth/v1/preauthorize"): return preauthorize(request)
        case ("GET", "az/v1/authorization"): return authorize(request)
        case ("POST", "az/v1/token"): return token(request)
        default: break
        }
        guard let resource = BankResource(path) else { return refusal("NOT_FOUND", "No such resource.", status: 404) }
        if let refused = refused(request, needs: resource.scope) { return refused }
        return serve(request, resource.answer)
    }

    // MARK: The client

    private func register(_ request: DemoRequest) -> DemoResponse {
        guard
            let payload = request.json?["signedRegistrationData"]?["payload"]?.stringValue.flatMap({ Base64.decode($0) }
            ),
            let application = JSONValue(parsing: payload)?["application"]?["id"]?.stringValue
        else { return refusal("INVALID_REGISTRATION", "The application has no id.") }
        let id = state.withLock { $0.register() }
        tell(.clientRegistered(application: application))
        return DemoResponse(201, fields: [("Location", "\(Self.api)registration/clients/\(id)")])
    }

    private func preauthorize(_ request: DemoRequest) -> DemoResponse {
        guard let id = request.json?["client_id"]?.stringValue, let scope = request.json?["scope"]?.stringValue else {
            return refusal("BAD_REQUEST", "A JSON body with client_id and scope is needed.")
        }
        let now = now()
        var successes: [String: JSONValue] = ["clockSynchronization": ["serverTimeStamp": .integer(now)]]
        let answer = request.json?["challengeResponse"]?[Self.check]
        let outcome: PinCheck.Outcome? = state.withLock { state in
            needsCheck(scope) ? state.clients[id]?.handle(answer, now: now) : state.clients[id].map { _ in .success }
        }
        guard let outcome else { return unknownClient }
        if answer != nil {
            tell(outcome == .success ? .answerAccepted(check: Self.check) : .answerRejected(check: Self.check))
        }
        switch outcome {
        case .challenge(let remaining, let message):
            tell(.challengeIssued(check: Self.check, attempts: remaining))
            let challenge: JSONValue = [
                "errorMsg": message.map(JSONValue.string) ?? .null, "remainingAttempts": .integer(remaining),
            ]
            return .json(
                401, ["challenges": [Self.check: challenge], "successes": .object(successes)],
                [("WWW-Authenticate", "MFP-Challenge")])
        case .failure:
            tell(.checkFailed(check: Self.check, reason: "Account blocked"))
            return .json(403, ["failures": [Self.check: ["failure": "Account blocked"]]])
        case .success:
            if needsCheck(scope) { successes[Self.check] = [:] }
            return .json(200, ["successes": .object(successes)])
        }
    }

    /// A grant code, by a redirect.
    private func authorize(_ request: DemoRequest) -> DemoResponse {
        guard let id = request.queryValue("client_id"), request.queryValue("redirect_uri") == Self.redirect else {
            return refusal("BAD_REQUEST", "client_id and the application's redirect_uri are needed.")
        }
        let scope = request.queryValue("scope") ?? ""
        let now = now()
        let code = Samples.randomName()
        let isAllowed: Bool? = state.withLock { state in
            guard let client = state.clients[id] else { return nil }
            guard !needsCheck(scope) || client.secondsLeft(now: now) != nil else { return false }
            if state.codes.count > 10_000 { state.codes.removeAll() }
            state.codes[code] = BankState.Code(client: id, scope: scope)
            return true
        }
        guard let isAllowed else { return unknownClient }
        let outcome = isAllowed ? "code=\(code)" : "error=access_denied"
        return DemoResponse(302, fields: [("Location", "\(Self.redirect)?\(outcome)"), ("Cache-Control", "no-store")])
    }

    private func token(_ request: DemoRequest) -> DemoResponse {
        let now = now()
        let issued = state.withLock { state -> (token: String, scope: String, seconds: Int64)? in
            // Good once: whatever comes of it, the code is gone (RFC 6749 §4.1.2).
            guard let code = request.formValue("code").flatMap({ state.codes.removeValue(forKey: $0) }),
                code.client == request.formValue("client_id"), let client = state.clients[code.client]
            else { return nil }
            let seconds = needsCheck(code.scope) ? client.secondsLeft(now: now) ?? 0 : 3600
            return (state.issue(code.scope, seconds: seconds, now: now), code.scope, seconds)
        }
        guard let issued else { return .json(400, ["error": "invalid_grant"]) }
        tell(.tokenIssued(scope: issued.scope, seconds: issued.seconds))
        return .json(
            200,
            [
                "access_token": .string(issued.token), "token_type": "Bearer",
                "expires_in": .integer(issued.seconds), "scope": .string(issued.scope),
            ], [("Cache-Control", "no-store")])
    }

    // MARK: The resource

    /// The challenge to a request without the right token (RFC 6750 §3); `nil` where it may pass.
    private func refused(_ request: DemoRequest, needs scope: String) -> DemoResponse? {
        guard let text = request.authorization("Bearer") else {
            tell(.unauthorized(path: request.path, challenge: "no token"))
            return DemoResponse(401, fields: [("WWW-Authenticate", "Bearer")])
        }
        guard let token = state.withLock({ $0.tokens[text] }), now() < token.end else {
            tell(.unauthorized(path: request.path, challenge: "invalid_token"))
            return DemoResponse(401, fields: [("WWW-Authenticate", "Bearer error=\"invalid_token\"")])
        }
        guard token.scope.contains(scope) else {
            tell(.unauthorized(path: request.path, challenge: "insufficient_scope \(scope)"))
            // The comma after `error` and none elsewhere, as the product has it.
            let challenge = "Bearer error=\"insufficient_scope\", scope=\"RegisteredClient \(scope)\""
            return DemoResponse(403, fields: [("WWW-Authenticate", challenge)])
        }
        return nil
    }

    private static let redirect = "http://mfpredirecturi"

    private func needsCheck(_ scope: String) -> Bool {
        scope.split(separator: " ").contains { $0 == "accessRestricted" || $0 == Self.check }
    }

    private var unknownClient: DemoResponse { refusal("INVALID_CLIENT_ID", "The client is not registered.") }

    private func refusal(_ code: String, _ message: String, status: Int = 400) -> DemoResponse {
        .json(status, ["errorCode": .string(code), "errorMsg": .string(message)])
    }
}
