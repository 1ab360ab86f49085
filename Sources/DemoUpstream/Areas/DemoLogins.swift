// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// Login page with `j_security_check`, as in Tomcat: user ann, password demo.
///
/// Every login creates a session with a new, unpredictable identifier.
final class FormArea: DemoArea {
    private struct Session {
        /// Target of the redirect after a login.
        var target: String
        var isLoggedIn = false
    }

    let path = "/form/"
    private let tell: DemoTeller
    private let sessions = Mutex<[String: Session]>([:])

    init(tell: @escaping DemoTeller) { self.tell = tell }

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        let id = request.cookie("JSESSIONID")
        let session = id.flatMap { id in sessions.withLock { $0[id] } }
        if request.path.hasSuffix("/j_security_check") { return submit(request, id, session) }
        if session?.isLoggedIn == true { return inside(request) }
        tell(.loginPageServed(path: request.path))
        return .html(
            200,
            """
            Please log in.
            <form method="POST" action="j_security_check">
            <input type="text" name="j_username"><input type="password" name="j_password"><input type="submit">
            </form>
            """, [add(Session(target: request.target))])
    }

    private func submit(_ request: DemoRequest, _ id: String?, _ session: Session?) -> DemoResponse {
        guard request.formValue("j_username") == "ann", request.formValue("j_password") == "demo" else {
            tell(.answerRejected(check: "form"))
            return .html(200, "Invalid username or password.")
        }
        tell(.answerAccepted(check: "form"))
        guard let id, let session else {
            return .html(408, "The time allowed for the login process has been exceeded.")
        }
        _ = sessions.withLock { $0.removeValue(forKey: id) }
        return DemoResponse(
            303, fields: [("Location", session.target), add(Session(target: session.target, isLoggedIn: true))])
    }

    /// Stores a session, and returns its cookie.
    private func add(_ session: Session) -> (name: String, value: String) {
        let id = Samples.randomName()
        sessions.withLock { sessions in
            // Enough for a demonstration.
            if sessions.count > 10_000 { sessions.removeAll() }
            sessions[id] = session
        }
        return ("Set-Cookie", "JSESSIONID=\(id); Path=/form; HttpOnly")
    }
}

/// Resources that name a security check in their responses, with PIN 1234 and three attempts.
///
/// 401 with `{"challenges": …}`, answered at `/checks/login`. A login sets the cookie `checks`.
final class CheckArea: DemoArea {
    private struct State {
        var sessions: Set<String> = []
        var attempts: Int64 = 3
    }

    let path = "/checks/"
    private let tell: DemoTeller
    private let state = Mutex(State())

    init(tell: @escaping DemoTeller) { self.tell = tell }

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        if request.path == "/checks/login" { return login(request) }
        let id = request.cookie("checks") ?? ""
        let (isLoggedIn, attempts) = state.withLock { ($0.sessions.contains(id), $0.attempts) }
        if isLoggedIn { return inside(request) }
        tell(.challengeIssued(check: "checks", attempts: attempts))
        return challenge(attempts)
    }

    private func login(_ request: DemoRequest) -> DemoResponse {
        guard let answer = request.json?["challengeResponse"]?["PinCode"] else {
            return .json(400, ["error": "no answer"])
        }
        let id = Samples.randomName()
        let (isRight, attempts) = state.withLock { state in
            let isRight = state.attempts > 0 && answer == ["pin": "1234"]
            state.attempts = isRight ? 3 : max(0, state.attempts - 1)
            if state.sessions.count > 10_000 { state.sessions.removeAll() }
            if isRight { state.sessions.insert(id) }
            return (isRight, state.attempts)
        }
        tell(isRight ? .answerAccepted(check: "checks") : .answerRejected(check: "checks"))
        if isRight {
            return .json(
                200, ["successes": ["PinCode": [:]]], [("Set-Cookie", "checks=\(id); Path=/checks; HttpOnly")])
        }
        return attempts > 0
            ? challenge(attempts) : .json(403, ["failures": ["PinCode": ["failure": "Account blocked"]]])
    }

    private func challenge(_ attempts: Int64) -> DemoResponse {
        .json(401, ["challenges": ["PinCode": ["remainingAttempts": .integer(attempts)]]])
    }
}

/// OAuth 2 server and its resources (RFC 6749, RFC 6750): `/oauth/token` for the client demo, `/oauth/api/…`.
final class TokenArea: DemoArea {
    let path = "/oauth/"
    private let tell: DemoTeller
    private let now: DemoClock
    /// Expiry times of the tokens, in ms since 1970.
    private let tokens = Mutex<[String: Int64]>([:])
    /// Lifetime of a token, in seconds.
    private static let lifetime: Int64 = 300

    init(now: @escaping DemoClock, tell: @escaping DemoTeller) {
        self.now = now
        self.tell = tell
    }

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        if request.path == "/oauth/token" { return token(request) }
        let given = request.authorization("Bearer")
        let end = given.flatMap { given in tokens.withLock { $0[given] } }
        if let end, now() < end { return inside(request) }
        let challenge = "Bearer realm=\"api\"\(given == nil ? "" : ", error=\"invalid_token\"")"
        tell(.unauthorized(path: request.path, challenge: challenge))
        return .unauthorized(challenge)
    }

    private func token(_ request: DemoRequest) -> DemoResponse {
        guard request.formValue("grant_type") == "client_credentials" else {
            return .json(400, ["error": "unsupported_grant_type"])
        }
        guard isClient(request) else {
            tell(.answerRejected(check: "oauth"))
            return .json(401, ["error": "invalid_client"], [("WWW-Authenticate", "Basic realm=\"oauth\"")])
        }
        tell(.answerAccepted(check: "oauth"))
        let token = "token-\(Samples.randomName())"
        let now = now()
        tokens.withLock { tokens in
            tokens = tokens.filter { now < $0.value }
            tokens[token] = now + Self.lifetime * 1000
        }
        tell(.tokenIssued(scope: "read", seconds: Self.lifetime))
        return .json(
            200,
            [
                "access_token": .string(token), "token_type": "bearer", "scope": "read",
                "expires_in": .integer(Self.lifetime),
            ], [("Cache-Control", "no-store")])
    }

    /// Checks client and secret, form-encoded in Basic or in the body (RFC 6749 §2.3.1).
    private func isClient(_ request: DemoRequest) -> Bool {
        let basic = request.basicCredentials.map { pair in
            [pair.user, pair.password].map { FormEncoding.value(of: "value", in: "value=\($0)") }
        }
        return (basic ?? [request.formValue("client_id"), request.formValue("client_secret")])
            == ["demo", "demo:secret+%"]
    }
}
