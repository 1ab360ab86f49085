// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import Proxy
import Secrets
import TestSupport
import Testing

@testable import Proxy

@Suite("Callers with credentials of their own", .enabled(if: getuid() == 0))
struct IdentityTests {
    private static let (ann, bob, stranger) = (uid_t(12_345), uid_t(23_456), uid_t(34_567))

    /// Returns a caller on loopback whose socket belongs to that user.
    private func caller(_ user: uid_t, of proxy: TestProxy) throws -> Peer {
        let descriptor = try connectedSocket(to: "127.0.0.1", port: proxy.port)
        #expect(fchown(descriptor, user, gid_t.max) == 0)
        return Peer(accepted: descriptor)
    }

    /// Returns a login with the credential of that name, which its sessions carry.
    private func login(
        _ name: String, port: UInt16, bindsConnections: Bool = false,
        trigger: Authenticator.Trigger = .bearer(realm: nil),
        _ logIn: @escaping @Sendable (String) -> Session = { .bearer($0) }
    ) -> Authenticator {
        Authenticator(
            name: "bank", trigger: trigger, isAhead: false,
            key: SessionKey(
                origin: Origin(scheme: .http, host: "127.0.0.1", port: port), challenge: "bank", credential: name),
            credentials: [name], bindsConnections: bindsConnections
        ) { _ in ScriptedLogin(counter: LoginCounter()) { _, _ in logIn(name) } }
    }

