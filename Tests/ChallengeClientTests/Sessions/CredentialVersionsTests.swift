// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import Testing

@testable import ChallengeClient

@Suite("The values that logins have used")
struct CredentialVersionsTests {
    private final class Source: CredentialProvider {
        let value = Mutex<String?>("old")
        func set(_ new: String?) { value.withLock { $0 = new } }
        func credential(named name: String) async throws(CredentialError) -> Credential? {
            value.withLock { $0 }.map { Credential(name: name, fields: ["pin": Secret($0)]) }
        }
    }

    private let source = Source()
    private let versions = CredentialVersions { $0["pin"]?.revealBytes() ?? [] }
    private let established = Result<Session, LoginFailure>.success(Session())

    private func key(_ challenge: String) throws -> SessionKey {
        SessionKey(origin: Origin(scheme: .https, host: "a.example", port: 443), challenge: challenge, credential: "c")
    }

    private func login(_ key: SessionKey, _ result: Result<Session, LoginFailure>? = nil) async throws {
        let recorder = CredentialVersions.RecordingProvider(PlanSources(source), versions)
        _ = try await recorder.credential(named: "c")
        versions.record(key, recorder, result ?? established)
    }

    /// Looks the credential up as the watch does; true if its value has changed.
    @discardableResult
    private func watch() async throws -> Bool {
        let number = versions.beginLookup()
        return versions.recordLookup(of: "c", as: try await source.credential(named: "c"), number: number)
    }

    @Test("a value is outdated once the watch has seen another, which is reported once")
    func outdated() async throws {
        let key = try key("a")
        try await login(key)
        #expect(try await !watch())
        #expect(versions.outdated == [])
        source.set("new")
        #expect(versions.outdated == [])
        #expect(try await watch())
        #expect(try await !watch())
        #expect(versions.outdated == [key])
        try await login(key)
        #expect(versions.outdated == [])
    }

    @Test("a session keeps the value that established it, although a login with the next one was rejected")
    func rejected() async throws {
        let key = try key("a")
        try await login(key)
        source.set("new")
        _ = try await watch()
        try await login(key, .failure(LoginFailure(.rejected, challenge: "a", detail: "no")))
        #expect(versions.outdated == [])
        #expect(versions.versions(of: key) == ["c": Array("old".utf8)])
        try await login(key)
        #expect(versions.versions(of: key) == ["c": Array("new".utf8)])
    }

    @Test("a value that was written again unchanged is not outdated")
    func same() async throws {
        try await login(key("a"))
        _ = try await watch()
        source.set("old")
        #expect(try await !watch())
        #expect(versions.outdated == [])
    }

    @Test("a value of a login that began before the change and ended after it is outdated")
    func underWay() async throws {
        let key = try key("a")
        let recorder = CredentialVersions.RecordingProvider(PlanSources(source), versions)
        _ = try await recorder.credential(named: "c")
        source.set("new")
        _ = try await watch()
        versions.record(key, recorder, established)
        #expect(versions.outdated == [key])
    }

    @Test("a value that a login found before the watch is the current one")
    func ahead() async throws {
        try await login(key("a"))
        _ = try await watch()
        source.set("new")
        try await login(key("b"))
        #expect(versions.outdated == [])
        _ = try await watch()
        #expect(try versions.outdated == [key("a")])
    }

    @Test("a value stays if its credential is removed, and is outdated when another comes back")
    func removed() async throws {
        try await login(key("a"))
        _ = try await watch()
        source.set(nil)
        #expect(try await watch())
        #expect(versions.outdated == [])
        source.set("new")
        _ = try await watch()
        #expect(try versions.outdated == [key("a")])
    }

    @Test("a value is recorded from a rejection, too, but not from a login with an unknown result")
    func failures() async throws {
        let key = try key("a")
        try await login(key)
        source.set("new")
        _ = try await watch()
        try await login(key, .failure(LoginFailure(.timedOut, challenge: "a", detail: "")))
        #expect(versions.outdated == [key])
        try await login(key, .failure(LoginFailure(.rejected, challenge: "a", detail: "")))
        #expect(versions.outdated == [])
    }

