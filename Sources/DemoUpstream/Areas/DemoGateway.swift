// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// Gateway in front of a portal: a form, then a token in a second round. User ann, password demo; bob's account is locked.
///
/// The form comes in place of the page, with status 200. Its answer is 401 with a token that has to be submitted as well.
final class GatewayArea: DemoArea {
    private struct State {
        /// Tokens of the second round, by visit.
        var rounds: [String: String] = [:]
        var sessions: Set<String> = []
    }

    let path = "/portal/"
    private let tell: DemoTeller
    private let state = Mutex(State())

    init(tell: @escaping DemoTeller) { self.tell = tell }

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        switch request.path {
        case "/portal/pkmslogin.form": return submit(request)
        case "/portal/token": return confirm(request)
        // Names the form, and demands nothing.
        case "/portal/news": return .html(200, "<p>The address of our login is pkmslogin.form.</p>")
        default: break
        }
        let session = request.cookie("PD-S-SESSION-ID") ?? ""
        if state.withLock({ $0.sessions.contains(session) }) { return inside(request) }
        tell(.loginPageServed(path: request.path))
        return .html(
            200,
            """
            <form method="POST" action="/portal/pkmslogin.form">
            <input type="text" name="username"><input type="password" name="password"><input type="submit">
            </form>
            """)
    }

    private func submit(_ request: DemoRequest) -> DemoResponse {
        switch (request.formValue("username"), request.formValue("password")) {
        case ("ann", "demo"):
            let (visit, token) = (Samples.randomName(), Samples.randomName())
            state.withLock { state in
                // Enough for a demonstration.
                if state.rounds.count > 10_000 { state.rounds.removeAll() }
                state.rounds[visit] = token
            }
            return .html(401, "token=\(token)", [("Set-Cookie", "PD-VISIT=\(visit); Path=/portal; HttpOnly")])
        case ("bob", _):
            tell(.checkFailed(check: "portal", reason: "account locked"))
            return .html(200, "HPDIA0205W The account of this user is locked.")
        default:
            tell(.answerRejected(check: "portal"))
            return .html(200, "HPDIA0200W Authentication failed.")
        }
    }

    private func confirm(_ request: DemoRequest) -> DemoResponse {
        let session = Samples.randomName()
        let isRight = state.withLock { state in
            guard let token = state.rounds.removeValue(forKey: request.cookie("PD-VISIT") ?? ""),
                token == request.formValue("token")
            else { return false }
            if state.sessions.count > 10_000 { state.sessions.removeAll() }
            state.sessions.insert(session)
            return true
        }
        guard isRight else { return .html(403, "The token is not of this visit.") }
        tell(.answerAccepted(check: "portal"))
        return .html(200, "Welcome.", [("Set-Cookie", "PD-S-SESSION-ID=\(session); Path=/portal; HttpOnly")])
    }
}

/// Area protected by a scheme of its own: `Authorization: Ticket demo`.
struct TicketArea: DemoArea {
    let path = "/ticket/"
    let tell: DemoTeller

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        if request.authorization("Ticket") == "demo" { return inside(request) }
        tell(.unauthorized(path: request.path, challenge: "Ticket"))
        return .unauthorized("Ticket realm=\"Demo\"")
    }
}
