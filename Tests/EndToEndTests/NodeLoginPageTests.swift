// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Synchronization
import Testing

@Suite("A login page that a proxy in front of several nodes is redirected to")
struct NodeLoginPageTests {
    /// An application that sends everybody to its login page who has no session, and whose sessions can be ended.
    private final class Application: Sendable {
        private struct State {
            var sessions: Set<String> = []
            var logins = 0
            var redirects = 0
        }
        private let state = Mutex(State())

        var logins: Int { state.withLock { $0.logins } }
        var redirects: Int { state.withLock { $0.redirects } }

        func endSessions() { state.withLock { $0.sessions = [] } }

        func respond(to request: FakeRequest) -> FakeResponse? {
            let cookie = request.fields.first { $0.name.lowercased() == "cookie" }?.value ?? ""
            switch (request.method, request.path) {
            case ("GET", "/login"):
                return FakeResponse(200, fields: [("Content-Type", "text/html")])
            case ("POST", "/login"):
                let session = state.withLock { state in
                    state.logins += 1
                    state.sessions.insert("s\(state.logins)")
                    return "s\(state.logins)"
                }
                return FakeResponse(303, fields: [("Set-Cookie", "sid=\(session); Path=/"), ("Location", "/app/")])
            case (_, let path) where path.hasPrefix("/app/"):
                let isKnown = state.withLock { state in
                    let isKnown = state.sessions.contains { cookie.contains("sid=\($0)") }
                    if !isKnown { state.redirects += 1 }
                    return isKnown
                }
                if !isKnown {
                    return FakeResponse(302, fields: [("Location", "/login?from=\(path)")])
                }
                if path == "/app/elsewhere" {
                    return FakeResponse(302, fields: [("Location", "/app/there"), ("Set-Cookie", "own=1")])
                }
                return FakeResponse(200, body: Array(cookie.utf8) + request.body)
            default: return nil
            }
        }
    }

    private static let challenge = """
        challenges:
          - name: bank
            upstream: bank
            gateway: none
            credential: bank
            detect: { status: 302, redirect-to: /login }
            login: { page: /login, url: /login, parameters: { user: "{client-id}" } }
            success: { cookie: sid }

        """

    /// `config/auth-requests.yaml` with a login page in place of the tokens.
    private static func configuration(_ text: String) -> String {
        guard let start = text.firstRange(of: "challenges:"), let end = text.firstRange(of: "credentials:") else {
            return text
        }
        return text[..<start.lowerBound] + challenge + "\n" + text[end.lowerBound...]
    }

    @Test(
        "is answered once, cold and when the session has ended; other redirects pass",
        arguments: [NodeProxy.Kind.envoy, .nginx])
    func redirect(_ kind: NodeProxy.Kind) async throws {
        let application = Application()
        try await withNodes(kind, isWhole: true, changing: Self.configuration) { bank, proxy in
            bank.upstream.override { application.respond(to: $0) }
            for login in 1...2 {
                for number in 0..<3 {
                    let answer = try await proxy.curl(
                        "/app/\(login)\(number)", "--data", "body", "-H", "Cookie: mine=1")
                    #expect(answer.status == 200, "\(answer.summary)\(proxy.log)")
                    #expect(answer.text == "mine=1; sid=s\(login)body", "\(answer.summary)")
                }
                #expect(application.logins == login)
                application.endSessions()
            }
            _ = try await proxy.curl("/app/again")
            let passed = try await proxy.curl("/app/elsewhere")
            #expect(
                passed.status == 302 && passed.field("location")?.hasSuffix("/app/there") == true, "\(passed.summary)")
            #expect(passed.field("set-cookie")?.hasPrefix("own=1") == true)
            #expect(application.logins == 3)
            // For each of the two sessions that were ended: by the other proxy, and by the listener that it was handed over to.
            #expect(application.redirects == 4)
        }
    }
}
