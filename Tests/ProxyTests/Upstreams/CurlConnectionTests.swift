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

/// Credentials named after their users, whose passwords may change.
private final class Users: CredentialProvider {
    private let number = Atomic<Int>(1)

    func credential(of user: String) -> Credential {
        let password = Secret("password \(number.load(ordering: .relaxed))")
        return Credential(name: user, fields: ["username": Secret(user), "password": password])
    }

    func changePasswords() { number.wrappingAdd(1, ordering: .relaxed) }

    func credential(named name: String) async throws(CredentialError) -> Credential? { credential(of: name) }
}

/// Provider of tickets whose servers authenticate by the word "right". It has none for `nobody`.
private struct Office: TicketProvider {
    final class AnyTicket: Ticket {
        let lifetime: Int64 = 3_600
        func token() throws(TicketError) -> TicketToken { TicketToken(bytes: [1, 2, 3], context: Context()) }
    }

    final class Context: TicketContext {
        func verify(_ token: [UInt8]) throws(TicketError) {
            guard token == Array("right".utf8) else { throw TicketError(.unknown, reason: "it does not decrypt") }
        }
    }

    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
        guard request.principal != "nobody" else { throw TicketError(.unknown, reason: "no credentials cache found") }
        return AnyTicket()
    }
}

@Suite("Authenticated connections beside curl's")
struct CurlConnectionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let number, script, latch, reason: String
        let schemes, users, requests, curlAnswers, answers: [String]
        /// Requests of each connection: curl's, and ours.
        let curl, ours: [[String]]
        let isHeld: Bool
        var testDescription: String { "test\(number): \(schemes.joined(separator: " ")), \(script)" }

        init(_ row: [String]) {
            (number, schemes, isHeld, script) = (row[0], row[1].components(by: " "), row[3] == "held", row[4])
            users = row[2].replacing("A{1100}", with: String(repeating: "A", count: 1100)).components(by: " ")
            requests = row[5].components(by: ", ")
            (curl, ours) = (Self.connections(row[6]), Self.connections(row[8]))
            (curlAnswers, answers) = (row[7].components(by: ", "), row[9].components(by: ", "))
            (latch, reason) = (row[10], row[11])
        }

        private static func connections(_ column: String) -> [[String]] {
            column.components(by: " | ").map { $0.components(by: ", ") }
        }
    }

    private static let cases = JudgeTable("curl-connections").rows.map(Case.init)
    private let credentials: Users
    private let attempts = MemoryAttempts()

    init() { credentials = Users() }

    /// Returns a login by `schemes` with the credential of that name.
    private func login(_ schemes: [String], _ credential: String, at origin: Origin) -> Authenticator {
        let known: [String: any AuthenticationScheme] = [
            "ntlm": NTLMScheme(isSupported: true), "basic": BasicScheme(),
            "negotiate": NegotiateScheme(office: Office(), host: "127.0.0.1"),
        ]
        let plan = SchemePlan(
            name: "bank", schemes: schemes.compactMap { known[$0] },
            key: LatchKey(origin: origin, challenge: "bank", credential: credential),
            address: WebURL(origin: origin, path: "/"))
        return Authenticator(
            name: "bank", trigger: .detected(SchemeDetector(plan)), isAhead: false,
            key: SessionKey(origin: origin, challenge: "bank", credential: credential), credentials: [credential],
            bindsConnections: schemes != ["basic"],
            makeLogin: { SchemeLogin(plan, challenge: $0.challenge, scope: $0.scope, target: $0.target) })
    }

    /// Returns a proxy where a single user has the whole upstream, or each of several the paths below its name.
    private func proxy(_ schemes: [String], _ users: [String], _ upstream: HandshakeUpstream) throws -> TestProxy {
        let base = WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: upstream.port), path: "/")
        var authenticators = Authenticators()
        for user in users {
            let login = login(schemes, user, at: base.origin)
            if users.count == 1 {
                authenticators.add(login)
            } else {
                authenticators.add(login, at: try LocationPattern("127.0.0.1:\(upstream.port)/\(user)/*"))
            }
        }
        return try TestProxy(
            UpstreamPlan(name: "bank", base: base, replay: ReplayTiers(memory: 65_536), logins: authenticators),
            attempts: attempts, credentials: credentials)
    }

    /// Sends `METHOD PATH LENGTH`, and returns the status, with the code of a local reply.
    private func answer(to request: String, by proxy: TestProxy) throws -> String {
        let words = request.components(by: " ")
        let length = words.count > 2 ? Int(words[2]) : nil
        let (head, text) = try proxy.fetch(
            "\(words[0]) \(words[1]) HTTP/1.1\r\nHost: localhost\r\nX-Own: yes\r\n"
                + (length.map { "Content-Length: \($0)\r\n" } ?? "") + "\r\n"
                + String(repeating: "b", count: length ?? 0))
        let code = text.components(by: "\"code\":\"").dropFirst().first?.prefix { $0 != "\"" }
        return head.dropFirst(9).prefix(3) + (code.map { " \($0)" } ?? "")
    }

    private func areLatched(_ users: [String], at upstream: HandshakeUpstream) -> Bool {
        let origin = Origin(scheme: .http, host: "127.0.0.1", port: upstream.port)
        return users.contains { user in
            let key = LatchKey(origin: origin, challenge: "bank", credential: user)
            let digest = attempts.digest(of: credentials.credential(of: user))
            return attempts.load().latches.closedLatch(key, digest: digest, now: 0) != nil
        }
    }

    @Test(
        "carry the same messages for the same answers of a server, but where the table says why not", arguments: cases)
    func same(expected: Case) throws {
        let schemes = ["ntlm": "NTLM", "basic": "Basic", "negotiate": "Negotiate"]
        let upstream = try HandshakeUpstream(expected.script, scheme: schemes[expected.schemes[0]] ?? "")
        let proxy = try proxy(expected.schemes, expected.users, upstream)
        if expected.isHeld { #expect(try proxy.fetch(get("/first")).head.hasPrefix("HTTP/1.1 200 ")) }
        var answers: [String] = []
        for request in expected.requests {
            if request == "new-password" {
                credentials.changePasswords()
            } else {
                answers.append(try answer(to: request, by: proxy))
            }
        }
        #expect(upstream.connections == expected.ours)
        #expect(answers == expected.answers)
        #expect(areLatched(expected.users, at: upstream) == (expected.latch == "latched"))
        #expect(upstream.lostFields.isEmpty)
        #expect(upstream.users.isSubset(of: expected.users + expected.users.map { "\\\($0)" }))
    }

    @Test("authenticated connections differ from curl's only for a reason", arguments: cases)
    func reasons(expected: Case) {
        let isSame = expected.curl == expected.ours && expected.curlAnswers == expected.answers
        #expect(isSame == (expected.reason == "-"))
    }

    @Test(
        "the answer to a preliminary request never goes to the caller, and without NTLM the request itself is sent",
        arguments: ["200", "204", "302", "404", "500", "200 close"])
    func aheadOfBody(status: String) throws {
        let upstream = try HandshakeUpstream("type-1: \(status); -: 201", scheme: "NTLM")
        let proxy = try proxy(["ntlm"], ["ann"], upstream)
        #expect(try proxy.fetch(get("/first")).body == "a page")
        #expect(try answer(to: "POST /a 70000", by: proxy) == "201")
        #expect(upstream.connections == [["POST /a type-1 0"], ["POST /a 70000"]])
        let chunked = "POST /b HTTP/1.1\r\nHost: localhost\r\nX-Own: yes\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(try proxy.fetch("\(chunked)5\r\nhello\r\n0\r\n\r\n").head.hasPrefix("HTTP/1.1 201 "))
        #expect(!areLatched(["ann"], at: upstream))
    }

    @Test("a challenge that only the complete request meets is passed on, after the request was sent once")
    func askedLater() throws {
        let upstream = try HandshakeUpstream("type-1: 200; -: 401 NTLM", scheme: "NTLM")
        let proxy = try proxy(["ntlm"], ["ann"], upstream)
        #expect(try proxy.fetch(get("/first")).body == "a page")
        #expect(try answer(to: "POST /a 10", by: proxy) == "401")
        #expect(upstream.connections == [["POST /a type-1 0"], ["POST /a 10"]])
        #expect(!areLatched(["ann"], at: upstream))
    }
}
