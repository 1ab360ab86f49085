// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport

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
