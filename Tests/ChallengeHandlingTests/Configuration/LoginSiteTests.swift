// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import SettingsReading
import Synchronization
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Authenticators of upstreams")
struct LoginSiteTests {
    private func upstream(_ number: Int) -> ProtectedUpstream {
        ProtectedUpstream(
            name: "u\(number)", url: WebURL(origin: Origin(scheme: .https, host: "u\(number).example"), path: "/"))
    }

    private func material() -> LoginMaterial {
        LoginMaterial(
            digests: NoDigests(), keys: ScriptedKeys(), messageKeys: EchoKeys(), tickets: NoTickets(), hasNTLM: false)
    }

    @Test(
        "of N upstreams with a challenge each, every challenge is made an authenticator once", arguments: [false, true])
    func linear(byPattern: Bool) throws {
        let work = CountedWork()
        let challenges = try (0..<300).map { number in
            ChallengeSettings(
                name: "c\(number)",
                location: byPattern
                    ? .locations([try LocationPattern("https://u\(number).example/*")]) : .upstream("u\(number)"),
                credential: "k", kind: CountedKind(work))
        }
        let index = ChallengeIndex(challenges)
        let material = material()
        for number in 0..<300 {
            let (logins, origins) = LoginSite(upstream(number), index, material).authenticators()
            #expect(logins.all.map(\.name) == ["c\(number)"])
            #expect(logins.all.first?.terms.contains("counted") == true)
            #expect(origins.count == 1)
        }
        #expect(work.authenticators == 300 && work.terms == 300)
    }

    @Test(
        "the origins of logins at other servers count if a login of the upstream leads there, over any number of steps")
    func elsewhere() throws {
        let work = CountedWork()
        func origin(_ host: String) -> Origin { Origin(scheme: .https, host: host) }
        func challenge(_ name: String, at pattern: String, to host: String) throws -> ChallengeSettings {
            ChallengeSettings(
                name: name, location: .locations([try LocationPattern(pattern)]), credential: "k",
                kind: CountedKind(work, sendsTo: origin(host)))
        }
        let challenges = try [
            challenge("third", at: "https://*.two.example/*", to: "three.example"),
            challenge("first", at: "https://u0.example/*", to: "one.example"),
            challenge("second", at: "https://one.example/*", to: "x.two.example"),
            challenge("stranger", at: "https://four.example/*", to: "five.example"),
        ]
        let (logins, origins) = LoginSite(upstream(0), challenges, material()).authenticators()
        #expect(logins.all.map(\.name) == ["first"])
        #expect(origins == Set(["u0.example", "one.example", "x.two.example", "three.example"].map(origin)))
    }

    @Test("callers with credentials of their own get authenticators with these, and other challenges keep theirs")
    func credentials() {
        let work = CountedWork()
        let challenges = ["a", "b"].map {
            ChallengeSettings(name: $0, location: .upstream("u0"), credential: "common", kind: CountedKind(work))
        }
        let site = LoginSite(upstream(0), ChallengeIndex(challenges), credentials: ["b": "own"], material())
        #expect(site.authenticators().logins.all.map(\.key.credential) == ["common", "own"])
    }
}

/// Calls of a `CountedKind`.
private final class CountedWork: Sendable {
    private let counts = Mutex((authenticators: 0, terms: 0))

    var authenticators: Int { counts.withLock(\.authenticators) }
    var terms: Int { counts.withLock(\.terms) }

    func makeAuthenticator() { counts.withLock { $0.authenticators += 1 } }
    func addTerms() { counts.withLock { $0.terms += 1 } }
}

/// Kind of challenge that counts how often it is asked.
private struct CountedKind: ChallengeKind {
    static let keys: [any SchemaKey] = []
    let work: CountedWork
    let origin: Origin?

    init(_ work: CountedWork, sendsTo origin: Origin? = nil) { (self.work, self.origin) = (work, origin) }

    static func == (left: CountedKind, right: CountedKind) -> Bool { left.origin == right.origin }
    static func read(_ fields: Fields, _ context: ChallengeContext) -> CountedKind? { nil }

    var needsCredential: Bool { true }
    var neededFields: Set<String> { [] }
    func conflicts(with other: CountedKind) -> Bool { false }

    func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        work.addTerms()
        terms.add("counted", "yes")
    }

    func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        work.makeAuthenticator()
        let key = SessionKey(
            origin: site.upstream.url.origin, challenge: challenge.name, credential: challenge.credential ?? "")
        return Authenticator(name: challenge.name, trigger: .mobileFirst, isAhead: false, key: key, credentials: []) {
            _ in
            NeverLogin()
        }.sending(to: Set([origin].compactMap(\.self)))
    }
}

private struct NoTickets: TicketProvider {
    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
        throw TicketError(.unsupported, reason: "there is no GSS-API")
    }
}

private struct NeverLogin: SessionLogin {
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        throw LoginFailure(.failed, challenge: "", detail: "")
    }
}