    /// Returns an upstream where ann and bob have their own credentials, and all others that of `others`.
    private func plan(port: UInt16, others: Authenticator, _ login: (String) -> Authenticator) -> UpstreamPlan {
        var authenticators = Authenticators()
        authenticators.add(others)
        let base = WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: port), path: "/")
        return UpstreamPlan(
            name: "bank", base: base, replay: ReplayTiers(memory: 65_536), logins: authenticators,
            identities: [
                (callers: [.user(Self.ann)], plan: .bank(port: port, logins: [login("ann")])),
                (callers: [.user(Self.bob)], plan: .bank(port: port, logins: [login("bob")])),
            ])
    }

    @Test("each user's requests carry that user's session and no other, however they are interleaved")
    func interleaved() throws {
        let upstream = try AnsweringUpstream { head, body in
            guard let token = head.split(separator: "\r\n").first(where: { $0.hasPrefix("Authorization: Bearer ") })
            else {
                return challenge
            }
            return answer("200 OK", "\(token.dropFirst(22)) \(body)")
        }
        let proxy = try TestProxy(
            plan(port: upstream.port, others: login("all", port: upstream.port)) { login($0, port: upstream.port) },
            workers: 2)
        let users = [(Self.ann, "ann"), (Self.bob, "bob"), (Self.stranger, "all"), (getuid(), "all")]
        let callers = try (0..<40).map { number in
            (try caller(users[number % 4].0, of: proxy), users[number % 4].1)
        }
        for round in 0..<5 {
            // All at once, so that waiters, replays and unverified sessions of all four users overlap.
            for (caller, name) in callers {
                let body = "\(name)-\(round)"
                try caller.send(
                    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            }
            for (caller, name) in callers { #expect(try caller.message().body == "\(name) \(name)-\(round)") }
            // The sessions are lost, and all are established anew.
            if round == 2 { _ = proxy.services.gate.change { $0.sessions.drop { _ in true } } }
        }
        #expect(proxy.log.count == 6)
        #expect(
            Set(proxy.services.gate.read({ $0.sessions.allHeld }).map { "\($0.key.credential)" }) == [
                "ann", "bob", "all",
            ])
    }

    @Test("cookies of a user's session, and those set later, stay that user's")
    func cookies() throws {
        let upstream = try AnsweringUpstream { head, _ in
            let cookies = head.split(separator: "\r\n").filter { $0.hasPrefix("Cookie: ") }.map { $0.dropFirst(8) }
            guard let own = cookies.first else { return challenge }
            return answer("200 OK", cookies.joined(separator: "|"), "Set-Cookie: id=\(own.dropFirst(3))+; Path=/\r\n")
        }
        let url = try #require(WebURL("http://127.0.0.1:\(upstream.port)/"))
        let proxy = try TestProxy(
            plan(port: upstream.port, others: login("all", port: upstream.port)) { name in
                login(name, port: upstream.port) { name in
                    var jar = CookieJar()
                    _ = jar.store("id=\(name); Path=/", from: url, now: 0)
                    return Session(cookies: SessionCookies(jar))
                }
            })
        let (ann, bob) = (try caller(Self.ann, of: proxy), try caller(Self.bob, of: proxy))
        for round in 0..<3 {
            for (caller, name) in [(ann, "ann"), (bob, "bob")] {
                try caller.send(get())
                let (head, body) = try caller.message()
                #expect(body == "id=\(name)\(String(repeating: "+", count: round))")
                #expect(!head.contains("Set-Cookie"))
            }
        }
    }

    /// Returns a server that binds a connection to the user of its first request, as with NTLM and sometimes Negotiate.
    private func bindingUpstream() throws -> AnsweringUpstream {
        try AnsweringUpstream(perConnection: {
            var user: Substring?
            return { head, _ in
                user =
                    head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: ") }?.split(separator: " ").last
                    ?? user
                return user.map { answer("200 OK", String($0)) } ?? challenge
            }
        })
    }

    @Test("a connection that is bound to one user carries nothing of another, not even what goes ahead of a session")
    func boundConnections() throws {
        let upstream = try bindingUpstream()
        let proxy = try TestProxy(
            plan(port: upstream.port, others: login("all", port: upstream.port, bindsConnections: true)) {
                login($0, port: upstream.port, bindsConnections: true)
            })
        let callers = [
            (try caller(Self.ann, of: proxy), "ann"), (try caller(Self.bob, of: proxy), "bob"),
            (try caller(Self.stranger, of: proxy), "all"),
        ]
        for _ in 0..<3 {
            for (caller, name) in callers {
                try caller.send(get())
                #expect(try caller.message().body == name)
            }
            _ = proxy.services.gate.change { $0.sessions.drop { _ in true } }
        }
    }

    @Test("a connection bound to one credential is not used for another path's credential", arguments: [true, false])
    func boundPaths(isBound: Bool) throws {
        let upstream = try bindingUpstream()
        let base = WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: upstream.port), path: "/")
        var authenticators = Authenticators()
        for name in ["ann", "bob"] {
            let pattern = try LocationPattern("127.0.0.1:\(upstream.port)/\(name)/*")
            authenticators.add(login(name, port: upstream.port, bindsConnections: isBound), at: pattern)
        }
        let proxy = try TestProxy(UpstreamPlan(name: "bank", base: base, logins: authenticators))
        let caller = try proxy.connect()
        for _ in 0..<2 {
            try caller.send(get("/ann/x"))
            #expect(try caller.message().body == "ann")
            try caller.send(get("/bob/x"))
            // Without a scheme that binds connections they are shared: otherwise this test could not fail.
            let shared = try caller.message().body
            #expect(shared == (isBound ? "bob" : "ann"))
        }
    }

    @Test("a caller without a credential is refused if a session is needed, and served otherwise")
    func nobody() throws {
        let upstream = try AnsweringUpstream { head, _ in
            if head.hasPrefix("GET /open ") { return answer("200 OK", "open") }
            return head.contains("Authorization") ? answer("200 OK", "in") : challenge
        }
        let refusing = login("-", port: upstream.port).refusing("The challenge bank has no credential for this caller.")
        let proxy = try TestProxy(
            plan(port: upstream.port, others: refusing) { login($0, port: upstream.port) })
        let ann = try caller(Self.ann, of: proxy)
        let stranger = try caller(Self.stranger, of: proxy)
        for _ in 0..<2 {
            try ann.send(get())
            #expect(try ann.message().body == "in")
            try stranger.send(get())
            let (head, body) = try stranger.message()
            #expect(head.hasPrefix("HTTP/1.1 403 "))
            #expect(body.contains("\"code\":\"caller-not-allowed\""))
            #expect(body.contains("no credential for this caller"))
            try stranger.send(get("/open"))
            #expect(try stranger.message().body == "open")
        }
        // It causes no login, and does not count for readiness.
        #expect(proxy.log.count == 1)
        #expect(proxy.services.gate.read({ $0.sessions.states(now: proxy.clock.now) }).count == 1)
    }

    @Test("a refusal for one user does not count for another")
    func refusals() throws {
        let upstream = try AnsweringUpstream { head, _ in
            if head.contains("Bearer bob") { return answer("200 OK", "bob") }
            return challenge
        }
        let proxy = try TestProxy(
            plan(port: upstream.port, others: login("all", port: upstream.port)) { login($0, port: upstream.port) })
        let (ann, bob) = (try caller(Self.ann, of: proxy), try caller(Self.bob, of: proxy))
        // Refused with a new session: for 30 s the refusal is forwarded unchanged.
        for _ in 0..<2 {
            try ann.send(get())
            #expect(try ann.message().head.hasPrefix("HTTP/1.1 401 "))
        }
        try bob.send(get())
        #expect(try bob.message().body == "bob")
    }

    @Test("a caller whose user the kernel does not report has no user")
    func unknown() throws {
        let listener = try ListenPoint.tcp(host: "127.0.0.1", port: 0).open()
        defer { close(listener) }
        let descriptor = try connectedSocket(to: "127.0.0.1", port: port(of: listener))
        let accepted = accept(listener, nil, nil)
        defer { close(accepted) }
        let owners = SocketOwners()
        #expect(owners.caller(of: accepted) != nil)
        close(descriptor)
        #expect(owners.caller(of: accepted) == nil)
        #expect(!owners.isFromElsewhere(accepted))
    }

    @Test("the kernel is asked once per connection, and not at all if nothing depends on the user")
    func askedOnce() throws {
        let upstream = try AnsweringUpstream { head, _ in
            head.contains("Bearer ann") ? answer("200 OK", "ann") : challenge
        }
        let proxy = try TestProxy(
            plan(port: upstream.port, others: login("all", port: upstream.port)) { login($0, port: upstream.port) })
        let descriptor = try connectedSocket(to: "127.0.0.1", port: proxy.port)
        #expect(fchown(descriptor, Self.ann, gid_t.max) == 0)
        let caller = Peer(accepted: descriptor)
        for user in [Self.bob, Self.stranger] {
            try caller.send(get())
            #expect(try caller.message().body == "ann")
            #expect(fchown(descriptor, user, gid_t.max) == 0)
        }
    }
}
