// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import TestSupport
import Testing

/// Detector for a challenge of the scheme Basic. As with the real one, repeating the answer would not help.
struct PasswordDetector: ChallengeDetector {
    let kind = "basic"

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard response.status == 401, response.fields[.wwwAuthenticate]?.hasPrefix("Basic") == true else {
            return .pass
        }
        return hasSession ? .refused : .challenged()
    }
}

extension Session {
    /// Returns a session with a password that no server has accepted yet.
    static func password(_ password: String) -> Session {
        let key = LatchKey(origin: Origin(scheme: .http, host: "127.0.0.1"), challenge: "bank", credential: "pin")
        let credential = Credential(name: "pin", fields: ["password": Secret(password)])
        return Session(
            unverified: CredentialUse(key: key, credential: credential),
            fields: [InjectedField(name: .authorization, value: Secret("Basic \(password)"))])
    }
}

@Suite("Sessions that an exchange tries for all")
struct TrialTests {
    private static let demand = "WWW-Authenticate: Basic realm=\"a\"\r\n"

    /// Upstream with a password, which counts the requests that carry one.
    private final class Guarded: Sendable {
        let attempts = Atomic<Int>(0)

        func upstream(_ status: @escaping @Sendable (_ path: String, _ password: String) -> Int) throws
            -> AnsweringUpstream
        {
            try AnsweringUpstream { [self] head, _ in
                let path = head.split(separator: " ").dropFirst().first.map(String.init) ?? ""
                let field = head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: Basic ") }
                guard let field else { return answer("401 Unauthorized", "who?", TrialTests.demand) }
                attempts.wrappingAdd(1, ordering: .relaxed)
                let status = status(path, String(field.dropFirst(21)))
                let fields = status == 401 ? TrialTests.demand : status == 503 ? "Retry-After: 3600\r\n" : ""
                return answer("\(status) X", "\(status) at \(path)", fields)
            }
        }
    }

    private func login(_ port: UInt16, _ password: String = "right") -> Authenticator {
        .scripted(port: port, trigger: .detected(PasswordDetector())) { number, _, _ async throws(LoginFailure) in
            if number > 1, password == "wrong" { throw .rejected }
            return .password(password)
        }
    }

    @Test("a wrong password reaches the server once for any number of waiters, and all get the failure")
    func oneAttempt() throws {
        let guarded = Guarded()
        let upstream = try guarded.upstream { _, password in password == "right" ? 200 : 401 }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port, "wrong")]), workers: 2)
        let callers = try (0..<50).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get()) }
        for caller in callers {
            let (head, body) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 502 "))
            #expect(body.contains("\"code\":\"login-rejected\""))
        }
        #expect(guarded.attempts.load(ordering: .relaxed) == 1)
    }

    @Test("a right password serves all waiters, and later requests without a further round trip")
    func verified() throws {
        let guarded = Guarded()
        let upstream = try guarded.upstream { _, password in password == "right" ? 200 : 401 }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]), workers: 2)
        let callers = try (0..<50).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get()) }
        for caller in callers { #expect(try caller.message().body == "200 at /") }
        let before = upstream.requests
        #expect(try proxy.fetch(get("/again")).body == "200 at /again")
        #expect(upstream.requests == before + 1)
        #expect(proxy.log.count == 1)
    }

    @Test("a 503 with Retry-After is that page's own: it goes to its caller, and other pages are served at once")
    func undecided() throws {
        let guarded = Guarded()
        let upstream = try guarded.upstream { path, _ in path == "/down" ? 503 : 200 }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]))
        #expect(try proxy.fetch(get("/down")).body == "503 at /down")
        #expect(try proxy.fetch(get("/up")).body == "200 at /up")
        #expect(try proxy.fetch(get("/down")).body == "503 at /down")
        #expect(guarded.attempts.load(ordering: .relaxed) == 3 && proxy.log.count == 1)
    }

    @Test("a page that always fails is tried twice in a minute, and keeps nobody away")
    func oneAddress() throws {
        let guarded = Guarded()
        let upstream = try guarded.upstream { path, _ in path == "/down" ? 503 : 200 }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]))
        for _ in 0..<2 { #expect(try proxy.fetch(get("/down")).body == "503 at /down") }
        for _ in 0..<3 {
            let (head, body) = try proxy.fetch(get("/down"))
            #expect(head.contains("Retry-After: 60\r\n") && body.contains("\"code\":\"login-failed\""))
        }
        #expect(guarded.attempts.load(ordering: .relaxed) == 2)
        #expect(try proxy.fetch(get("/up")).body == "200 at /up")
        #expect(try proxy.fetch(get("/down")).body == "503 at /down")
    }

    @Test("a password whose connections are lost is sent four times in a minute, and the rest hears when it goes on")
    func lost() throws {
        let attempts = Atomic<Int>(0)
        let (isTried, isOver) = (Signal(), Signal())
        let upstream = try AnsweringUpstream { head, _ in
            guard head.contains("Authorization:") else { return answer("401 Unauthorized", "", TrialTests.demand) }
            attempts.wrappingAdd(1, ordering: .relaxed)
            isTried.set()
            isOver.wait()
            return ""
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]))
        let first = try proxy.connect()
        try first.send(get())
        #expect(isTried.wait())
        let others = try (0..<5).map { _ in try proxy.connect() }
        for (number, other) in others.enumerated() { try other.send(get("/\(number)")) }
        proxy.wait("five wait") { proxy.waiters == 5 }
        isOver.set()
        #expect(try first.message().body.contains("\"code\":\"upstream-unreachable\""))
        let answers = try others.map { try $0.message() }
        #expect(answers.count { $0.body.contains("\"code\":\"upstream-unreachable\"") } == 3)
        let told = answers.filter { $0.body.contains("\"code\":\"login-failed\"") }
        #expect(told.count == 2 && told.allSatisfy { $0.head.contains("Retry-After: 60\r\n") })
        #expect(attempts.load(ordering: .relaxed) == 4)
        // An operator's command does not wait.
        _ = proxy.services.gate.change { $0.sessions.drop { _ in true } }
        #expect(try proxy.fetch(get()).body.contains("\"code\":\"upstream-unreachable\""))
    }

    @Test("a verifier that leaves before the answer hands the trial to the next")
    func proverGone() throws {
        let attempts = Atomic<Int>(0)
        let (isTried, isOver) = (Signal(), Signal())
        let upstream = try AnsweringUpstream { head, _ in
            guard head.contains("Authorization:") else { return answer("401 Unauthorized", "", TrialTests.demand) }
            attempts.wrappingAdd(1, ordering: .relaxed)
            isTried.set()
            if head.hasPrefix("GET /slow") { isOver.wait() }
            return answer("200 OK", "in")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]))
        let first = try proxy.connect()
        try first.send(get("/slow"))
        #expect(isTried.wait())
        let second = try proxy.connect()
        try second.send(get("/fast"))
        proxy.wait("the second waits") { proxy.waiters == 1 }
        first.reset()
        #expect(try second.message().body == "in")
        #expect(attempts.load(ordering: .relaxed) == 2)
        isOver.set()
    }

    @Test("a slow page holds up the others for two seconds at most, and gets its own answer")
    func slow() throws {
        let (isTried, isOver) = (Signal(), Signal())
        let upstream = try AnsweringUpstream { head, _ in
            guard head.contains("Authorization:") else { return answer("401 Unauthorized", "", TrialTests.demand) }
            isTried.set()
            if head.hasPrefix("GET /slow") { isOver.wait() }
            return answer("200 OK", "in")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login(upstream.port)]))
        let slow = try proxy.connect()
        try slow.send(get("/slow"))
        #expect(isTried.wait())
        let others = try (0..<5).map { _ in try proxy.connect() }
        for (number, other) in others.enumerated() { try other.send(get("/\(number)")) }
        proxy.wait("five wait") { proxy.waiters == 5 }
        proxy.pass(.seconds(2))
        for other in others { #expect(try other.message().body == "in") }
        isOver.set()
        #expect(try slow.message().body == "in")
    }
}

