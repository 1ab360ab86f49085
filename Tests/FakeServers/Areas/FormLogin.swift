// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// A form login as Tomcat's `FormAuthenticator` does it: forward to the login page with its own status, `j_security_check`,
/// a new session identifier, 303 to the saved address, and the saved request restored when that address is met again.
package final class FormLogin: Sendable {
    private let contextPath: String
    private let name: String
    private let clock: FakeClock
    private let recorder: Recorder
    private let state: Mutex<State>

    /// The login's behaviour; a test may change it.
    package struct Rules: Sendable {
        /// The user.
        package var user = "ann"
        /// The password.
        package var password = "demo"
        /// The largest body in bytes that is saved over a login (`maxSavePostSize`); a larger one is 403.
        package var maxSavePostSize = 4096
        /// Seconds from the login page to the answer; afterwards 408.
        package var loginWindow: Int64 = 120
        /// Seconds without a request after which a session ends.
        package var sessionLife: Int64 = 1800
        /// The status of the redirect to the saved address: 303, in old versions 302.
        package var successStatus = 303
        /// True if a wrong password is answered with the login page again and not with an error page.
        package var isWrongAnsweredWithForm = false
        /// Number of wrong passwords after which the user is locked out, which a page reports with 200; `nil`: never.
        package var locksAfter: Int?

        /// Tomcat's defaults and the user ann.
        package init() {}
    }

    /// Creates a login for all paths below `contextPath` (`/form`; empty: everything). `name` is its name in the
    /// record.
    package init(contextPath: String, clock: FakeClock, recorder: Recorder, name: String = "form") {
        self.contextPath = contextPath
        self.name = name
        self.clock = clock
        self.recorder = recorder
        self.state = Mutex(State())
    }

    /// Changes the rules; sessions stay.
    package func configure(_ change: (inout Rules) -> Void) {
        state.withLock { change(&$0.rules) }
    }

    /// Ends every session, as a restart of the server does.
    package func dropSessions() {
        state.withLock { $0.sessions.removeAll() }
    }

    /// Returns true if a request answers the login page: any path with that end, as in Tomcat.
    package func isSubmission(_ request: FakeRequest) -> Bool {
        request.path.hasPrefix(contextPath + "/") && request.path.hasSuffix("/j_security_check")
    }

    /// Passes a request on to the protected resource, perhaps as the one saved earlier, or answers in its place.
    package func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        let now = clock.now()
        if isSubmission(request) { return submit(request, now: now) }
        let admission = state.withLock { $0.admit(request, now: now, contextPath: contextPath) }
        switch admission {
        case .admitted(let restored): return inside(restored)
        case .refused(let response):
            if response.status == 200 {
                recorder.note { $0.challenges[name, default: 0] += 1 }
            }
            return response
        }
    }

    /// Ends the session of a request.
    package func logout(_ request: FakeRequest) {
        guard let id = request.cookie("JSESSIONID") else { return }
        state.withLock { _ = $0.sessions.removeValue(forKey: id) }
        recorder.note { $0.logouts.append(name) }
    }

    private func submit(_ request: FakeRequest, now: Int64) -> FakeResponse {
        let fields = request.form ?? request.queryFields
        let user = fields["j_username"] ?? ""
        let password = fields["j_password"] ?? ""
        let (response, isRight) = state.withLock { state in
            let isRight = state.isRight(user, password)
            return (state.submit(request, isRight: isRight, now: now, contextPath: contextPath), isRight)
        }
        recorder.note { record in
            record.answers[name, default: []].append(["j_username": .string(user), "j_password": .string(password)])
            if isRight {
                record.logins[name, default: 0] += 1
            } else {
                record.wrongAnswers[name, default: 0] += 1
            }
        }
        return response
    }
}

/// The outcome of a request that is not a submission.
private enum Admission {
    case admitted(FakeRequest)
    case refused(FakeResponse)
}

/// The authenticator's state.
private struct State: Sendable {
    var rules = FormLogin.Rules()
    var sessions: [String: FormSession] = [:]
    var failures = 0

    mutating func isRight(_ user: String, _ password: String) -> Bool {
        guard !isLocked, user == rules.user, password == rules.password else {
            failures += 1
            return false
        }
        failures = 0
        return true
    }

    var isLocked: Bool { rules.locksAfter.map { failures >= $0 } ?? false }

    mutating func admit(_ request: FakeRequest, now: Int64, contextPath: String) -> Admission {
        purge(now: now)
        let id = request.cookie("JSESSIONID")
        if let id, var session = sessions[id], session.isLoggedIn {
            session.lastUse = now
            let restored = session.saved?.path == request.path ? session.saved : nil
            if restored != nil { session.saved = nil }
            sessions[id] = session
            return .admitted(restored ?? request)
        }
        guard request.body.count <= rules.maxSavePostSize else {
            return .refused(.html(403, page("The request body was too large to be cached during authentication")))
        }
        let known = id.flatMap { sessions[$0] == nil ? nil : $0 }
        let session = known ?? randomName().uppercased()
        sessions[session] = FormSession(isLoggedIn: false, saved: request, lastUse: now)
        return .refused(
            .html(200, loginPage, fields: known == nil ? [setCookie(session, contextPath)] : []))
    }

    /// Tomcat's order: the password first, then the session, then the saved request.
    mutating func submit(_ request: FakeRequest, isRight: Bool, now: Int64, contextPath: String) -> FakeResponse {
        purge(now: now)
        guard isRight else {
            if isLocked { return .html(200, page("The account is locked.")) }
            return .html(200, rules.isWrongAnsweredWithForm ? loginPage : page("Invalid username or password."))
        }
        guard let id = request.cookie("JSESSIONID") else { return invalidReference }
        guard var session = sessions.removeValue(forKey: id) else {
            return .html(408, page("The time allowed for the login process has been exceeded."))
        }
        // An identifier known before the login must not be valid afterwards (session fixation).
        let fresh = randomName().uppercased()
        session.isLoggedIn = true
        session.lastUse = now
        sessions[fresh] = session
        guard let saved = session.saved else { return invalidReference }
        return FakeResponse(
            rules.successStatus, fields: [("Location", saved.target), setCookie(fresh, contextPath)])
    }

    private var invalidReference: FakeResponse {
        .html(400, page("Invalid direct reference to form login page"))
    }

    private mutating func purge(now: Int64) {
        sessions = sessions.filter { _, session in
            (now - session.lastUse) / 1000 < (session.isLoggedIn ? rules.sessionLife : rules.loginWindow)
        }
    }

    private func setCookie(_ session: String, _ contextPath: String) -> (name: String, value: String) {
        ("Set-Cookie", "JSESSIONID=\(session); Path=\(contextPath.isEmpty ? "/" : contextPath); HttpOnly")
    }
}

/// A session, logged in or about to be.
private struct FormSession: Sendable {
    var isLoggedIn: Bool
    var saved: FakeRequest?
    var lastUse: Int64
}

private let loginPage = page(
    """
    Please log in.
    <form method="POST" action="j_security_check">
    <input type="text" name="j_username"><input type="password" name="j_password"><input type="submit">
    </form>
    """)

private func page(_ content: String) -> String {
    "<!DOCTYPE html>\n<html><head><title>Demo</title></head><body>\n\(content)\n</body></html>\n"
}
