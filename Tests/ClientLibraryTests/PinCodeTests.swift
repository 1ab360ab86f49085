// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import FakeServers
import HTTPTypes
import LoginExamples
import TestSupport
import Testing

@Suite("The PIN of the bank", .timeLimit(.minutes(10)))
struct PinCodeTests {
    /// Returns a handler that submits these PINs, in order, and then gives up.
    private func person(_ pins: String..., notes: Notes = Notes()) -> PinCodeHandler {
        PinCodeHandler { prompt in
            notes.add(prompt)
            return notes.count <= pins.count ? pins[notes.count - 1] : nil
        }
    }

    @Test("a right PIN gives the balance, and is asked for once")
    func right() async throws {
        try await withDemo { demo in
            let notes = Notes()
            try demo.client.registerChallengeHandler(person("1234", notes: notes))
            for _ in 0..<3 { #expect(try await balance(by: demo.client, at: demo.balance).contains("balance")) }
            #expect(notes.all == ["This data requires a PIN code. Remaining attempts: 3."])
        }
    }

    @Test("a wrong PIN is told with the server's message, and another may be tried")
    func wrongThenRight() async throws {
        try await withDemo { demo in
            let notes = Notes()
            try demo.client.registerChallengeHandler(person("1111", "1234", notes: notes))
            #expect(try await balance(by: demo.client, at: demo.balance).contains("balance"))
            #expect(notes.all.last == "Pin code is not valid. Hint: 1234 Remaining attempts: 2.")
        }
    }

    @Test("three wrong PINs block the account, and the failure says so")
    func blocked() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person("1", "2", "3"))
            let error = try await clientError { try await balance(by: demo.client, at: demo.balance) }
            #expect(error.loginFailure?.code == .accountLocked)
            #expect(demo.upstream.recorder.record.answerCount() == 3)
        }
    }

    @Test("a PIN that was rejected is not sent again, until it is unlatched")
    func latched() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person("1111", "1111", "1111"))
            let error = try await clientError { try await balance(by: demo.client, at: demo.balance) }
            #expect(error.loginFailure?.code == .latched)
            #expect(demo.upstream.recorder.record.answerCount() == 1)
            demo.client.unlatch()
            _ = try await clientError { try await balance(by: demo.client, at: demo.balance) }
            #expect(demo.upstream.recorder.record.answerCount() == 2)
        }
    }

    @Test("a PIN handler that gives up has sent nothing, and may try again at once")
    func cancelled() async throws {
        try await withDemo { demo in
            let notes = Notes()
            try demo.client.registerChallengeHandler(
                PinCodeHandler { _ in
                    notes.add("asked")
                    return notes.count == 1 ? nil : "1234"
                })
            let error = try await clientError { try await balance(by: demo.client, at: demo.balance) }
            #expect(error.loginFailure?.isCancelled == true)
            #expect(error.detail == "No PIN was entered.")
            #expect(try await balance(by: demo.client, at: demo.balance).contains("balance"))
        }
    }

    @Test("many requests at once have one person asked once")
    func singleFlight() async throws {
        try await withDemo { demo in
            let notes = Notes()
            try demo.client.registerChallengeHandler(person("1234", notes: notes))
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 { group.addTask { try await balance(by: demo.client, at: demo.balance) } }
                for try await text in group { #expect(text.contains("balance")) }
            }
            #expect(notes.count == 1)
        }
    }

    @Test("the wait for a person who never answers ends at the limit")
    func unanswered() async throws {
        try await withDemo {
            $0.timeouts.handler = .milliseconds(100)
        } _: { demo in
            _ = try demo.registerSilentHandler()
            let error = try await clientError { try await balance(by: demo.client, at: demo.balance) }
            #expect(error.loginFailure?.code == .timedOut)
        }
    }

    @Test("a security check without a handler fails at once")
    func noHandler() async throws {
        try await withDemo { demo in
            let error = try await clientError { try await balance(by: demo.client, at: demo.balance) }
            #expect(error.loginFailure?.code == .failed)
            #expect(error.detail.contains("PinCodeAttempts"))
        }
    }

    @Test("a second handler for one check is refused, until the first is gone")
    func second() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person())
            let second = person()
            let error = #expect(throws: RegistrationError.self) { try demo.client.registerChallengeHandler(second) }
            #expect(error?.kind == .alreadyRegistered)
            demo.client.unregisterChallengeHandler(securityCheck: "PinCodeAttempts")
            try demo.client.registerChallengeHandler(person())
        }
    }

    @Test("a token never goes to an origin that it is not for")
    func foreignOrigin() async throws {
        let other = FakeUpstream()
        try other.start()
        defer { other.stop() }
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person("1234"))
            _ = try await balance(by: demo.client, at: demo.balance)
            let response = try await demo.client.send(
                to: "http://127.0.0.1:\(other.port)/mfp/api/adapters/bank/balance")
            #expect(response.status == .unauthorized)
            #expect(other.recorder.record.answerCount() == 0)
        }
    }
}
