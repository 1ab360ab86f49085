// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import Testing

@testable import ChallengeClient

@Suite("The values that logins have used")
struct CredentialLedgerTests {
    private final class Source: CredentialProvider {
        let value = Mutex<String?>("old")
        func set(_ new: String?) { value.withLock { $0 = new } }
        func credential(named name: String) async throws(CredentialError) -> Credential? {
            value.withLock { $0 }.map { Credential(name: name, fields: ["pin": Secret($0)]) }
        }
    }

    private let source = Source()
    private let ledger = CredentialLedger { $0["pin"]?.revealBytes() ?? [] }
    private let won = Result<Session, LoginFailure>.success(Session())

    private func key(_ challenge: String) throws -> SessionKey {
        SessionKey(origin: Origin(scheme: .https, host: "a.example", port: 443), challenge: challenge, credential: "c")
    }

    private func login(_ key: SessionKey, _ result: Result<Session, LoginFailure>? = nil) async throws {
        let lookUps = CredentialLedger.LookUps(source, ledger)
        _ = try await lookUps.credential(named: "c")
        ledger.note(key, lookUps, result ?? won)
    }

    /// What the watch does.
    @discardableResult
    private func watch() async throws -> Bool {
        let number = ledger.beginLooking()
        return ledger.saw("c", as: try await source.credential(named: "c"), number: number)
    }

    @Test("are outdated once the watch has seen another, and told of once")
    func outdated() async throws {
        let key = try key("a")
        try await login(key)
        #expect(try await !watch())
        #expect(ledger.outdated == [])
        source.set("new")
        #expect(ledger.outdated == [])
        #expect(try await watch())
        #expect(try await !watch())
        #expect(ledger.outdated == [key])
        try await login(key)
        #expect(ledger.outdated == [])
    }

    @Test("are not outdated where the same value was written again")
    func same() async throws {
        try await login(key("a"))
        _ = try await watch()
        source.set("old")
        #expect(try await !watch())
        #expect(ledger.outdated == [])
    }

    @Test("of a login that began before the change and ended after it are outdated")
    func underWay() async throws {
        let key = try key("a")
        let lookUps = CredentialLedger.LookUps(source, ledger)
        _ = try await lookUps.credential(named: "c")
        source.set("new")
        _ = try await watch()
        ledger.note(key, lookUps, won)
        #expect(ledger.outdated == [key])
    }

    @Test("that a login found before the watch did are the present ones")
    func ahead() async throws {
        try await login(key("a"))
        _ = try await watch()
        source.set("new")
        try await login(key("b"))
        #expect(ledger.outdated == [])
        _ = try await watch()
        #expect(try ledger.outdated == [key("a")])
    }

    @Test("stay where a credential is removed, and count again when it comes back as another")
    func removed() async throws {
        try await login(key("a"))
        _ = try await watch()
        source.set(nil)
        #expect(try await watch())
        #expect(ledger.outdated == [])
        source.set("new")
        _ = try await watch()
        #expect(try ledger.outdated == [key("a")])
    }

    @Test("are taken from a rejection, too, and not from a login of which nothing is known")
    func failures() async throws {
        let key = try key("a")
        try await login(key)
        source.set("new")
        _ = try await watch()
        try await login(key, .failure(LoginFailure(.timedOut, challenge: "a", detail: "")))
        #expect(ledger.outdated == [key])
        try await login(key, .failure(LoginFailure(.rejected, challenge: "a", detail: "")))
        #expect(ledger.outdated == [])
    }

    @Test("are forgotten with their session")
    func forgotten() async throws {
        let key = try key("a")
        try await login(key)
        #expect(ledger.names == ["c"])
        ledger.forget(key)
        #expect(ledger.names.isEmpty)
    }

    @Test(
        "a latch's value counts as replaced as soon as the watch or a login has seen another, and not before anybody has looked"
    )
    func replaced() async throws {
        func digest(_ text: String) -> [UInt8] { Array(text.utf8) }
        let ledger = CredentialLedger { $0["f"]?.revealBytes() ?? [] }
        func credential(_ text: String) -> Credential { Credential(name: "c", fields: ["f": Secret(text)]) }
        #expect(!ledger.isReplaced(digest("old"), of: "c"))
        ledger.saw("c", as: credential("old"), number: ledger.beginLooking())
        #expect(!ledger.isReplaced(digest("old"), of: "c"))
        ledger.saw("c", as: credential("new"), number: ledger.beginLooking())
        #expect(ledger.isReplaced(digest("old"), of: "c") && !ledger.isReplaced(digest("new"), of: "c"))
        ledger.saw("c", as: credential("old"), number: ledger.beginLooking())
        #expect(!ledger.isReplaced(digest("old"), of: "c"))
        ledger.saw("c", as: nil, number: ledger.beginLooking())
        #expect(ledger.isReplaced(digest("old"), of: "c") && !ledger.isReplaced(digest("old"), of: "d"))
    }
}
