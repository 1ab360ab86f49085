// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import System
import Testing

@testable import Credentials

/// Asker with scripted answers, which counts its questions.
final class ScriptedAsker: SecretAsker {
    private let script: Mutex<[Result<String, AskFailure>]>
    private let counter = Mutex(0)

    init(_ script: Result<String, AskFailure>...) { self.script = Mutex(script) }

    /// Number of questions so far.
    var count: Int { counter.withLock { $0 } }

    func ask(_ question: String, id: String) throws(AskFailure) -> Secret {
        counter.withLock { $0 += 1 }
        let next = script.withLock { $0.isEmpty ? .failure(AskFailure(reason: "nobody is there")) : $0.removeFirst() }
        return Secret(try next.get())
    }
}

@Suite("Asked fields")
struct AskedFieldsTests {
    @Test("an asked field is prompted once for all waiting and later callers")
    func once() async throws {
        let asker = ScriptedAsker(.success("1234"), .success("other"))
        let fields = AskedFields(asker: asker)
        try await withThrowingTaskGroup { group in
            for _ in 0..<50 {
                group.addTask {
                    let answer = try await fields.value(of: "bank-pin", "pin")
                    #expect(answer == Secret("1234"))
                }
            }
            try await group.waitForAll()
        }
        #expect(try await fields.value(of: "bank-pin", "pin") == Secret("1234"))
        #expect(asker.count == 1)
        #expect(try await fields.value(of: "bank-pin", "tan") == Secret("other"))
    }

    @Test("an asked field is prompted again after its answer was forgotten, and no other field")
    func forget() async throws {
        let asker = ScriptedAsker(.success("a"), .success("b"), .success("c"))
        let fields = AskedFields(asker: asker)
        _ = try await fields.value(of: "one", "pin")
        _ = try await fields.value(of: "two", "pin")
        fields.forget("one")
        fields.forgetRefusals()
        #expect(try await fields.value(of: "two", "pin") == Secret("b"))
        #expect(try await fields.value(of: "one", "pin") == Secret("c"))
    }

    @Test(
        "an asked field fails for all waiters if no thread can start, and is prompted at once when one can"
    )
    func noThread() async throws {
        let asker = ScriptedAsker(.success("1234"))
        let isFailing = Mutex(true)
        let starter: ThreadStart = { (body: @escaping @Sendable () -> Void) throws(ThreadError) in
            if isFailing.withLock({ $0 }) { throw ThreadError(code: 11) }
            try startThread(body)
        }
        let fields = AskedFields(asker: asker, onThread: starter)
        let error = await #expect(throws: CredentialError.self) { try await fields.value(of: "bank-pin", "pin") }
        #expect(error?.isAbsent == false && error?.reason.contains("no thread could be started") == true)
        isFailing.withLock { $0 = false }
        #expect(try await fields.value(of: "bank-pin", "pin") == Secret("1234"))
        #expect(asker.count == 1)
    }

    @Test("an asked field without an answer is absent, without another prompt for a while")
    func refused() async throws {
        let clock = Mutex(ContinuousClock.now)
        let asker = ScriptedAsker(.failure(AskFailure(reason: "the prompt was withdrawn")))
        let fields = AskedFields(asker: asker, pause: .seconds(60)) { clock.withLock { $0 } }
        for _ in 0..<3 {
            let error = await #expect(throws: CredentialError.self) { try await fields.value(of: "bank-pin", "pin") }
            #expect(error?.isAbsent == true)
            #expect(error?.reason.contains("bank-pin") == true && error?.reason.contains("withdrawn") == true)
        }
        #expect(asker.count == 1)
        clock.withLock { $0 += .seconds(61) }
        _ = try? await fields.value(of: "bank-pin", "pin")
        #expect(asker.count == 2)
        fields.forgetRefusals()
        _ = try? await fields.value(of: "bank-pin", "pin")
        #expect(asker.count == 3)
    }

    @Test("asked fields add only those that the sources lack")
    func fillUp() async throws {
        let asker = ScriptedAsker(.success("7391"))
        let environment = EnvironmentSource(environment: [
            "COUNTERSIGN_CARD__USERNAME": "ann", "COUNTERSIGN_WHOLE__PIN": "1",
        ])
        let store = CredentialStore(
            sources: [environment], asked: ["card": ["pin"], "whole": ["pin"]], answers: AskedFields(asker: asker))
        #expect(try await store.credential(named: "whole")?.fields == ["pin": Secret("1")])
        #expect(try await store.credential(named: "other")?.name == nil)
        #expect(asker.count == 0)
        guard case .unknown = try await store.watched(named: "card") else {
            Issue.record("nobody has answered yet")
            return
        }
        #expect(
            try await store.credential(named: "card")?.fields == ["username": Secret("ann"), "pin": Secret("7391")])
        guard case .known(let credential) = try await store.watched(named: "card") else {
            Issue.record("it was answered")
            return
        }
        #expect(credential?["pin"] == Secret("7391"))
        #expect(asker.count == 1)
    }

    @Test("the passphrase of a keyring is prompted again only if it was wrong")
    func passphrase() throws {
        let directory = try TemporaryDirectory()
        let file = KeyringFile(path: directory.file("keyring"))
        try file.create(passphrase: Secret("right"), cost: .minimum)
        func set(_ value: String, _ passphrase: String) throws {
            try file.update(passphrase: Secret(passphrase)) { (keyring) throws(KeyringError) in
                try keyring.set(Secret(value), for: "a", "pin")
            }
        }
        try set("1", "right")
        let asker = ScriptedAsker(.success("wrong"), .success("right"), .success("new"))
        let asked = AskedPassphrase(of: file.path, asker: asker)
        let source = KeyringSource(
            path: file.path, passphrase: KeyringPassphrase(environment: [:], keyFile: nil, asked: asked))
        #expect(throws: CredentialError.self) { try source.credential(named: "a") }
        #expect(try source.credential(named: "a")?["pin"] == Secret("1"))
        try set("2", "right")
        #expect(try source.credential(named: "a")?["pin"] == Secret("2"))
        #expect(asker.count == 2)
        try file.rekey(from: Secret("right"), to: Secret("new"), cost: .minimum)
        #expect(throws: CredentialError.self) { try source.credential(named: "a") }
        #expect(try source.credential(named: "a")?["pin"] == Secret("2"))
        // There is no answer: the same error is returned for a while.
        try file.rekey(from: Secret("new"), to: Secret("newer"), cost: .minimum)
        for _ in 0..<4 { #expect(throws: CredentialError.self) { try source.credential(named: "a") } }
        #expect(asker.count == 4)
    }
}
