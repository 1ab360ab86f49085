// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Credentials
import FakeServers
import FoundationEssentials
import Glibc
import HTTPTypes
import LoginExamples
import Secrets
import TestSupport
import Testing

@Suite("The client as a program sees it", .timeLimit(.minutes(10)))
struct ProgramTests {
    @Test("localizedDescription is the detail, not the name of a type")
    func localized() async throws {
        let error = try await clientError { try await ChallengeClient().send(to: "nowhere") }
        // What Foundation's `localizedDescription` is made of.
        func description(_ error: any Error) -> String? { (error as? any LocalizedError)?.errorDescription }
        #expect(description(error) == error.detail && !error.detail.isEmpty)
        let errors: [(any Error, String)] = [
            (StateError(reason: "a disk"), "a disk"), (CredentialError(reason: "a file"), "a file"),
            (LoginFailure(.failed, challenge: "c", detail: "a login"), "a login"),
        ]
        for (error, words) in errors { #expect(description(error) == words) }
    }

    @Test("messages name what a program can change, and no command or key of the daemon")
    func words() async throws {
        try await withDemo { demo in
            // No handler of the check.
            let check = try await clientError { try await demo.client.send(to: demo.balance) }
            #expect(check.detail.contains("PinCodeAttempts") && check.detail.contains("registerChallengeHandler"))
            // A form for another origin, and one that is not answered in time.
            for (url, words) in [("http://127.0.0.2:1/x", "loginOrigins"), ("/slow", "timeout` of the form")] {
                demo.upstream.override { request in
                    var response = FakeResponse(200)
                    response.delivery.hangs = request.path == "/slow"
                    response.fields = [("Content-Type", "text/html")]
                    response.body = .bytes(Array("marker".utf8))
                    return response
                }
                try demo.client.registerChallengeHandler(FixedForm(url: url))
                let error = try await clientError { try await demo.client.send(to: demo.url("/page")) }
                #expect(error.detail.contains(words), "\(error.detail)")
                demo.client.unregisterChallengeHandler(gatewayName: "fixed")
                expectNoOperator(error.detail)
            }
            expectNoOperator(check.detail)
        }
        let gone = try await clientError { try await ChallengeClient().send(to: "http://127.0.0.1:1/") }
        expectNoOperator(gone.detail)
        #expect(gone.detail.hasPrefix("The server http://127.0.0.1:1"), "\(gone.detail)")
    }

    private func expectNoOperator(_ text: String) {
        for words in ["daemon", "countersign", "security-check:", "login.timeout", "`tls.", "Upstream"] {
            #expect(!text.contains(words), "\(text)")
        }
    }

    @Test("a locked account is called locked")
    func locked() async throws {
        try await withDemo { demo in
            let notes = Notes()
            try demo.client.registerChallengeHandler(
                PinCodeHandler { _ in
                    notes.add("asked")
                    return "\(notes.count)"
                })
            let error = try await clientError { try await balance(by: demo.client, at: demo.balance) }
            #expect(error.loginFailure?.code == .accountLocked && error.detail.contains("locked"), "\(error.detail)")
        }
    }

    /// Handler that keeps its client, as a view does.
    private final class Owner: SecurityCheckChallengeHandler {
        let securityCheck = "PinCodeAttempts"
        let client: ChallengeClient
        init(_ client: ChallengeClient) { self.client = client }
        func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
            .cancel(reason: "no")
        }
    }

    @Test("a shutdown lets go of the handlers, which may keep their client")
    func shutdown() async throws {
        weak var handler: Owner?
        weak var client: ChallengeClient?
        do {
            let made = try ChallengeClient()
            let owner = Owner(made)
            try made.registerChallengeHandler(owner)
            made.registerChallengeHandler(
                BasicChallengeHandler(FixedLogin(LoginCredentials(username: "a", password: "b"))))
            (handler, client) = (owner, made)
            await made.shutdown()
        }
        #expect(await eventually { handler == nil && client == nil })
    }

    @Test("with a stored state, the next process registers no other client and sends no rejected credential again")
    func stored() async throws {
        let directory = "/tmp/countersign-stored-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let upstream = FakeUpstream()
        try upstream.start()
        defer { upstream.stop() }
        let api = try #require(WebURL("http://127.0.0.1:\(upstream.port)/mfp/api"))
        for code in [LoginFailure.Code.rejected, .latched] {
            let stored = try StoredState(directory: directory)
            var configuration = ClientConfiguration()
            configuration.mobileFirst = MobileFirstServer(
                MobileFirstConfiguration(api: api, application: "com.sample.pincode", platform: .ios, version: "1.0"),
                keys: SharedKeys())
            (configuration.state, configuration.attempts) = (stored.state, stored.attempts)
            configuration.credentials = FixedCredentials(["bank": ["pin": Secret("1111")]])
            let client = try ChallengeClient(configuration)
            try client.registerChallengeHandler(
                CredentialChallengeHandler(
                    securityCheck: "PinCodeAttempts",
                    key: LatchKey(origin: api.origin, challenge: "pin", credential: "bank"),
                    answer: try AnswerTemplate(["pin": "{pin}"])))
            let error = try await clientError {
                try await balance(by: client, at: "http://127.0.0.1:\(upstream.port)/mfp/api/adapters/bank/balance")
            }
            #expect(error.loginFailure?.code == code, "\(error)")
            await client.shutdown()
        }
        let record = upstream.recorder.record
        #expect(record.answerCount() == 1)
        #expect(record.registrations == 1)
    }

    @Test("an answer may come later, from a button")
    func button() async throws {
        try await withDemo { demo in
            let shown = Notes()
            let dialog = await PinDialog { shown.add($0) }
            try demo.client.registerChallengeHandler(PinCodeHandler { await dialog.ask($0) })
            async let served = balance(by: demo.client, at: demo.balance)
            while shown.count == 0 { await Task.yield() }
            await dialog.okTapped("1234")
            // Twice: nothing waits any more.
            await dialog.okTapped("1234")
            #expect(try await served.contains("balance"))
            #expect(shown.count == 1)
        }
    }

    @Test("values of JSON are read by their kind")
    func json() throws {
        let value = try #require(JSONValue(parsing: Array(#"{"a":[true,1.5,2,null,"x"]}"#.utf8)))
        let values = try #require(value["a"]?.arrayValue)
        #expect(values.map(\.boolValue) == [true, nil, nil, nil, nil])
        #expect(values.map(\.doubleValue) == [nil, 1.5, 2, nil, nil])
        #expect(values.map(\.isNull) == [false, false, false, true, false])
        #expect(values.map(\.arrayValue) == [nil, nil, nil, nil, nil])
    }
}

/// Handler that submits a form to an address.
private struct FixedForm: GatewayChallengeHandler {
    let gatewayName = "fixed"
    let url: String

    func canHandleResponse(_ response: ExaminedResponse) -> Bool { response.text.contains("marker") }
    func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        .submitLoginForm(url: url, parameters: ["a": "b"], timeout: .milliseconds(500))
    }
}
