// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// Bank whose adapter is protected by a MobileFirst 8.0 server with the security check PinCodeAttempts.
///
/// The scope element `accessRestricted` maps to the check. The client's identity is trusted and no signature is
/// verified: that is the task of the tests' servers.
final class Bank: Sendable {
    /// Path of the server's API.
    static let api = "/mfp/api/"
    private static let check = "PinCodeAttempts"
    private let state = Mutex(BankState())
    private let tell: DemoTeller
    private let now: DemoClock

    init(now: @escaping DemoClock, tell: @escaping DemoTeller) {
        self.now = now
        self.tell = tell
    }

    /// Answers a request below `api`; `serve` runs the resource.
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

    /// Issues a grant code, in a redirect.
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
            // Valid once: the code is removed in any case (RFC 6749 §4.1.2).
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

    /// Returns the challenge to a request without the right token, or nil (RFC 6750 §3).
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
            // A comma after `error` and nowhere else, as the product writes it.
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

/// Resource of the adapter `bank`.
enum BankResource: String {
    case balance
    case stream
    case transfer
    case whoami

    /// Finds the resource of a path below the API.
    init?(_ path: Substring) {
        let start = "adapters/bank/"
        guard path.hasPrefix(start) else { return nil }
        self.init(rawValue: String(path.dropFirst(start.count)))
    }

    /// Required element of the scope; `whoami` accepts any registered client.
    var scope: String { self == .whoami ? "RegisteredClient" : "accessRestricted" }

    /// Answers an authorized request.
    func answer(_ request: DemoRequest) -> DemoResponse {
        guard self == .whoami || (request.method == "POST") == (self == .transfer) else {
            return DemoResponse(405, fields: [("Allow", self == .transfer ? "POST" : "GET")])
        }
        switch self {
        case .balance: return .json(200, ["account": "12-345-678", "balance": "$1,438.20", "currency": "USD"])
        case .stream: return Samples.stream(request)
        case .transfer:
            return .json(
                201, ["receipt": .string(String(Samples.randomName().prefix(12))), "request": request.json ?? .null])
        case .whoami: return Samples.echo(request)
        }
    }
}

struct BankState {
    /// Grant code, valid once and for one client.
    struct Code {
        var client: String
        var scope: String
    }

    /// Access token.
    struct Token {
        var scope: Set<String>
        var end: Int64
    }

    /// Registered clients, each with its state of the security check.
    var clients: [String: PinCheck] = [:]
    var codes: [String: Code] = [:]
    var tokens: [String: Token] = [:]

    /// Registers a client, and returns its identifier.
    mutating func register() -> String {
        let id = Samples.randomName()
        // Enough for a demonstration.
        if clients.count > 10_000 { clients.removeAll() }
        clients[id] = PinCheck()
        return id
    }

    /// Issues a token for that scope, and returns it.
    mutating func issue(_ scope: String, seconds: Int64, now: Int64) -> String {
        let token = (0..<4).map { _ in Samples.randomName() }.joined(separator: ".")
        tokens = tokens.filter { now < $0.value.end }
        tokens[token] = Token(
            scope: Set(scope.split(separator: " ").map(String.init)).union(["RegisteredClient"]),
            end: now + seconds * 1000)
        return token
    }
}

/// Security check PinCodeAttempts for one client, as in IBM's sample: PIN 1234, three attempts.
///
/// Three wrong answers block the check for a minute, and a success lasts ten minutes. Times are in ms since 1970.
struct PinCheck {
    /// Result for a request.
    enum Outcome: Equatable {
        /// An answer is required.
        case challenge(remaining: Int64, message: String?)
        /// The check is blocked.
        case failure
        /// The check has succeeded.
        case success
    }

    private var wrong: Int64 = 0
    private var message: String?
    private var blockedUntil: Int64 = 0
    private var successUntil: Int64 = 0

    /// Handles a request with or without an answer.
    mutating func handle(_ answer: JSONValue?, now: Int64) -> Outcome {
        // The answer is ignored.
        if now < blockedUntil { return .failure }
        if answer == nil, now < successUntil { return .success }
        guard let answer else { return .challenge(remaining: 3 - wrong, message: message) }
        successUntil = 0
        if answer["pin"] == "1234" {
            self = PinCheck()
            successUntil = now + 600_000
            return .success
        }
        wrong += 1
        guard wrong < 3 else {
            self = PinCheck()
            blockedUntil = now + 60_000
            return .failure
        }
        message = "Pin code is not valid. Hint: 1234"
        return .challenge(remaining: 3 - wrong, message: message)
    }

    /// Returns the seconds until the success expires; nil if there is none.
    func secondsLeft(now: Int64) -> Int64? { now < successUntil ? (successUntil - now) / 1000 : nil }
}