    @Test("without a session, the last login's values count, although its result is unknown")
    func lastLogin() async throws {
        let key = try key("a")
        try await login(key)
        source.set("new")
        _ = try await watch()
        try await login(key, .failure(LoginFailure(.timedOut, challenge: "a", detail: "")))
        #expect(!versions.forgetSession(of: key))
        #expect(versions.outdated == [])
        #expect(versions.versions(of: key) == [:])
        source.set("newer")
        _ = try await watch()
        #expect(versions.outdated == [key])
        #expect(versions.forgetSession(of: key))
    }

    @Test("the values of a session are forgotten with it")
    func forgotten() async throws {
        let key = try key("a")
        try await login(key)
        #expect(versions.names == ["c"])
        versions.forget(key)
        #expect(versions.names.isEmpty)
    }

    @Test(
        "a latch's value counts as replaced once the watch or a login has seen another value, and not before a lookup"
    )
    func replaced() async throws {
        func digest(_ text: String) -> [UInt8] { Array(text.utf8) }
        let versions = CredentialVersions { $0["f"]?.revealBytes() ?? [] }
        func credential(_ text: String) -> Credential { Credential(name: "c", fields: ["f": Secret(text)]) }
        #expect(!versions.isReplaced(digest("old"), of: "c"))
        versions.recordLookup(of: "c", as: credential("old"), number: versions.beginLookup())
        #expect(!versions.isReplaced(digest("old"), of: "c"))
        versions.recordLookup(of: "c", as: credential("new"), number: versions.beginLookup())
        #expect(versions.isReplaced(digest("old"), of: "c") && !versions.isReplaced(digest("new"), of: "c"))
        versions.recordLookup(of: "c", as: credential("old"), number: versions.beginLookup())
        #expect(!versions.isReplaced(digest("old"), of: "c"))
        versions.recordLookup(of: "c", as: nil, number: versions.beginLookup())
        #expect(versions.isReplaced(digest("old"), of: "c") && !versions.isReplaced(digest("old"), of: "d"))
    }

    /// The lookups of a login whose plan is of that generation.
    private func recorder(_ generation: UInt64) -> CredentialVersions.RecordingProvider {
        CredentialVersions.RecordingProvider(PlanSources(source, generation: generation), versions)
    }

    @Test("a value of earlier sources is outdated, although it was looked up after the one of the present sources")
    func earlierSources() async throws {
        let key = try key("a")
        versions.begin(1)
        let late = recorder(1)
        versions.begin(2)
        source.set("new")
        #expect(try await !watch())
        source.set("old")
        _ = try await late.credential(named: "c")
        versions.record(key, late, established)
        #expect(versions.outdated == [key])
        #expect(versions.isReplaced(Array("old".utf8), of: "c"))
        // The watch of the earlier sources finds nothing that counts.
        #expect(
            !versions.recordLookup(
                of: "c", as: try await source.credential(named: "c"), number: versions.beginLookup(in: 1)))
        #expect(versions.outdated == [key])
    }

    @Test("a value of earlier sources must be compared once, whenever its login ends")
    func uncompared() async throws {
        versions.begin(1)
        let first = recorder(1)
        _ = try await first.credential(named: "c")
        try versions.record(key("a"), first, established)
        #expect(versions.uncompared.isEmpty)
        let late = recorder(1)
        versions.begin(2)
        #expect(versions.uncompared == ["c"])
        try await watch()
        #expect(versions.uncompared.isEmpty)
        versions.begin(3)
        versions.recordUnknown("c", number: versions.beginLookup(in: 2))
        #expect(versions.uncompared == ["c"])
        versions.recordUnknown("c", number: versions.beginLookup())
        #expect(versions.uncompared.isEmpty)
        // No login had used a value when the present sources were asked.
        try versions.forget(key("a"))
        versions.begin(4)
        _ = try await late.credential(named: "c")
        #expect(versions.uncompared.isEmpty)
        try versions.record(key("b"), late, established)
        #expect(versions.uncompared == ["c"])
    }
}
