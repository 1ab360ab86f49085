// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import TestSupport
import Testing

/// A rig for conversations: a script for the network, a credential store, latches, a state store, a clock, a transcript.
final class LoginRig: Sendable {
    /// The time of all tests: 2026-11-21 16:00:00 UTC.
    static let now: Int64 = 1_795_276_800_000

    let requests: ScriptedSideRequests
    let latches: LocalGate
    let store: MemoryStore
    let credentials: Credentials
    private let transcript = Mutex<[ConversationStep]>([])

    init(
        _ steps: [ScriptedStep] = [], credentials: [Credential] = [.bankPIN], store: MemoryStore = MemoryStore(),
        latches: LocalGate = LocalGate()
    ) {
        self.latches = latches
        requests = ScriptedSideRequests(steps)
        self.credentials = Credentials(credentials)
        self.store = store
    }

    var conversation: Conversation {
        Conversation(
            sideRequests: requests, credentials: credentials, attempts: latches, state: store, now: { Self.now },
            report: { step in self.transcript.withLock { $0.append(step) } })
    }

    var steps: [String] { transcript.withLock { $0.map(\.text) } }

    /// Runs `login` and expects a session, the whole script sent, and no secret told.
    func logIn(_ login: any SessionLogin, location: SourceLocation = #_sourceLocation) async throws -> Session {
        let session = try await login.logIn(conversation)
        expectEnd("", location)
        return session
    }

    /// Runs `login` and expects a failure, the whole script sent, and no secret told.
    func lose(_ login: any SessionLogin, location: SourceLocation = #_sourceLocation) async -> LoginFailure {
        do {
            _ = try await login.logIn(conversation)
            Issue.record("a session was established", sourceLocation: location)
            return LoginFailure(.failed, challenge: "", detail: "")
        } catch {
            expectEnd("\(error)", location)
            return error
        }
    }

    private func expectEnd(_ failure: String, _ location: SourceLocation) {
        let missing = requests.missing.map { "\($0.method) \($0.url)" }
        #expect(missing.isEmpty, "not sent", sourceLocation: location)
        let told = failure + transcript.withLock { $0.map { "\($0)" }.joined(separator: "\n") }
        for secret in credentials.secrets + ["4711-code", "eyJ0b2tlbiI6MX0"] {
            #expect(!told.contains(secret), "a secret was told", sourceLocation: location)
        }
    }
}

extension Credential {
    static let bankPIN = Credential(name: "bank-pin", fields: ["pin": Secret("1234")])
    static let ann = Credential(name: "ann", fields: ["username": Secret("ann-u"), "password": Secret("pass\"word")])
}

/// Credentials by name; looking up is counted.
final class Credentials: CredentialProvider {
    private let known: [Credential]
    private let lookUps = Mutex(0)
    private let failure: CredentialError?

    init(_ known: [Credential], failure: CredentialError? = nil) {
        self.known = known
        self.failure = failure
    }

    var count: Int { lookUps.withLock { $0 } }
    var secrets: [String] { known.flatMap { $0.fields.values.map { $0.revealText() } } }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        lookUps.withLock { $0 += 1 }
        if let failure { throw failure }
        return known.first { $0.name == name }
    }
}

/// Keys that sign by naming themselves: enough to see who signed what.
final class ScriptedKeys: SigningKeys {
    private let made = Mutex(0)

    var count: Int { made.withLock { $0 } }

    func generate() throws(StateError) -> any SigningKey {
        ScriptedKey(
            number: made.withLock { number in
                number += 1
                return number
            })
    }

    func load(_ serialized: Secret) throws(StateError) -> any SigningKey {
        guard let number = Int(serialized.revealText().dropFirst(4)) else { throw StateError(reason: "no key") }
        return ScriptedKey(number: number)
    }

    func load(pem: Secret) throws(StateError) -> any AssertionKey {
        guard pem == Secret("PEM") else { throw StateError(reason: "it is no PEM") }
        return ScriptedAssertionKey()
    }
}

struct ScriptedAssertionKey: AssertionKey {
    var algorithm: String { "RS256" }

    func signature(for message: [UInt8]) throws(StateError) -> [UInt8] { Array("signed".utf8) }
}

struct ScriptedKey: SigningKey {
    let number: Int

    var modulus: [UInt8] { [0xFB, 0xFF] + Array(repeating: UInt8(truncatingIfNeeded: number), count: 30) }
    var exponent: [UInt8] { [1, 0, 1] }
    var serialized: Secret { Secret("key-\(number)") }

    func signature(for message: [UInt8]) throws(StateError) -> [UInt8] {
        Array("signed by \(number): ".utf8) + message
    }
}
