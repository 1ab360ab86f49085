// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
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

/// What is expected of one side request, and what it gets.
struct ScriptedStep: Sendable {
    let method: HTTPRequest.Method
    let url: String
    let isExpected: @Sendable (SideRequest) -> Bool
    let reply: Result<SideResponse, SideRequestError>
    let location: SourceLocation

    init(
        _ method: HTTPRequest.Method, _ url: String, _ reply: Result<SideResponse, SideRequestError>,
        location: SourceLocation = #_sourceLocation,
        where isExpected: @escaping @Sendable (SideRequest) -> Bool = { _ in true }
    ) {
        self.method = method
        self.url = url
        self.isExpected = isExpected
        self.reply = reply
        self.location = location
    }

    /// The same request, with another reply.
    func replying(_ status: Int, _ fields: HTTPFields = [:], _ body: String = "") -> ScriptedStep {
        replying(.success(SideResponse(status: status, fields: fields, body: Array(body.utf8))))
    }

    /// The same request, with another reply or an error.
    func replying(_ reply: Result<SideResponse, SideRequestError>) -> ScriptedStep {
        ScriptedStep(method, url, reply, location: location, where: isExpected)
    }
}

/// A network that expects exactly these requests, in this order.
final class ScriptedSideRequests: SideRequests {
    private struct State {
        var steps: [ScriptedStep]
        var sent: [SideRequest] = []
    }

    private let state: Mutex<State>

    init(_ steps: [ScriptedStep]) {
        state = Mutex(State(steps: steps))
    }

    /// Everything that was sent.
    var sent: [SideRequest] { state.withLock { $0.sent } }
    /// What was expected and not sent.
    var missing: [ScriptedStep] { state.withLock { $0.steps } }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        // Gives other tasks the chance to interfere.
        await Task.yield()
        let step: ScriptedStep? = state.withLock { state in
            state.sent.append(request)
            return state.steps.isEmpty ? nil : state.steps.removeFirst()
        }
        let address = "\(request.url.origin)\(request.url.path)"
        guard let step else {
            Issue.record("unexpected request: \(request.method) \(address) \(request.body?.revealText() ?? "")")
            throw SideRequestError(.unreachable, reason: "the script is over")
        }
        #expect(request.method == step.method && address == step.url, sourceLocation: step.location)
        #expect(step.isExpected(request), "\(request.body?.revealText() ?? "")", sourceLocation: step.location)
        // RFC 6265 §5.4. What reads a field joins its lines, so that a step would not notice.
        #expect(request.fields[values: .cookie].count < 2, "Cookie in several lines", sourceLocation: step.location)
        return try step.reply.get()
    }
}

extension SideRequest {
    /// The body as JSON.
    var json: JSONValue? { body.flatMap { JSONValue(parsing: $0.revealBytes()) } }

    /// The first value of `name` in the form that the body is.
    func form(_ name: String) -> String? { body.flatMap { FormEncoding.value(of: name, in: $0.revealText()) } }

    /// The first value of `name` in the query.
    func query(_ name: String) -> String? { url.query.flatMap { FormEncoding.value(of: name, in: $0) } }
}

/// A handler that notes what it is told, and answers as it was made to.
final class RecordingHandler: SecurityCheckChallengeHandler {
    let securityCheck: String
    private let log = Notes()
    private let answer: @Sendable (SecurityCheckChallenge) async throws -> ChallengeAnswer

    init(_ securityCheck: String, answer: @escaping @Sendable (SecurityCheckChallenge) async throws -> ChallengeAnswer)
    {
        self.securityCheck = securityCheck
        self.answer = answer
    }

    var told: [String] { log.all }

    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        log.add("challenge")
        return try await answer(challenge)
    }

    func handleSuccess(_ success: JSONValue) async { log.add("success") }
    func handleFailure(_ failure: JSONValue) async { log.add("failure") }
}
