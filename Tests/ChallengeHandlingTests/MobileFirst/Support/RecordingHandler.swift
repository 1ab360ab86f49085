// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Synchronization

/// A handler that notes what it is told, and answers as it was made to.
final class RecordingHandler: SecurityCheckChallengeHandler {
    let securityCheck: String
    private let log = Mutex<[String]>([])
    private let answer: @Sendable (SecurityCheckChallenge) async throws -> ChallengeAnswer

    init(_ securityCheck: String, answer: @escaping @Sendable (SecurityCheckChallenge) async throws -> ChallengeAnswer)
    {
        self.securityCheck = securityCheck
        self.answer = answer
    }

    var told: [String] { log.withLock { $0 } }

    private func note(_ text: String) { log.withLock { $0.append(text) } }

    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        note("challenge")
        return try await answer(challenge)
    }

    func handleSuccess(_ success: JSONValue) async { note("success") }
    func handleFailure(_ failure: JSONValue) async { note("failure") }
}
