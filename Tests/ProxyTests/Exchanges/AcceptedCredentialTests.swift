// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import TestSupport
import Testing

/// A server that accepts the password `right` of `ann`, or another one that a test sets. Nobody may see `/admin`: like
/// Apache's `Require user`, it answers 401 to an authenticated user who is not allowed.
private final class Office: Sendable {
    let password = Mutex("right")
    /// Number of 401 answers to requests with a password.
    let refusals = Atomic<Int>(0)
    let isDown = Atomic<Bool>(false)
    /// Paths that the user may not see any more.
    let closed = Mutex<Set<String>>([])
    /// Arrival of a request for `/slow`, and its answer.
    let (isAsked, isAnswered) = (Signal(), Signal())
    let paths = Notes()

    func upstream() throws -> AnsweringUpstream {
        try AnsweringUpstream { [self] head, _ in
            let path = head.split(separator: " ").dropFirst().first.map(String.init) ?? ""
            let field = head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: Basic ") }
            guard let field else {
                return answer("401 Unauthorized", "who?", "WWW-Authenticate: Basic realm=\"a\"\r\n")
            }
            paths.add(path)
            if isDown.load(ordering: .relaxed), path == "/app/1" { return answer("503 Busy", "later") }
            let sent = Base64.decode(String(field.dropFirst(21))).map { String(decoding: $0, as: UTF8.self) }
            if path == "/slow" {
                isAsked.set()
                isAnswered.wait()
            }
            let isOpen = !path.hasPrefix("/admin") && !closed.withLock { $0.contains(path) }
            if sent == "ann:" + password.withLock({ $0 }), isOpen { return answer("200 OK", "in") }
            refusals.wrappingAdd(1, ordering: .relaxed)
            return answer("401 Unauthorized", "not you", "WWW-Authenticate: Basic realm=\"a\"\r\n")
        }
    }
}

/// A password that an operator changes.
private final class Users: CredentialProvider {
    private let password = Mutex("right")

    var present: Credential {
        Credential(
            name: "pin", fields: ["username": Secret("ann"), "password": Secret(password.withLock { $0 })])
    }

    func change(to value: String) { password.withLock { $0 = value } }

    func credential(named name: String) async throws(CredentialError) -> Credential? { present }
}

@Suite("Credentials that a server has accepted")
struct AcceptedCredentialTests {
    private static let credential = Credential(
        name: "pin", fields: ["username": Secret("ann"), "password": Secret("right")])
    private let office = Office()
    private let attempts = MemoryAttempts()

    private func key(_ port: UInt16) -> LatchKey {
        LatchKey(origin: Origin(scheme: .http, host: "127.0.0.1", port: port), challenge: "bank", credential: "pin")
    }

    private func proxy(
        _ port: UInt16, workers: Int = 1, proof: String? = nil, isAhead: Bool = false,
        credentials: any CredentialProvider = FixedCredentials(["pin": credential.fields]),
        versions: CredentialVersions? = nil
    ) throws -> TestProxy {
        let key = key(port)
        let plan = SchemePlan(
            name: "bank", schemes: [BasicScheme()], key: key,
            address: WebURL(origin: key.origin, path: proof ?? "/"), isProof: proof != nil)
        let login = Authenticator(
            name: "bank", trigger: .detected(SchemeDetector(plan)), isAhead: isAhead,
            key: SessionKey(origin: key.origin, challenge: "bank", credential: "pin"), credentials: ["pin"],
            makeLogin: { SchemeLogin(plan, challenge: $0.challenge, scope: $0.scope) })
        return try TestProxy(
            .bank(port: port, logins: [login]), workers: workers, attempts: attempts,
            credentials: credentials, credentialVersions: versions)
    }

    private func isLatched(_ port: UInt16) -> Bool {
        let digest = attempts.digest(of: Self.credential)
        return attempts.load().latches.closedLatch(key(port), digest: digest, now: 0) != nil
    }

