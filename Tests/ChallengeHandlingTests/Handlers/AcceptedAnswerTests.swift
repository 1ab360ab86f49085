// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Answers of handlers that a server has accepted")
struct AcceptedAnswerTests {
    private struct Ann: LoginHandler {
        func credentials(for request: ChallengeRequest) async throws -> LoginCredentials? {
            LoginCredentials(username: "ann", password: "right")
        }
    }

    private static let demand: HTTPFields = [.wwwAuthenticate: "Basic realm=\"r\""]

    private func step(_ path: String, _ hasAnswer: Bool, _ status: Int) -> ScriptedStep {
        let fields = status == 401 ? Self.demand : [:]
        return ScriptedStep(.get, "https://h\(path)", .success(SideResponse(status: status, fields: fields))) {
            ($0.fields[.authorization] != nil) == hasAnswer
        }
    }

    private func logIn(
        _ path: String, _ steps: [ScriptedStep], _ gate: LocalGate, _ book: AnswerCache
    ) async throws -> Session {
        let challenges = HandledChallenges(
            BasicChallengeHandler(Ann()), name: "own", caller: DirectCaller())
        let url = WebURL(origin: Origin(scheme: .https, host: "h"), path: path)
        let login = HandledChallengesLogin(
            challenges: challenges, answers: book, met: ExaminedResponse(status: 401, fields: Self.demand, url: url),
            target: nil)
        return try await LoginRig(steps, latches: gate).logIn(login)
    }

    @Test("an answer that one resource refuses, but another accepts, is not recorded as rejected")
    func forbidden() async throws {
        let (gate, book) = (LocalGate(), AnswerCache())
        _ = try await logIn("/a", [step("/a", true, 200)], gate, book)
        let confirmed = [step("/admin", true, 401), step("/a", false, 401), step("/a", true, 200)]
        _ = try await logIn("/admin", confirmed, gate, book)
        _ = try await logIn("/b", [step("/b", true, 200)], gate, book)
    }

    @Test("an answer that is refused where it was accepted is rejected, and not sent again")
    func changed() async throws {
        let (gate, book) = (LocalGate(), AnswerCache())
        _ = try await logIn("/a", [step("/a", true, 200)], gate, book)
        let refused = [step("/admin", true, 401), step("/a", false, 401), step("/a", true, 401)]
        for steps in [refused, []] {
            await #expect(throws: LoginFailure.self) { try await logIn("/admin", steps, gate, book) }
        }
    }
}