@Suite("Paths that refuse a token")
struct RefusedPathTests {
    /// A server that accepts one token, and refuses every token at the paths below `/no`.
    private final class Resource: Sendable {
        let valid = Mutex("t1")
        let refusesAll = Atomic<Bool>(false)

        func upstream() throws -> AnsweringUpstream {
            try AnsweringUpstream { [self] head, _ in
                let path = head.split(separator: " ").dropFirst().first.map(String.init) ?? ""
                if path == "/public" { return answer("200 OK", "all") }
                let isValid = head.contains("Authorization: Bearer \(valid.withLock { $0 })\r\n")
                let isRefused = path.hasPrefix("/no") || refusesAll.load(ordering: .relaxed)
                return isValid && !isRefused ? answer("200 OK", "in") : challenge
            }
        }
    }

    private let resource = Resource()

    private func proxy(_ upstream: AnsweringUpstream) throws -> TestProxy {
        try TestProxy(
            .bank(
                port: upstream.port,
                logins: [
                    .scripted(port: upstream.port) { [resource] _, _, _ in
                        .bearer(resource.valid.withLock { $0 })
                    }
                ]))
    }

    @Test("200 of them cost no login while the token works elsewhere, and each caller gets the answer as it came")
    func worksElsewhere() throws {
        let upstream = try resource.upstream()
        let proxy = try proxy(upstream)
        #expect(try proxy.fetch(get("/yes")).body == "in")
        for number in 0..<200 { #expect(try proxy.fetch(get("/no/\(number)")).body == "denied") }
        #expect(try proxy.fetch(get("/yes")).body == "in")
        #expect(proxy.log.count == 1)
    }

    @Test("50 of them cost one login in 30 s if the server refuses every token")
    func refusesAll() throws {
        resource.refusesAll.store(true, ordering: .relaxed)
        let upstream = try resource.upstream()
        let proxy = try proxy(upstream)
        for number in 0..<50 { #expect(try proxy.fetch(get("/\(number)")).body == "denied") }
        #expect(proxy.log.count == 1)
        proxy.clock.advance(by: 30)
        for number in 50..<100 { #expect(try proxy.fetch(get("/\(number)")).body == "denied") }
        #expect(proxy.log.count == 2)
    }

    @Test("a token that is revoked a moment after its login is renewed at once, wherever that is noticed")
    func revoked() throws {
        let upstream = try resource.upstream()
        let proxy = try proxy(upstream)
        #expect(try proxy.fetch(get("/yes")).body == "in")
        for (number, path) in ["/yes", "/other"].enumerated() {
            resource.valid.withLock { $0 = "t\(number + 2)" }
            #expect(try proxy.fetch(get(path)).body == "in")
            #expect(proxy.log.count == number + 2)
        }
    }

    @Test("a page that is public does not show that a token still works")
    func publicPage() throws {
        let upstream = try resource.upstream()
        let proxy = try proxy(upstream)
        #expect(try proxy.fetch(get("/yes")).body == "in")
        proxy.pass(.milliseconds(10))
        #expect(try proxy.fetch(get("/public")).body == "all")
        resource.valid.withLock { $0 = "t2" }
        #expect(try proxy.fetch(get("/other")).body == "in")
        #expect(proxy.log.count == 2)
    }
}
