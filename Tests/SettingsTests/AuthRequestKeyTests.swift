// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading
import Testing

@Suite("Listeners that answer auth requests")
struct AuthRequestKeyTests {
    private func yaml(_ scheme: String, ordinary: Bool = true) -> String {
        """
        listeners:
          - { address: 127.0.0.1:8081, upstream: u, auth-requests: true, users: [www-data] }
          - { address: 127.0.0.1:8080, upstream: \(ordinary ? "u" : "v") }
        upstreams: { u: { url: "https://u" }, v: { url: "https://v" } }
        challenges: [{ name: c, upstream: u, scheme: \(scheme), credential: c }]
        """
    }

    @Test("auth-requests: true makes an auth-request listener, and false does not")
    func read() throws {
        let settings = try #require(parsed(yaml("[basic]")))
        #expect(settings.listeners.map(\.answersAuthRequests) == [true, false])
        #expect(
            errors(frame(listener: "auth-requests: yes")) == [
                "f:1:70: listeners[0].auth-requests: \"yes\" is neither true nor false"
            ])
    }

    @Test("an auth-request listener that leads to a challenge with ntlm is refused with the reason")
    func connections() {
        let problem = """
            f:2:60: listeners[0].auth-requests: "c" has the scheme ntlm, which authenticates a connection, but the \
            connection to u is the other proxy's: remove ntlm, or use an ordinary listener
            """
        #expect(errors(yaml("[negotiate, ntlm]")) == [problem])
        #expect(errors(yaml("[negotiate, digest]")) == [])
    }

    @Test("an auth-request listener without an ordinary listener for its upstream is warned about")
    func alone() {
        let problem = """
            listeners[0].auth-requests: warning: no ordinary listener leads to u: a challenge that the other proxy receives cannot be \
            handed back
            """
        #expect(problems(yaml("[basic]", ordinary: false)).contains { $0.hasSuffix(problem) })
        #expect(!problems(yaml("[basic]")).contains { $0.contains("auth-requests") })
    }

    @Test("an auth-request listener over TCP without users is refused")
    func users() {
        func listener(_ address: String, _ more: String = "") -> String {
            """
            listeners:
              - { address: "\(address)", upstream: u, auth-requests: true\(more) }
              - { address: "127.0.0.1:8080", upstream: u }
            upstreams: { u: { url: "https://u" } }
            """
        }
        let problem = """
            listeners[0].auth-requests: this listener gives out sessions: over TCP, set `users` to the user that the other \
            proxy runs as, or `callers` to a token of that proxy, or use a Unix socket
            """
        for address in ["127.0.0.1:8081", "[::1]:8081", "localhost:8081"] {
            #expect(errors(listener(address)).map { String($0.drop { $0 != " " }.dropFirst()) } == [problem])
            #expect(errors(listener(address, ", users: [www-data]")) == [])
        }
        #expect(errors(listener("unix:/run/a.sock")) == [])
        #expect(errors(listener("systemd:authority")) == [])
    }

    @Test("config/auth-requests.yaml has no problems")
    func shipped() {
        let folder = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let (settings, problems) = Settings.load(path: "\(folder)/config/auth-requests.yaml", environment: [:])
        #expect(problems.map(\.description) == [])
        #expect(settings?.listeners.first?.answersAuthRequests == true)
    }
}
