// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Resources below `/worklight/` as a server of Worklight 6.x guards them: composite challenges in a comment, answered in
/// `Authorization`, a value against forged requests in each request. The realm PinRealm takes the PIN 1234.
package final class CompositeArea: Sendable {
    private struct Session {
        var instance = randomName()
        var device = randomName()
        var knowsDevice = false
        var isLoggedIn = false
        var end: ContinuousClock.Instant?
    }

    private let sessions = Mutex<[String: Session]>([:])
    private let recorder: Recorder
    /// The time at which sessions end by themselves.
    package let sessionEnd = SessionEnd()

    init(recorder: Recorder) {
        self.recorder = recorder
    }

    /// Ends every session.
    package func dropSessions() { sessions.withLock { $0.removeAll() } }

    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        let known = request.cookie("JSESSIONID").flatMap { id in
            sessions.withLock { $0[id].map { (id, $0) } }.flatMap { $0.1.end.isOver ? nil : $0 }
        }
        var (id, session) = known ?? (randomName(), Session(end: sessionEnd.instant))
        let attributes = "; Path=/worklight; HttpOnly\(sessionEnd.attributes)"
        let cookie = known == nil ? [(name: "Set-Cookie", value: "JSESSIONID=\(id)\(attributes)")] : []
        let mark = request.field("WL-Instance-Id") == session.instance
        let answers = answers(in: request)
        if let token = answers?["wl_deviceNoProvisioningRealm"]?["ID"]?["token"]?.string {
            session.knowsDevice = token == session.device
        }
        var isRejected = false
        if mark, session.knowsDevice, let pin = answers?["PinRealm"] {
            session.isLoggedIn = pin == ["pin": "1234"]
            isRejected = !session.isLoggedIn
            note(pin, isRight: session.isLoggedIn)
        }
        let state = session
        // One that was dropped meanwhile stays so.
        sessions.withLock { if known == nil || $0[id] != nil { $0[id] = state } }
        if isRejected {
            return secure(403, ["WL-Authentication-Failure": ["PinRealm": ["reason": "wrong PIN"]]], cookie)
        }
        guard mark, session.knowsDevice else {
            return challenge(
                [
                    JSONMember("wl_antiXSRFRealm", ["WL-Instance-Id": .string(session.instance)]),
                    JSONMember("wl_deviceNoProvisioningRealm", ["token": .string(session.device)]),
                ], cookie)
        }
        guard session.isLoggedIn else { return challenge([JSONMember("PinRealm", ["message": "PIN?"])], cookie) }
        let success: JSON = ["WL-Authentication-Success": ["PinRealm": ["userId": "ann"]]]
        if request.path.hasSuffix("/authenticate") { return secure(200, success, cookie) }
        if sessionEnd.isLast() { dropSessions() }
        // A request that carries right answers is carried out like any other.
        var response = inside(request)
        if answers != nil, let realms = success["WL-Authentication-Success"] {
            response.fields.append(("WL-Authentication-Success", realms.text))
        }
        return response
    }

    private func answers(in request: FakeRequest) -> JSON? {
        guard let given = request.field("Authorization") else { return nil }
        if given == "wl-authorization-in-body" { return JSON(parsing: request.body) }
        let answers = JSON(parsing: Array(given.utf8))
        if answers?.members == nil { recorder.note { $0.violations.append("worklight: Authorization is no JSON") } }
        return answers
    }

    private func note(_ answer: JSON, isRight: Bool) {
        recorder.note { record in
            record.answers["PinRealm", default: []].append(answer)
            if isRight {
                record.logins["PinRealm", default: 0] += 1
            } else {
                record.wrongAnswers["PinRealm", default: 0] += 1
            }
        }
    }

    private func challenge(_ realms: [JSONMember], _ cookie: [(name: String, value: String)]) -> FakeResponse {
        for realm in realms {
            recorder.note { $0.challenges[realm.name, default: 0] += 1 }
        }
        return secure(
            401, ["challenges": .object(realms)], cookie + [("WWW-Authenticate", "WL-Composite-Challenge")])
    }

    private func secure(_ status: Int, _ value: JSON, _ fields: [(name: String, value: String)]) -> FakeResponse {
        FakeResponse(
            status, fields: [("Content-Type", "application/json; charset=UTF-8")] + fields,
            body: Array("/*-secure-\n\(value.text)*/".utf8))
    }
}