    @Test(
        "resources that refuse a right password latch nothing: their 401 reaches the caller, and other resources work",
        arguments: [1, 2])
    func forbidden(workers: Int) throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port, workers: workers)
        for path in ["/app/1", "/app/2"] { #expect(try proxy.fetch(get(path)).body == "in") }
        for path in ["/admin/1", "/admin/2", "/admin/3?q=1"] {
            let (head, body) = try proxy.fetch(get(path))
            #expect(head.hasPrefix("HTTP/1.1 401 ") && body == "not you")
        }
        #expect(try proxy.fetch(get("/app/3")).body == "in")
        #expect(!isLatched(upstream.port))
    }

    @Test("after a restart the first request may be for a forbidden resource")
    func restarted() throws {
        let upstream = try office.upstream()
        #expect(try proxy(upstream.port).fetch(get("/app/1")).body == "in")
        let next = try proxy(upstream.port)
        #expect(try next.fetch(get("/admin/1")).body == "not you")
        #expect(try next.fetch(get("/app/3")).body == "in")
        #expect(!isLatched(upstream.port))
    }

    @Test(
        "a refused resource is not confirmed again for a while, on any worker: one confirmation for 50 requests at once",
        arguments: [1, 4])
    func confirmedOnce(workers: Int) throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port, workers: workers)
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        let callers = try (0..<50).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get("/admin/1")) }
        for caller in callers { #expect(try caller.message().body == "not you") }
        #expect(try proxy.fetch(get("/admin/1")).body == "not you")
        #expect(office.paths.all.count { $0 == "/app/1" } == 2)
        #expect(!isLatched(upstream.port))
    }

    @Test(
        "a password that changed at the server is refused at most twice, and then latched",
        arguments: ["/app/2", "/admin/1"])
    func changed(path: String) throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port)
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        office.password.withLock { $0 = "other" }
        #expect(try proxy.fetch(get(path)).body.contains("\"code\":\"login-rejected\""))
        for _ in 0..<5 { #expect(try proxy.fetch(get("/app/2")).body.contains("\"code\":\"login-latched\"")) }
        #expect(office.refusals.load(ordering: .relaxed) == 2)
        #expect(isLatched(upstream.port))
        // A latched value has no acceptance any more.
        let digest = attempts.digest(of: Self.credential)
        #expect(attempts.load().acceptances.acceptance(key(upstream.port), digest: digest) == nil)
    }

    @Test("a password that its only address refuses is sent once more after a minute, and then latched")
    func changedAtItsAddress() throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port)
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        office.password.withLock { $0 = "other" }
        #expect(try proxy.fetch(get("/app/1")).body == "not you")
        for _ in 0..<5 {
            let (head, body) = try proxy.fetch(get("/app/2"))
            #expect(head.contains("Retry-After: 60\r\n") && body.contains("\"code\":\"login-failed\""))
        }
        #expect(office.refusals.load(ordering: .relaxed) == 1 && !isLatched(upstream.port))
        proxy.clock.advance(by: 60)
        #expect(try proxy.fetch(get("/app/2")).body.contains("\"code\":\"login-rejected\""))
        #expect(try proxy.fetch(get("/app/1")).body.contains("\"code\":\"login-latched\""))
        #expect(office.refusals.load(ordering: .relaxed) == 2 && isLatched(upstream.port))
    }

    @Test("a right password is not latched by the owners of resources who withdraw their permission")
    func withdrawn() throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port)
        for path in ["/first", "/works", "/works2"] { #expect(try proxy.fetch(get(path)).body == "in") }
        office.closed.withLock { $0 = ["/first", "/forbidden"] }
        for path in ["/forbidden", "/first"] { #expect(try proxy.fetch(get(path)).body == "not you") }
        for path in ["/works", "/works2"] { #expect(try proxy.fetch(get(path)).body == "in") }
        #expect(!isLatched(upstream.port))
    }

    @Test("after a restart an accepted password needs no trial: no page keeps other pages away")
    func withoutTrial() throws {
        let upstream = try office.upstream()
        #expect(try proxy(upstream.port).fetch(get("/app/1")).body == "in")
        let next = try proxy(upstream.port)
        office.isDown.store(true, ordering: .relaxed)
        #expect(try next.fetch(get("/app/1")).body == "later")
        #expect(try next.fetch(get("/app/2")).body == "in")
        _ = next.services.gate.change { $0.sessions.drop { _ in true } }
        let slow = try next.connect()
        try slow.send(get("/slow"))
        office.isAsked.wait()
        #expect(try next.fetch(get("/app/2")).body == "in")
        office.isAnswered.set()
        #expect(try slow.message().body == "in")
    }

    @Test("a password that changed at the server is refused for 50 concurrent callers, and is not sent after that")
    func changedForMany() throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port, workers: 2)
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        office.password.withLock { $0 = "other" }
        let callers = try (0..<50).map { _ in try proxy.connect() }
        for (number, caller) in callers.enumerated() { try caller.send(get("/app/\(number + 2)")) }
        for caller in callers { #expect(try caller.message().head.hasPrefix("HTTP/1.1 50")) }
        let refused = office.refusals.load(ordering: .relaxed)
        for _ in 0..<5 { _ = try proxy.fetch(get("/app/2")) }
        #expect(office.refusals.load(ordering: .relaxed) == refused)
    }

    @Test("a password that is wrong by now is not sent again and again to a resource that refused it when it was right")
    func refusedPlace() throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port, isAhead: true)
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        #expect(try proxy.fetch(get("/admin/1")).body == "not you")
        office.password.withLock { $0 = "other" }
        _ = proxy.services.gate.change { $0.sessions.drop { _ in true } }
        let before = office.refusals.load(ordering: .relaxed)
        for _ in 0..<5 { _ = try proxy.fetch(get("/admin/1")) }
        #expect(office.refusals.load(ordering: .relaxed) - before <= 2)
        #expect(isLatched(upstream.port))
    }

    @Test("a session that another node or process had won latches nothing where it is refused")
    func takenOver() throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port)
        let key = key(upstream.port)
        let session = Session(
            unverified: CredentialUse(key: key, credential: Self.credential),
            fields: [
                InjectedField(
                    name: .authorization, value: Secret("Basic \(Base64.encode(Array("ann:right".utf8)))"))
            ])
        let held = SessionKey(origin: key.origin, challenge: "bank", credential: "pin")
        #expect(proxy.services.gate.adopt(held, session, establishedAt: 0))
        #expect(try proxy.fetch(get("/admin/1")).body == "not you")
        #expect(!isLatched(upstream.port))
    }

    @Test(
        "a request whose refusal ends an earlier password is sent again with the present one",
        arguments: ["GET", "POST"])
    func replaced(method: String) throws {
        let upstream = try office.upstream()
        let users = Users()
        let versions = CredentialVersions { $0["password"]?.revealBytes() ?? [] }
        let proxy = try proxy(upstream.port, credentials: users, versions: versions)
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        users.change(to: "other")
        versions.recordLookup(of: "pin", as: users.present, number: versions.beginLookup())
        office.password.withLock { $0 = "other" }
        let request = "\(method) /app/2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        #expect(try proxy.fetch(request).body == "in")
        #expect(isLatched(upstream.port))
    }

    @Test("a password that no server ever accepted is rejected at its first refusal")
    func neverAccepted() throws {
        let upstream = try office.upstream()
        office.password.withLock { $0 = "other" }
        let proxy = try proxy(upstream.port)
        #expect(try proxy.fetch(get("/app/1")).body.contains("\"code\":\"login-rejected\""))
        #expect(office.refusals.load(ordering: .relaxed) == 1 && isLatched(upstream.port))
    }

    @Test("with prove-at the very first request may be for a forbidden resource")
    func verified() throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port, proof: "/whoami")
        #expect(try proxy.fetch(get("/admin/1")).body == "not you")
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        #expect(!isLatched(upstream.port))
        #expect(office.paths.all.first == "/whoami")
        // A wrong password is sent only there.
        office.password.withLock { $0 = "other" }
        #expect(try self.proxy(upstream.port, proof: "/whoami").fetch(get("/app/1")).body.contains("login-rejected"))
        #expect(isLatched(upstream.port))
    }

    @Test(
        "a failing server confirms nothing: the refusal passes, nothing latches, and the password is not sent again during a pause"
    )
    func trouble() throws {
        let upstream = try office.upstream()
        let proxy = try proxy(upstream.port)
        #expect(try proxy.fetch(get("/app/1")).body == "in")
        // The only address that has accepted it fails now.
        office.isDown.store(true, ordering: .relaxed)
        #expect(try proxy.fetch(get("/admin/1")).body == "not you")
        #expect(try proxy.fetch(get("/app/2")).body.contains("\"code\":\"login-failed\""))
        #expect(!isLatched(upstream.port))
        proxy.clock.advance(by: 2)
        #expect(try proxy.fetch(get("/app/2")).body == "in")
        #expect(try proxy.fetch(get("/admin/2")).body == "not you")
        #expect(try proxy.fetch(get("/app/3")).body == "in")
    }
}
