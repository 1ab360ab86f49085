// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading
import Testing

@Suite("Listeners that are authorities")
struct AuthorityKeyTests {
    private func yaml(_ scheme: String, ordinary: Bool = true) -> String {
        """
        listeners:
          - { address: 127.0.0.1:8081, upstream: u, authority: true, users: [www-data] }
          - { address: 127.0.0.1:8080, upstream: \(ordinary ? "u" : "v") }
        upstreams: { u: { url: "https://u" }, v: { url: "https://v" } }
        challenges: [{ name: c, upstream: u, scheme: \(scheme), credential: c }]
        """
    }

    @Test("the key is read, and only true makes one")
    func read() throws {
        let settings = try #require(parsed(yaml("[basic]")))
        #expect(settings.listeners.map(\.isAuthority) == [true, false])
        #expect(
            errors(frame(listener: "authority: yes")) == [
                "f:1:66: listeners[0].authority: \"yes\" is neither true nor false"
            ])
    }

    @Test("one that leads to a challenge with ntlm is refused with the reason")
    func connections() {
        let problem = """
            f:2:56: listeners[0].authority: "c" has the scheme ntlm, which authenticates a connection: that to u is the other \
            proxy's. Take ntlm out, or lead there by an ordinary listener
            """
        #expect(errors(yaml("[negotiate, ntlm]")) == [problem])
        #expect(errors(yaml("[negotiate, digest]")) == [])
    }

    @Test("one without an ordinary listener beside it is warned about")
    func alone() {
        let problem = """
            listeners[0].authority: warning: no ordinary listener leads to u: a challenge that the other proxy meets cannot be \
            handed back
            """
        #expect(problems(yaml("[basic]", ordinary: false)).contains { $0.hasSuffix(problem) })
        #expect(!problems(yaml("[basic]")).contains { $0.contains("authority") })
    }

    @Test("one over TCP without users is refused, for it hands out sessions")
    func users() {
        func listener(_ address: String, _ more: String = "") -> String {
            """
            listeners:
              - { address: "\(address)", upstream: u, authority: true\(more) }
              - { address: "127.0.0.1:8080", upstream: u }
            upstreams: { u: { url: "https://u" } }
            """
        }
        let problem = """
            listeners[0].authority: an authority hands out sessions: over TCP it needs `users` with the user that the other proxy \
            runs as, or give it a Unix socket
            """
        for address in ["127.0.0.1:8081", "[::1]:8081", "localhost:8081"] {
            #expect(errors(listener(address)).map { String($0.drop { $0 != " " }.dropFirst()) } == [problem])
            #expect(errors(listener(address, ", users: [www-data]")) == [])
        }
        #expect(errors(listener("unix:/run/a.sock")) == [])
        #expect(errors(listener("systemd:authority")) == [])
    }

    @Test("config/authority.yaml has no problems")
    func shipped() {
        let folder = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let (settings, problems) = Settings.load(path: "\(folder)/config/authority.yaml", environment: [:])
        #expect(problems.map(\.description) == [])
        #expect(settings?.listeners.first?.isAuthority == true)
    }
}