/// Resources that name a security check themselves: 401 with `{"challenges": …}`, answered at `/checks/login`; PIN
/// 1234, three attempts. The session is the cookie `checks`.
package final class CheckArea: Sendable {
    private struct State {
        var sessions: [String: ContinuousClock.Instant?] = [:]
        var attempts: Int64 = 3
    }

    private let state = Mutex(State())
    private let recorder: Recorder
    /// The time at which sessions end by themselves.
    package let sessionEnd = SessionEnd()

    init(recorder: Recorder) {
        self.recorder = recorder
    }

    /// Ends every session.
    package func dropSessions() { state.withLock { $0.sessions.removeAll() } }

    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        if request.path == "/checks/login" { return login(request) }
        let end = request.cookie("checks").flatMap { id in state.withLock { $0.sessions[id] } }
        guard let end, !end.isOver else { return challenge(request) }
        if sessionEnd.isLast() { dropSessions() }
        return inside(request)
    }

    private func challenge(_ request: FakeRequest) -> FakeResponse {
        let attempts = state.withLock { $0.attempts }
        recorder.note { $0.challenges["checks", default: 0] += 1 }
        return .json(401, ["challenges": ["PinCode": ["remainingAttempts": .integer(attempts)]]])
    }

    private func login(_ request: FakeRequest) -> FakeResponse {
        guard request.method == "POST", let answer = request.json?["challengeResponse"]?["PinCode"] else {
            recorder.note { $0.violations.append("checks: an answer is a POST of JSON with challengeResponse") }
            return .json(400, ["error": "no answer"])
        }
        let isRight = answer == ["pin": "1234"]
        let id = randomName()
        let attempts = state.withLock { state in
            state.attempts = isRight ? 3 : max(0, state.attempts - 1)
            if isRight { state.sessions[id] = .some(sessionEnd.instant) }
            return state.attempts
        }
        recorder.note { record in
            record.answers["checks", default: []].append(answer)
            if isRight {
                record.logins["checks", default: 0] += 1
            } else {
                record.wrongAnswers["checks", default: 0] += 1
            }
        }
        if isRight {
            return .json(
                200, ["successes": ["PinCode": [:]]],
                fields: [("Set-Cookie", "checks=\(id); Path=/checks; HttpOnly\(sessionEnd.attributes)")])
        }
        guard attempts > 0 else { return .json(403, ["failures": ["PinCode": ["failure": "Account blocked"]]]) }
        return .json(401, ["challenges": ["PinCode": ["remainingAttempts": .integer(attempts)]]])
    }
}

/// The end of an area's sessions: with a request that a test chooses, or after their lifetime.
package final class SessionEnd: Sendable {
    private struct State {
        var requestsLeft = 0
        var life: Int?
    }

    private let state = Mutex(State())

    /// Ends all sessions after `count` more requests.
    package func comes(afterRequests count: Int) { state.withLock { $0.requestsLeft = count } }

    /// Sets the lifetime in seconds of each session from now on, which its cookie contains; `nil`: no limit.
    package func comes(afterSeconds seconds: Int?) { state.withLock { $0.life = seconds } }

    /// The attributes of a session's cookie about its end.
    var attributes: String { state.withLock { $0.life }.map { "; Max-Age=\($0)" } ?? "" }

    /// The end of a session that begins now.
    var instant: ContinuousClock.Instant? {
        state.withLock { $0.life }.map { ContinuousClock.now + .seconds($0) }
    }

    /// Counts a request. Returns true if it is the last before all sessions end.
    func isLast() -> Bool {
        state.withLock { state in
            guard state.requestsLeft > 0 else { return false }
            state.requestsLeft -= 1
            return state.requestsLeft == 0
        }
    }
}

extension ContinuousClock.Instant? {
    /// True if the instant has passed; false for `nil`.
    var isOver: Bool { map { ContinuousClock.now >= $0 } ?? false }
}
