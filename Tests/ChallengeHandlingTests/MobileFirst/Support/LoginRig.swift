// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import TestSupport
import Testing

/// Rig for conversations: a scripted network, a credential store, latches, a state store, a clock and a transcript.
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

    /// Runs `login` and expects a session, all steps of the script sent, and no secret in the transcript.
    func logIn(_ login: any SessionLogin, location: SourceLocation = #_sourceLocation) async throws -> Session {
        let session = try await login.logIn(conversation)
        expectEnd("", location)
        return session
    }

    /// Runs `login` and expects a failure, all steps of the script sent, and no secret in the transcript.
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

/// Credentials by name, which count lookups.
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

/// Keys whose signature is their name, so that a test sees which key signed.
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

/// One expected side request, and its reply.
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

    /// Returns this request with another reply.
    func replying(_ status: Int, _ fields: HTTPFields = [:], _ body: String = "") -> ScriptedStep {
        replying(.success(SideResponse(status: status, fields: fields, body: Array(body.utf8))))
    }

    /// Returns this request with another reply or an error.
    func replying(_ reply: Result<SideResponse, SideRequestError>) -> ScriptedStep {
        ScriptedStep(method, url, reply, location: location, where: isExpected)
    }
}

/// Network that expects exactly the scripted requests, in order.
final class ScriptedSideRequests: SideRequests {
    private struct State {
        var steps: [ScriptedStep]
        var sent: [SideRequest] = []
    }

    private let state: Mutex<State>

    init(_ steps: [ScriptedStep]) {
        state = Mutex(State(steps: steps))
    }

    /// Requests sent so far.
    var sent: [SideRequest] { state.withLock { $0.sent } }
    /// Expected requests that were not sent.
    var missing: [ScriptedStep] { state.withLock { $0.steps } }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        // Other tasks may run here.
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
        // RFC 6265 §5.4. Reading a field joins its lines, so a step's own check would not notice several.
        #expect(request.fields[values: .cookie].count < 2, "Cookie in several lines", sourceLocation: step.location)
        return try step.reply.get()
    }
}

extension SideRequest {
    /// The body as JSON.
    var json: JSONValue? { body.flatMap { JSONValue(parsing: $0.revealBytes()) } }

    /// Returns the first value of `name` in a body that is a form.
    func form(_ name: String) -> String? { body.flatMap { FormEncoding.value(of: name, in: $0.revealText()) } }

    /// Returns the first value of `name` in the query.
    func query(_ name: String) -> String? { url.query.flatMap { FormEncoding.value(of: name, in: $0) } }
}

/// Handler that records its calls, and gives scripted answers.
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
