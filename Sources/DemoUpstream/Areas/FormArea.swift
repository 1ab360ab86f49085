// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// A login page with `j_security_check`, as Tomcat has it: user ann, password demo. Every login makes a new session, whose
/// identifier nobody knew before.
final class FormArea: DemoArea {
    private struct Session {
        /// Where a login leads.
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

    /// Keeps a session, and returns its cookie.
    private func add(_ session: Session) -> (name: String, value: String) {
        let id = Samples.randomName()
        sessions.withLock { sessions in
            // A demonstration need not hold more.
            if sessions.count > 10_000 { sessions.removeAll() }
            sessions[id] = session
        }
        return ("Set-Cookie", "JSESSIONID=\(id); Path=/form; HttpOnly")
    }
}
